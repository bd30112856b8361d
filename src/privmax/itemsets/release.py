"""The most frequent itemsets, released under differential privacy.

Proof:      docs/proofs/itemsets.md
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from functools import cached_property, partial
from typing import Any, Self, cast

import numpy as np

from privmax.encoding import encode
from privmax.errors import DataError, ParameterError, refuse_given
from privmax.itemsets.baskets import Baskets, list_items
from privmax.itemsets.method import Found, Method, Problem
from privmax.itemsets.miner.window import Miner
from privmax.itemsets.numbering import Numbering
from privmax.itemsets.reading.forms import check_single, list_columns, open_baskets
from privmax.itemsets.reading.tables import TableRows
from privmax.itemsets.rules import Rule, RuleCounts, measure_rules, needed_sets, price_rules
from privmax.itemsets.source import ItemsetSource
from privmax.ledger.events import BASKET, USER, label
from privmax.ledger.ledger import Ledger
from privmax.ledger.payment import Question, Request, place_of
from privmax.mechanisms.contract import Mechanism
from privmax.mechanisms.registry import check_name
from privmax.noise.coins import SYSTEM, Coins
from privmax.numbers import Number, positive, whole
from privmax.privacy import Privacy
from privmax.release import Release, Terms, answer, is_ranked
from privmax.sources.base import PlainSource, Source
from privmax.sources.conditions import Condition
from privmax.sources.databases import open_database
from privmax.universe import OPEN, Universe, read_whole
from privmax.warnings import warn_of_baskets

ANY = "any"
LONGEST = 1 << 20
"""`size="any"` ends at sets of so many items."""

Size = int | str | tuple[int, int] | range


@dataclass(frozen=True, repr=False)
class ItemsetRelease(Release):
    """A `Release` whose items are itemsets, each a tuple of items in their fixed order.

    Args:
        rule_counts: Noisy supports for rules, where they were asked for and there are any.

    Examples:
        >>> release = top_itemsets([[1, 2]] * 900, epsilon=1, delta=1e-6)
        >>> release.items, release.supports
        (((1, 2),), ())
    """

    rule_counts: RuleCounts | None = None

    @property
    def supports(self) -> tuple[int, ...]:
        """Noisy support of each, where that was asked for or comes with the method; otherwise
        empty.
        """
        return cast(tuple[int, ...], self.counts)

    @property
    def rules(self) -> tuple[Rule, ...]:
        """The association rules of the itemsets, where they were asked for, the surest first.

        Examples:
            >>> baskets = [["bread", "butter"]] * 900 + [["bread"]] * 900 + [["tea"]] * 900
            >>> release = top_itemsets(baskets, epsilon=1, delta=1e-6, rules=10)
            >>> [(rule.antecedent, round(rule.confidence.value, 1)) for rule in release.rules]
            [(('butter',), 1.0), (('bread',), 0.5)]
        """
        return () if self.rule_counts is None else self.rule_counts.rules(self.items)

    def to_dict(self) -> dict[str, Any]:
        shown = super().to_dict()
        shown = {("supports" if name == "counts" else name): one for name, one in shown.items()}
        return {**shown, "rules": [rule.to_dict() for rule in self.rules]}

    def answer_fields(self) -> dict[str, Any]:
        return {
            "itemset": self.item,
            "itemsets": list(self.items),
            "requested": self.requested,
            "ranked": self.ranked,
            "supports": list(self.supports),
            "error": self.error,
            "rules": [rule.to_dict() for rule in self.rules],
        }

    def _show_more(self) -> dict[str, Sequence[str]]:
        return {"rules": [str(rule) for rule in self.rules]}

    def to_record(self, write: Callable[[Any], Any]) -> dict[str, Any]:
        drawn = {**super().to_record(write), "supports": [encode(one) for one in self.supports]}
        drawn.pop("counts", None)
        if self.rule_counts is not None:
            drawn["rules"] = self.rule_counts.to_json(write)
        return drawn

    def with_answer(
        self,
        answer: Mapping[str, Any],
        read: Callable[[Any], Any],
        request: str | None,
        recorded: str | None = None,
    ) -> Self:
        renamed = {**answer, "counts": answer["supports"]}
        rules = RuleCounts.from_json(answer["rules"], read) if "rules" in answer else None
        return replace(super().with_answer(renamed, read, request, recorded), rule_counts=rules)


def top_itemsets(
    data: object,
    *,
    size: Size = 2,
    k: int = 1,
    ranked: bool = False,
    epsilon: Number | None = None,
    delta: Number | None = None,
    mechanism: Mechanism | Method | str | None = None,
    items: object = OPEN,
    neighbors: str | None = None,
    longest: int | None = None,
    floor: int = 0,
    supports: Number | None = None,
    rules: Number | None = None,
    basket: str | Sequence[str] | None = None,
    item: str | None = None,
    user: str | None = None,
    form: str | None = None,
    separator: str | None = None,
    header: bool | None = None,
    where: str | None = None,
    table: str | None = None,
    unit: str | None = None,
    ledger: Ledger | Request | None = None,
    coins: Coins = SYSTEM,
) -> ItemsetRelease:
    """Release the most frequent itemset, or the k most frequent, under differential privacy.

    The release is empty if there is no answer; that costs the same.

    Args:
        data: A path: .dat (one basket a line, items as whole numbers), CSV, JSON Lines, Parquet or
            a folder of it, or a pattern of such. Or lists of items; a frame with the columns
            `basket` and `item`, or with a column of 0 and 1 for each item; a SciPy matrix; an Ibis
            table, whose rows stay in their engine.
        size: How many items a set has: 2; "2-4" or (2, 4) for two to four; or "any".
        k: How many itemsets to release, as a set, which comes sorted by name; the cost covers all
            of them. There may be fewer: `release.notes` says so.
        ranked: Release their order, too, most frequent first. That needs a much clearer lead, and
            `release.why` tells both leads.
        epsilon: What it costs; a float means the decimal that it prints as: 0.1 is one tenth.
        delta: Probability with which the guarantee may fail; may be 0 only where all items are
            declared.
        mechanism: A mechanism or method object, instead of epsilon, delta and neighbors; or the
            name of one, such as "nested-margin", beside them; by default `auto` chooses.
        items: "open": items are not known in advance. Otherwise all of them, or their number n if
            they are 0 … n − 1; public knowledge, never computed from the data. Every itemset can
            then be released, also one nobody has.
        neighbors: "add-remove" (the default): one individual more or less; "replace": another
            individual's baskets.
        longest: No basket has more than so many different items, as a public rule; then less noise
            may do.
        floor: Public; supports at or below it count as nothing. It bounds the work where all
            supports are small.
        supports: Epsilon to pay beside, such as "0.2", for noisy supports of what is released
            (`release.supports`) with their error bar (`release.error`); they get the noise that is
            smallest for k of them. Where that is Gaussian, it uses the same delta once more, and
            `release.privacy` holds both.
        rules: Epsilon to pay beside, such as "0.5", for association rules between the items of what
            is released (`release.rules`), each with its confidence, its lift and 95 % intervals.
            Where Gaussian noise is the smallest, they use the same delta once more.
        basket: Column of the baskets, in tables and CSV files with one row per item of a basket; a
            list of several tells baskets apart together.
        item: Column of the items.
        user: Column of the individuals. ONE INDIVIDUAL IS ONE BASKET, unless this says whose it is:
            then an itemset counts once for each user with a basket that holds it.
        form: Of a file, if not clear from the extension: "fimi", "wide" (one basket a line), "long"
            (one row an item) or "onehot" (a column for each item, 0 or 1 in its rows), the last
            also of tables and frames.
        separator: Of a CSV file.
        header: Whether a CSV file with one basket a line begins with a line of names, to be
            skipped.
        where: Which rows count, in tables and files with one row per item: a condition on each row
            alone, such as "country = 'DE' and age >= 18" (docs/inputs.md).
        table: Where `data` is a database (a path, or a URL such as "postgres://…"): its table.
        unit: What the cost hides, for the ledger, which holds one unit: "user" with `user`,
            otherwise "basket". Say it where you know better: unit="user" if nobody has two baskets.
        ledger: The privacy budget that pays, supports included: charged before the draw; the answer
            is recorded before it is returned. What does not fit is refused (BudgetError) before any
            data is read. To name the request, the account to charge as well or the data, give
            `ledger.request("nightly", account=…, dataset=…)`: a repeated request returns the
            recorded answer, reads no data and costs nothing more.
        coins: Source of random bits; for tests only.

    Returns:
        What was released.

    Raises:
        ParameterError: An option is not allowed, or does not fit another.
        DataError: The data cannot be used.
        BudgetError: The ledger does not allow it.

    Examples:
        >>> baskets = [["bread", "butter"]] * 900 + [["milk"]] * 20
        >>> top_itemsets(baskets, epsilon=1, delta=1e-6).item
        ('bread', 'butter')
    """
    mining = Mining.of(
        size=size,
        k=k,
        ranked=ranked,
        epsilon=epsilon,
        delta=delta,
        mechanism=mechanism,
        items=items,
        neighbors=neighbors,
        longest=longest,
        floor=floor,
        supports=supports,
        rules=rules,
        unit=unit,
        layout=Layout(basket, item, user, form, separator, header, where),
    )
    place = None if ledger is None else place_of(data, table)
    return mining.answer(partial(open_database, data, table), ledger, place=place, coins=coins)


@dataclass(frozen=True)
class Layout:
    """How baskets lie in a table or a file: its columns, and what `top_itemsets` says of its
    form.

    Examples:
        >>> Layout(basket=["shop", "receipt"], item="article").item
        'article'
    """

    basket: str | Sequence[str] | None = None
    item: str | None = None
    user: str | None = None
    form: str | None = None
    separator: str | None = None
    header: bool | None = None
    where: str | None = None

    def __post_init__(self) -> None:
        list_columns("basket", self.basket)
        check_single(item=self.item, user=self.user)
        if self.where is not None:
            Condition.of(self.where)


@dataclass(frozen=True, kw_only=True)
class ItemsetTerms(Terms):
    """The terms of a release of itemsets.

    Args:
        floor: Public; supports at or below it count as nothing.
        rules: What association rules cost in epsilon, on top; None: there are none.
        sizes: Of the itemsets that are asked for.
        longest: No basket has more different items than this, as a public rule.
    """

    floor: int = 0
    rules: Fraction | None = None
    sizes: range = range(2, 3)
    longest: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.rules is not None and self.sizes.stop <= 2:
            raise ParameterError(
                "rules", self.rules, "a rule needs itemsets of two or more items",
                "Ask for a larger size.",
            )  # fmt: skip

    @cached_property
    def rule_price(self) -> Privacy | None:
        """What rules cost; None: there are none. They may use as much delta as the itemsets."""
        if self.rules is None:
            return None
        mechanism = self.choice.mechanism
        delta = mechanism.privacy().delta if self.delta is None else self.delta
        return price_rules(
            Privacy(self.rules, delta),
            k=mechanism.k,
            largest=self.sizes.stop - 1,
            neighbors=mechanism.neighbors,
        )

    def privacy(self) -> Privacy:
        plain = super().privacy()
        return plain if self.rule_price is None else plain + self.rule_price

    def release(self) -> ItemsetRelease:
        empty = super().release()
        return ItemsetRelease(**{spec.name: getattr(empty, spec.name) for spec in fields(empty)})

    def draw(self, source: Any, coins: Coins) -> ItemsetRelease:
        """The release, with noisy supports where `counts` covers them."""
        release = cast(ItemsetRelease, super().draw(source, coins))
        diagnostics = dict(release.diagnostics)
        if "max_estimate" in diagnostics:
            diagnostics["max_estimate"] += self.floor
        rules = None
        if self.rule_price is not None:
            rules = measure_rules(
                needed_sets(release.items),
                source.supports,
                self.rule_price,
                coins,
                neighbors=release.mechanism.neighbors,
                longest=self.longest,
            )
        return replace(release, diagnostics=diagnostics, rule_counts=rules)


@dataclass(frozen=True, kw_only=True)
class MethodTerms(ItemsetTerms):
    """The terms of a published method, which draws from the baskets themselves.

    Args:
        owned: Whether baskets have owners.
    """

    owned: bool = False

    def __post_init__(self) -> None:
        """All else was made with the method."""
        whole("k", self.k)
        if self.unit is not None:
            label("unit", self.unit)

    def release(self) -> ItemsetRelease:
        """The release without its answer; a method is told with the baskets how many to find."""
        return replace(super().release(), requested=self.k)

    def check(self) -> None:
        """Meet what the method refuses before the charge: it draws from no baskets of three
        invented items.
        """
        none = np.zeros(0, np.int64)
        rows = Baskets(
            np.zeros(1, np.int64), none.astype(np.int32), range(3), none if self.owned else None
        )
        self._draw(rows, range(2, 3), 1, SYSTEM)

    def look(self, source: Any) -> None:
        """Nothing more is to be met: the baskets are read."""

    def draw(self, source: Any, coins: Coins) -> ItemsetRelease:
        rows: Baskets = source.rows
        found = self._draw(rows, self.sizes, self.k, coins)
        items = tuple(tuple(rows.labels[code] for code in one.codes) for one in found)
        known = tuple(one.support for one in found if one.support is not None)
        return replace(
            self.release(), items=items, counts=known if len(known) == len(items) else ()
        )

    def _draw(self, rows: Baskets, sizes: range, k: int, coins: Coins) -> list[Found]:
        method = cast(Method, self.choice.mechanism)
        return method.draw(Problem(lambda wanted: Miner(rows, wanted), rows, sizes, k), coins)


class BasketSource(PlainSource):
    """Baskets for a published method, which names what it draws itself. They are private."""

    def __init__(self, rows: Baskets) -> None:
        self.rows = rows

    def __repr__(self) -> str:
        return "BasketSource(<private>)"


@dataclass(frozen=True)
class Mining:
    """A question for the most frequent itemsets, before any data is read.

    Args:
        terms: What runs, at what cost.
        layout: How the baskets lie.
        sizes: Of the itemsets.
        items: All items there are.
        longest: No basket has more different items than this, as a public rule.
        supports: What noisy supports cost, as it was given.
        rules: What association rules cost, as it was given.
        unit_is_default: Whether nobody said what the cost hides.

    Examples:
        >>> Mining.of(items=["a", "b", "c"], epsilon=1).itemsets().size  # pairs
        3
    """

    terms: ItemsetTerms
    layout: Layout
    sizes: range
    items: Universe
    longest: int | None = None
    supports: Number | None = None
    rules: Number | None = None
    unit_is_default: bool = True

    @classmethod
    def of(
        cls,
        *,
        size: Size = 2,
        items: object = OPEN,
        mechanism: Mechanism | Method | str | None = None,
        longest: int | None = None,
        supports: Number | None = None,
        rules: Number | None = None,
        unit: str | None = None,
        layout: Layout | None = None,
        **price: Any,
    ) -> Mining:
        """The question that the options of `top_itemsets` ask."""
        layout = Layout() if layout is None else layout
        floor = whole("floor", price.pop("floor", 0), least=0)
        sizes, everything = read_sizes(size), Universe.of(items, "items")
        growth = None if longest is None else count_touched(longest, size, layout.user)
        if isinstance(mechanism, str):
            mechanism = _make_method(mechanism, price)
        common: dict[str, Any] = {
            "counts": None if supports is None else positive("supports", supports),
            "floor": floor,
            "rules": None if rules is None else positive("rules", rules),
            "sizes": sizes,
            "longest": longest,
            "unit": (BASKET if layout.user is None else USER) if unit is None else unit,
            "given": mechanism,
            **price,
        }
        if isinstance(mechanism, Method):
            k = common.pop("k", 1)
            for name in ("k", "ranked"):  # a method gives a list
                price.pop(name, None)
            beside = {"supports": supports, "rules": rules, "longest": longest}
            _check_method(mechanism, everything, **beside, **price)
            terms: ItemsetTerms = MethodTerms(**common, k=k, owned=layout.user is not None)
        else:
            made_for = growth is not None and getattr(mechanism, "growth", None) == growth
            terms = ItemsetTerms(
                **common,
                universe=count_itemsets(everything, sizes),
                growth=None if made_for else growth,
            )
        return cls(terms, layout, sizes, everything, longest, supports, rules, unit is None)

    def answer(
        self,
        read: Callable[[ExitStack], object],
        ledger: Ledger | Request | None = None,
        *,
        place: str | None = None,
        coins: Coins = SYSTEM,
    ) -> ItemsetRelease:
        """Read the data and release what is most frequent in it.

        Args:
            read: Gives the data, as `top_itemsets` takes it; called when the ledger was asked.
            place: Where it is, for the ledger; public.
        """
        unsaid = (
            self.unit_is_default and self.layout.user is None and self.layout.basket is not None
        )
        release = answer(
            self.terms,
            partial(self._read, read),
            ledger,
            question=None if ledger is None else self._question(place),
            warn=warn_of_baskets if unsaid else None,
            coins=coins,
        )
        return cast(ItemsetRelease, release)

    def itemsets(self) -> Universe:
        """All itemsets there are."""
        return count_itemsets(self.items, self.sizes)

    def _read(self, read: Callable[[ExitStack], object], stack: ExitStack) -> Source:
        rows = open_baskets(read(stack), held=stack, **vars(self.layout))
        if self.longest is not None:
            _check_longest(rows, self.longest)
        if not self.items.is_open:
            rows = rows.within(_named_items(self.items))
        if isinstance(self.terms, MethodTerms):
            held = rows if isinstance(rows, Baskets) else rows.survivors(1)
            return cast(Source, BasketSource(held))
        return ItemsetSource(
            rows, rows.labels, self.sizes, closed=not self.items.is_open, floor=self.terms.floor
        )

    def _question(self, place: str | None) -> Question:
        keys = list_columns("basket", self.layout.basket)
        options: dict[str, object] = {
            "size": _size_label(self.sizes),
            "k": self.terms.k,
            "ranked": None if is_ranked(self.terms.choice.mechanism) else False,
            "neighbors": self.terms.neighbors,
            "longest": self.longest,
            "items": self.items.size or OPEN,
            "floor": self.terms.floor,
            **vars(self.layout),
            "where": None if self.layout.where is None else str(Condition.of(self.layout.where)),
            "basket": keys[0] if keys and len(keys) == 1 else keys,
        }
        labels: Any = self.items.size
        if self.items.labels is not None:
            labels = list_items(_named_items(self.items))
        numbers = {"supports": self.supports, "rules": self.rules}
        return Question("itemsets", options, numbers, place, None, labels)


def count_itemsets(items: Universe, sizes: range) -> Universe:
    """All itemsets of these sizes over the items there are.

    Examples:
        >>> count_itemsets(Universe(10), range(2, 4)).size  # 45 pairs and 120 triples
        165
    """
    if items.is_open:
        return Universe()
    return Universe(Numbering(len(list_items(_named_items(items))), sizes).size)


def _named_items(items: Universe) -> Any:
    """What `list_items` takes: all items, or their number."""
    return items.size if items.labels is None else items.labels


def _make_method(name: str, price: dict[str, Any]) -> Method | str:
    """A published method by name; those need no delta. The name itself where there is none."""
    from privmax.itemsets.published import METHODS  # competitors: loaded where one is named

    if name not in METHODS:
        check_name(name, others=METHODS)
        return name
    # A contract does not say how its classes are made.
    made = METHODS[name](epsilon=price.pop("epsilon", None))  # type: ignore[call-arg]
    if price.get("neighbors") == made.neighbors:
        del price["neighbors"]
    return made


def read_sizes(size: Size) -> range:
    """The sizes wanted, as a range.

    Examples:
        >>> read_sizes("2-4"), read_sizes((2, 4)), read_sizes(2)
        (range(2, 5), range(2, 5), range(2, 3))
    """
    given = size
    if isinstance(size, str):
        size = _read_size(size)
    if size == ANY:
        return range(1, LONGEST)
    if isinstance(size, range) and size.step == 1 and size.start >= 1 and len(size):
        return size
    if isinstance(size, tuple) and len(size) == 2:
        low, high = whole("size", size[0]), whole("size", size[1])
        if low <= high < LONGEST:
            return range(low, high + 1)
    if isinstance(size, int) and not isinstance(size, bool) and 1 <= size < LONGEST:
        return range(size, size + 1)
    raise ParameterError(
        "size", given, f"it must be a whole number from 1 to {LONGEST - 1}, a range, or any",
        "For example 2, or 2-4.",
    )  # fmt: skip


def _read_size(text: str) -> int | str | tuple[int, int]:
    """What a text says of the size; the text itself where it says nothing."""
    first, dash, last = text.partition("-")
    low, high = read_whole("size", first), read_whole("size", last)
    if low is None or (high is None and dash):
        return text
    return low if high is None else (low, high)


def count_touched(longest: int, size: Size, user: str | None = None) -> int:
    """How many itemsets one individual's record touches at most, if it is one basket of at most
    `longest` items.

    Examples:
        >>> count_touched(10, size=2)
        45
    """
    sizes = read_sizes(size)
    if user is not None:
        raise ParameterError(
            "longest", longest, "it limits one basket, and a user may have several", "Leave it out."
        )
    within = range(sizes.start, min(sizes.stop, whole("longest", longest) + 1))
    return max(1, sum(math.comb(longest, one) for one in within))


def _check_longest(rows: Baskets | TableRows, longest: int) -> None:
    if rows.longest() > longest:
        raise DataError(
            "A basket has more items than longest allows. Shorten such baskets by a public "
            "rule, or raise it."
        )


def _check_method(method: Method, items: Universe, **options: object) -> None:
    """Refuse what a published method does not take."""
    allowed = f"{type(method).__name__} does not take it"
    refuse_given(options, allowed, "Make the method with what it takes.")
    if items.is_open:
        raise ParameterError(
            "items", OPEN, f"{type(method).__name__} needs all items", "Declare them."
        )


def _size_label(sizes: range) -> int | str:
    """Sizes as a ledger writes them."""
    if len(sizes) == 1:
        return sizes.start
    return ANY if sizes == read_sizes(ANY) else f"{sizes.start}-{sizes.stop - 1}"
