"""The options of `top_itemsets`, checked, as a question, and how its data is read.

Proof:      docs/proofs/itemsets.md
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, cast

from privmax.best_items import BestItems
from privmax.best_per_group import BestPerGroup, ask_in_group
from privmax.encoding import check_recordable
from privmax.errors import DataError, ParameterError, refuse_given, refuse_same
from privmax.grouping import IN_DATA, IN_REQUEST, combine, moved
from privmax.groups import Groups
from privmax.itemsets.baskets import Baskets, list_items
from privmax.itemsets.method import Method
from privmax.itemsets.numbering import Numbering
from privmax.itemsets.reading.forms import (
    LONG,
    check_single,
    list_columns,
    open_baskets,
    refuse_form,
)
from privmax.itemsets.reading.grouped import GroupedBaskets, open_groups
from privmax.itemsets.reading.tables import TableRows
from privmax.itemsets.release import (
    BestItemsets,
    GroupedItemsetRelease,
    ItemsetRelease,
    MethodItemsets,
)
from privmax.itemsets.source import ItemsetSource
from privmax.ledger.events import BASKET, USER
from privmax.ledger.ledger import Ledger
from privmax.ledger.payment import Description, source_location
from privmax.ledger.request import Request
from privmax.mechanisms.contract import Mechanism
from privmax.mechanisms.registry import check_name
from privmax.noise.coins import SYSTEM, Coins
from privmax.numbers import Number, positive, whole
from privmax.release import Releasable, answer, is_ranked
from privmax.sources.conditions import Condition
from privmax.sources.databases import open_database
from privmax.sources.declared import Declared
from privmax.sources.dialect import PLAIN, Dialect
from privmax.sources.places import declare
from privmax.sources.roles import Columns
from privmax.sources.scale import WHOLE
from privmax.sources.users import OF_INDIVIDUALS, read_missing_users
from privmax.universe import OPEN, Universe, read_whole
from privmax.warnings import warn_of_baskets

ANY = "any"

LONGEST = 1 << 20
"""`size="any"` ends at sets of so many items."""

Size = int | str | tuple[int, int] | range

_IN_LAYOUT = {
    "layout=privmax.itemsets.Layout({}=…)": (
        "form", "header", "where", "missing_users", "longest", "floor", "neighbors"
    ),
    "privmax.TextFile(file, delimiter=…) as the data": ("separator",),
}  # fmt: skip


@moved({**_IN_LAYOUT, **IN_DATA, **IN_REQUEST})
def top_itemsets(
    data: object,
    *,
    basket: str | Sequence[str] | None = None,
    item: str | None = None,
    user: str | None = None,
    layout: Layout | None = None,
    size: Size = 2,
    k: int = 1,
    ranked: bool = False,
    by: str | Groups | None = None,
    epsilon: Number | None = None,
    delta: Number | None = None,
    mechanism: Mechanism | Method | str | None = None,
    items: object = OPEN,
    supports: Number | None = None,
    rules: Number | None = None,
    ledger: Ledger | Request | None = None,
    coins: Coins = SYSTEM,
) -> ItemsetRelease | GroupedItemsetRelease:
    """Release the most frequent itemset, or the k most frequent, under differential privacy.

    The release is empty if there is no answer; that costs the same.

    Args:
        data: A path: .dat (one basket a line, items as whole numbers), CSV, JSON Lines, Parquet or
            a folder of it, or a pattern of such. Or lists of items; a frame with the columns
            `basket` and `item`, or with a column of 0 and 1 for each item; a SciPy matrix; an Ibis
            table, whose rows stay in their engine. A `privmax.TextFile` says how a file of text is
            to be read, and a `privmax.Database` names a table of one.
        basket: Column of the baskets, in tables and CSV files with one row per item of a basket; a
            list of several tells baskets apart together.
        item: Column of the items. Without `basket`, in frames, tables, Parquet and JSON Lines:
            column of lists, each of which is a basket.
        user: Column of the individuals. ONE INDIVIDUAL IS ONE BASKET, unless this says whose it is:
            then an itemset counts once for each user with a basket that holds it.
        layout: The three as one value, with the form of a file, which rows count, and public rules
            such as how many items a basket may have.
        size: How many items a set has: 2; "2-4" or (2, 4) for two to four; or "any".
        k: How many itemsets to release, as a set, which comes sorted by name; the cost covers all
            of them. There may be fewer: `release.notes` says so.
        ranked: Release their order, too, most frequent first. That needs a clearer lead, and
            `release.why` tells both leads.
        by: Column of groups: release the most frequent itemsets of each group, at the cost of one,
            because each individual counts in the group that most of its own rows name. The release
            is a `GroupedItemsetRelease`. `privmax.Groups` declares the groups; otherwise a part of
            the cost finds them. It needs one row per item of a basket (`basket` and `item`).
        epsilon: What it costs; a float means the decimal that it prints as: 0.1 is one tenth.
        delta: Probability with which the guarantee may fail; may be 0 only where all items are
            declared.
        mechanism: A mechanism or method object, instead of epsilon, delta and the neighbors of
            `layout`; or the name of one, such as "nested-margin", beside them; by default `auto`
            chooses.
        items: "open": items are not known in advance. Otherwise all of them, or their number n if
            they are 0 … n − 1; public knowledge, never computed from the data. Every itemset can
            then be released, also one no one has.
        supports: Epsilon to pay beside, such as "0.2", for noisy supports of what is released
            (`release.supports`) with their error bar (`release.error`); they get the noise that is
            smallest for k of them. Where that is Gaussian, it uses the same delta once more, and
            `release.privacy` holds both.
        rules: Epsilon to pay beside, such as "0.5", for association rules between the items of what
            is released (`release.rules`), each with its confidence, its lift and 95 % intervals.
            Where Gaussian noise is the smallest, they use the same delta once more. With `user`,
            rules are about users: each has the items of all of their baskets, while a support of
            `release.supports` counts users with all items in one basket. Baskets and users without
            any item are not among those that a lift compares with.
        ledger: The privacy budget that pays, supports included: charged before the draw; the answer
            is recorded before it is returned. What does not fit is refused (BudgetError) before any
            data is read. To name the request, the account to charge as well or the data, give
            `ledger.request("nightly", account=…, dataset=…)`: a repeated request returns the
            recorded answer, reads no data and costs nothing more. A request also says what the cost
            hides (`unit="user"` if no one has two baskets; by default "user" with `user`, otherwise
            "basket") and whether this is only a check (`check=True`). Without a ledger
            `privmax.Request(unit=…, check=…)` says these two.
        coins: Source of random bits; for tests only.

    Returns:
        What was released. After a check `release.checked` is true.

    Raises:
        ParameterError: An option is not allowed, or does not fit another.
        DataError: The data cannot be used.
        BudgetError: The ledger does not allow it.

    Examples:
        >>> baskets = [["bread", "butter"]] * 900 + [["milk"]] * 20
        >>> top_itemsets(baskets, epsilon=1, delta=1e-6).item
        ('bread', 'butter')
    """
    request = Request.of(ledger)
    layout = combine("layout", Layout, layout, basket=basket, item=item, user=user)
    declared = Declared.of(data, check=request.check)
    mining = Mining.of(
        size=size,
        k=k,
        ranked=ranked,
        epsilon=epsilon,
        delta=delta,
        mechanism=mechanism,
        items=items,
        neighbors=layout.neighbors,
        supports=supports,
        rules=rules,
        unit=request.unit,
        layout=layout,
        dialect=declared.dialect,
        groups=Groups.of(by),
    )
    place, table = declared.data, declared.table
    declared._replace(dialect=mining.dialect).refuse(request, as_table=False)
    refuse_form(place, mining.layout, by=None if mining.groups is None else mining.groups.by)
    return mining.answer(
        partial(open_database, place, table),
        request.payment(),
        place=None if request.ledger is None else source_location(place, table),
        coins=coins,
    )


@dataclass(frozen=True)
class Layout:
    """Describe the layout of baskets in a table or a file, and public rules for counting them.

    Args:
        basket: Column of the baskets, in tables and CSV files with one row per item of a basket; a
            list of several tells baskets apart together.
        item: Column of the items. Without `basket`, in frames, tables, Parquet and JSON Lines:
            column of lists, each of which is a basket.
        user: Column of the individuals; without it one individual is one basket.
        form: Of a file, if not clear from the extension: "fimi", "wide" (one basket a line), "long"
            (one row an item) or "onehot" (a column for each item, 0 or 1 in its rows), the last
            also of tables and frames.
        header: Whether a CSV file with one basket a line begins with a line of names, to be
            skipped.
        where: Which rows count, in tables and files with one row per item: a condition on each row
            alone, such as "country = 'DE' and age >= 18" (`privmax help inputs`).
        missing_users: With `user`: "drop" leaves out rows that have an item but no user, each by
            itself; by default they are refused.
        longest: No basket has more than so many different items, as a public rule; then less noise
            may do.
        floor: Public; supports at or below it count as nothing. It bounds the work where all
            supports are small.
        neighbors: "add-remove" (the default): one individual more or less; "replace": another
            individual's baskets.

    Raises:
        ParameterError: An option is not allowed, or does not fit another.

    Examples:
        >>> Layout(basket=["shop", "receipt"], item="article").item
        'article'
    """

    basket: str | Sequence[str] | None = None
    item: str | None = None
    user: str | None = None
    form: str | None = None
    header: bool | None = None
    where: str | None = None
    missing_users: str | None = None
    longest: int | None = None
    floor: int = 0
    neighbors: str | None = None

    def __post_init__(self) -> None:
        baskets = list_columns("basket", self.basket)
        check_single(item=self.item, user=self.user)
        refuse_same("user", self.user, OF_INDIVIDUALS, item=[self.item])
        refuse_same("item", self.item, "Name another column.", basket=baskets or [])
        if self.where is not None:
            Condition.of(self.where)

    def checked(self) -> Layout:
        """Return the same with `missing_users` read.

        Raises:
            ParameterError: It says nothing that is known, or no column of users is named.
        """
        return replace(self, missing_users=read_missing_users(self.missing_users, self.user))

    def reading(self) -> dict[str, Any]:
        """Return what `open_baskets` takes."""
        names = ("basket", "item", "user", "form", "header", "where", "missing_users")
        return {name: getattr(self, name) for name in names}


@dataclass(frozen=True)
class Mining:
    """A question for the most frequent itemsets, before any data is read.

    Args:
        question: What runs, at what cost.
        layout: How the baskets lie, and by what rules they count.
        sizes: Of the itemsets.
        items: All items there are.
        supports: What noisy supports cost, as it was given.
        rules: What association rules cost, as it was given.
        unit_is_default: Whether it was left open what the cost hides.
        separator: Of the values in a file of text; None: the file says it.
        dialect: What else is declared of a file of text, and whether this is a check.
        groups: The groups to find itemsets in; None: all baskets are one.

    Examples:
        >>> Mining.of(items=["a", "b", "c"], epsilon=1).itemsets().size  # pairs
        3
    """

    question: BestItemsets | MethodItemsets
    layout: Layout
    sizes: range
    items: Universe
    supports: Number | None = None
    rules: Number | None = None
    unit_is_default: bool = True
    separator: str | None = None
    dialect: Dialect = PLAIN
    groups: Groups | None = None

    @classmethod
    def of(
        cls,
        *,
        size: Size = 2,
        items: object = OPEN,
        mechanism: Mechanism | Method | str | None = None,
        supports: Number | None = None,
        rules: Number | None = None,
        unit: str | None = None,
        layout: Layout | None = None,
        dialect: Dialect = PLAIN,
        **cost: Any,
    ) -> Mining:
        """Make the question that the options of `top_itemsets` ask.

        Options of the cost are those of `BestItems`, and `groups`, which divide it.
        """
        layout = (Layout() if layout is None else layout).checked()
        groups: Groups | None = cost.pop("groups", None)
        if groups is not None:
            relation = cost.get("neighbors") or getattr(mechanism, "neighbors", None)
            _check_groups(groups, layout, Universe.of(items, "items"), rules, relation)
        floor, longest = whole("floor", layout.floor, least=0), layout.longest
        sizes, everything = read_sizes(size), Universe.of(items, "items")
        growth = None if longest is None else count_touched(longest, size, layout.user)
        if isinstance(mechanism, str):
            mechanism = _make_method(mechanism, cost)
        unit_said = (BASKET if layout.user is None else USER) if unit is None else unit
        counts = None if supports is None else positive("supports", supports)
        epsilon = None if rules is None else positive("rules", rules)
        question: BestItemsets | MethodItemsets
        if isinstance(mechanism, Method):
            _refuse_method(mechanism, groups)
            k = cost.pop("k", 1)
            cost.pop("ranked", None)  # a method gives a list
            extra = {"supports": supports, "rules": rules, "longest": longest}
            _check_method(mechanism, everything, **extra, **cost)
            owned = layout.user is not None
            question = MethodItemsets(
                method=mechanism, k=k, sizes=sizes, unit=unit_said, owned=owned
            )
        else:
            made_for = growth is not None and getattr(mechanism, "growth", None) == growth
            cost["counts"] = counts
            selection = BestItems(
                **cost,
                given=mechanism,
                unit=unit_said,
                universe=count_itemsets(everything, sizes),
                growth=None if made_for else growth,
                scale=WHOLE,
            )
            if groups is not None:
                selection = ask_in_group(selection, groups)
            question = BestItemsets(
                selection=selection, floor=floor, rules=epsilon, sizes=sizes, longest=longest
            )
        plain = replace(dialect, delimiter=None)
        made = (question, layout, sizes, everything, supports, rules, unit is None)
        return cls(*made, dialect.delimiter, plain, groups)

    @property
    def releasable(self) -> BestItemsets | MethodItemsets | BestPerGroup:
        """The question that is charged and answered, in every group if there are any."""
        if self.groups is None or isinstance(self.question, MethodItemsets):
            return self.question
        return BestPerGroup(
            best=self.question.selection, groups=self.groups, released=GroupedItemsetRelease
        )

    def answer(
        self,
        read: Callable[[ExitStack], object],
        ledger: Ledger | Request | None = None,
        *,
        place: str | None = None,
        coins: Coins = SYSTEM,
    ) -> ItemsetRelease | GroupedItemsetRelease:
        """Read the data and release what is most frequent in it.

        Args:
            read: Gives the data, as `top_itemsets` takes it; called when the ledger was asked.
            place: Where it is, for the ledger; public.
        """
        unsaid = (
            self.unit_is_default and self.layout.user is None and self.layout.basket is not None
        )
        if ledger is not None and self.groups is not None:
            check_recordable("groups", self.groups.grouping.labels or ())
        reads = partial(self._read, read)
        description = None if ledger is None else self._describe(place)
        question = cast(
            Releasable[Any, Any, ItemsetRelease | GroupedItemsetRelease], self.releasable
        )
        return answer(
            question,
            reads,
            ledger,
            description=description,
            warn=warn_of_baskets if unsaid else None,
            coins=coins,
            check=self.dialect.check,
        )

    @property
    def ranked(self) -> bool:
        """Whether the order of the itemsets is released; a published method gives a list."""
        question = self.question
        if isinstance(question, MethodItemsets):
            return True
        return is_ranked(question.selection.choice.mechanism)

    @property
    def has_relative(self) -> bool:
        """Whether the order is made from noisy supports, which are released up to a constant."""
        question = self.question
        return isinstance(question, BestItemsets) and question.selection.order_noise is not None

    def itemsets(self) -> Universe:
        """Return all itemsets there are."""
        return count_itemsets(self.items, self.sizes)

    def _read(self, read: Callable[[ExitStack], object], stack: ExitStack) -> Any:
        if self.groups is not None:
            return self._read_groups(self.groups, read, stack)
        data = declare(read(stack), self.dialect, stack)
        rows = open_baskets(data, stack=stack, separator=self.separator, **self.layout.reading())
        if self.layout.longest is not None:
            _check_longest(rows, self.layout.longest)
        if not self.items.is_open:
            rows = rows.within(_named_items(self.items))
        if isinstance(self.question, MethodItemsets):
            return rows if isinstance(rows, Baskets) else rows.survivors(1)
        return ItemsetSource(
            rows, rows.labels, self.sizes, closed=not self.items.is_open, floor=self.layout.floor
        )

    def _read_groups(
        self, groups: Groups, read: Callable[[ExitStack], object], stack: ExitStack
    ) -> Any:
        layout = self.layout
        data = declare(read(stack), replace(self.dialect, delimiter=self.separator), stack)
        columns = Columns(
            layout.item, layout.user, where=layout.where, missing_users=layout.missing_users
        )
        opened = open_groups(
            data,
            columns,
            list_columns("basket", layout.basket) or (),
            groups.grouping,
            is_long=layout.form == LONG,
            sizes=self.sizes,
            floor=layout.floor,
        )
        stack.enter_context(closing(opened))
        if layout.longest is not None:
            _check_longest(opened, layout.longest)
        return opened

    def _describe(self, place: str | None) -> Description:
        keys = list_columns("basket", self.layout.basket)
        question = (
            self.question if isinstance(self.question, MethodItemsets) else self.question.selection
        )
        first, last = self.sizes.start, self.sizes.stop - 1
        size: object = first if first == last else f"{first}-{last}"
        if self.sizes == read_sizes(ANY):
            size = ANY
        options: dict[str, object] = {
            "size": size,
            "k": question.k,
            "ranked": None if self.ranked else False,
            "neighbors": getattr(question, "neighbors", None),  # a method has its own
            "longest": self.layout.longest,
            "items": self.items.size or OPEN,
            "floor": self.layout.floor,
            **self.layout.reading(),
            "separator": self.separator,
            "encoding": self.dialect.encoding,
            "where": None if self.layout.where is None else str(Condition.of(self.layout.where)),
            "basket": keys[0] if keys and len(keys) == 1 else keys,
            # Before, pairs were counted within a basket: what was recorded so is another answer.
            "rules_over": None if None in (self.rules, self.layout.user) else "all baskets",
        }
        labels: Any = self.items.size
        if self.items.labels is not None:
            labels = list_items(_named_items(self.items))
        numbers = {"supports": self.supports, "rules": self.rules}
        if self.groups is not None:
            options |= self.groups.describe()
            numbers["groups_share"] = self.groups.share or None
        return Description("itemsets", options, numbers, place, None, labels)


def count_itemsets(items: Universe, sizes: range) -> Universe:
    """Return all itemsets of these sizes over the items there are.

    Examples:
        >>> count_itemsets(Universe(10), range(2, 4)).size  # 45 pairs and 120 triples
        165
    """
    if items.is_open:
        return Universe()
    return Universe(Numbering(len(list_items(_named_items(items))), sizes).size)


def _named_items(items: Universe) -> Any:
    """Return what `list_items` takes: all items, or their number."""
    return items.size if items.labels is None else items.labels


def _make_method(name: str, cost: dict[str, Any]) -> Method | str:
    """Return a published method by name.

    Those need no delta. The name itself where there is none.
    """
    from privmax.itemsets.published import METHODS  # competitors: loaded where one is named

    if name not in METHODS:
        check_name(name, others=METHODS)
        return name
    # A contract does not say how its classes are made.
    made = METHODS[name](epsilon=cost.pop("epsilon", None))  # type: ignore[call-arg]
    neighbors = cost.pop("neighbors", None)
    if neighbors not in (None, made.neighbors):
        raise ParameterError("neighbors", neighbors, f"{name} does not take it", "Leave it out.")
    return made


def read_sizes(size: Size) -> range:
    """Return the sizes wanted, as a range.

    Examples:
        >>> read_sizes("2-4"), read_sizes((2, 4)), read_sizes(2)
        (range(2, 5), range(2, 5), range(2, 3))
    """
    value = size
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
        "size", value, f"it must be a whole number from 1 to {LONGEST - 1}, a range, or any",
        "For example 2, or 2-4.",
    )  # fmt: skip


def _read_size(text: str) -> int | str | tuple[int, int]:
    """Return what a text says of the size; the text itself where it says nothing."""
    first, dash, last = text.partition("-")
    low, high = read_whole("size", first), read_whole("size", last)
    if low is None or (high is None and dash):
        return text
    return low if high is None else (low, high)


def count_touched(longest: int, size: Size, user: str | None = None) -> int:
    """Bound the number of itemsets that one basket of at most `longest` items touches.

    Examples:
        >>> count_touched(10, size=2)
        45
    """
    sizes = read_sizes(size)
    if user is not None:
        raise ParameterError(
            "longest", longest, "it limits one basket, and a user may have several", "Leave it out."
        )
    longest = whole("longest", longest)
    within = range(sizes.start, min(sizes.stop, longest + 1))
    return max(1, sum(math.comb(longest, one) for one in within))


def _check_longest(rows: Baskets | TableRows | GroupedBaskets, longest: int) -> None:
    if rows.longest() > longest:
        raise DataError(
            "A basket has more items than longest allows. Shorten such baskets by a public "
            "rule, or raise it."
        )


def _check_groups(
    groups: Groups,
    layout: Layout,
    items: Universe,
    rules: Number | None,
    neighbors: str | None,
) -> None:
    """Refuse what does not go with groups, by name alone."""
    if layout.form not in (None, LONG):
        raise ParameterError(
            "by", groups.by, f"the form {layout.form} has no column of groups",
            "Use a table with one row per item of a basket: give basket and item.",
        )  # fmt: skip
    if layout.basket is None or layout.item is None:
        raise ParameterError.required(
            "basket" if layout.item is not None else "item",
            "groups need a table with one row per item of a basket; lists, matrices and files with "
            "one basket per line have no column of groups",
            "Name the columns of baskets and items.",
        )
    if layout.header is False:
        raise ParameterError("header", False, "groups need a line of names", "Leave it out.")
    if not items.is_open:
        raise ParameterError(
            "items", "<items>", "groups are for items that are not declared", "Leave it out."
        )
    if rules is not None:
        raise ParameterError(
            "rules", rules, "association rules are not released per group",
            "Leave it out, or ask for one group by where.",
        )  # fmt: skip
    columns = Columns(layout.item, layout.user)
    groups.check(columns, items, neighbors, individual="basket")


def _refuse_method(method: Method, groups: Groups | None) -> None:
    """Refuse a published method for groups."""
    if groups is not None:
        raise ParameterError(
            "mechanism", type(method).__name__, "published methods do not release groups",
            "Use a mechanism of privmax, or leave by out.",
        )  # fmt: skip


def _check_method(method: Method, items: Universe, **options: object) -> None:
    """Refuse what a published method does not take."""
    allowed = f"{type(method).__name__} does not take it"
    refuse_given(options, allowed, "Make the method with what it takes.")
    if items.is_open:
        raise ParameterError(
            "items", OPEN, f"{type(method).__name__} needs all items", "Declare them."
        )
