"""The most frequent itemsets, released under differential privacy.

Proof:      docs/proofs/itemsets.md
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Self, cast

import numpy as np

from privmax.errors import DataError, ParameterError
from privmax.itemsets.baskets import Baskets, declared
from privmax.itemsets.methods import METHODS
from privmax.itemsets.methods.base import Method, Problem
from privmax.itemsets.methods.universe import Universe
from privmax.itemsets.miner import Miner
from privmax.itemsets.reading import baskets, columns, single
from privmax.itemsets.source import ItemsetSource
from privmax.itemsets.tables import TableRows
from privmax.ledger.answers import encoded
from privmax.ledger.events import BASKET, USER
from privmax.ledger.ledger import Ledger
from privmax.ledger.paying import Codec, Draw, paid, present
from privmax.mechanisms.contract import Mechanism
from privmax.noise.coins import SYSTEM, Coins
from privmax.noise.samplers import discrete_laplace
from privmax.numbers import Number, positive, whole
from privmax.privacy import Privacy
from privmax.profile import OPEN, Profile
from privmax.select import Release, check, checked, drawn, ready, rehearse, unanswered
from privmax.warnings import warn_of_baskets, warn_of_price

ANY = "any"
LONGEST = 1 << 20
"""`size="any"` ends at sets of so many items."""

Size = int | str | tuple[int, int] | range


@dataclass(frozen=True)
class ItemsetRelease(Release):
    """A `Release` whose items are itemsets, each a tuple of items in their fixed order.

    supports    noisy support of each, where that was asked for or comes with the method; otherwise
                empty
    """

    supports: tuple[int, ...] = ()

    def written(self, encoded: Codec) -> dict[str, Any]:
        return {
            **super().written(encoded),
            "supports": [encoded(number) for number in self.supports],
        }

    def with_answer(
        self,
        answer: Mapping[str, Any],
        decoded: Codec,
        request: str | None,
        recorded: str | None = None,
    ) -> Self:
        supports = tuple(decoded(number) for number in answer["supports"])
        return replace(super().with_answer(answer, decoded, request, recorded), supports=supports)


def top_itemsets(
    data: object,
    *,
    size: Size = 2,
    k: int = 1,
    epsilon: Number | None = None,
    delta: Number | None = None,
    mechanism: Mechanism | Method | None = None,
    items: int | str | Collection[Hashable] = OPEN,
    neighbors: str | None = None,
    longest: int | None = None,
    floor: int = 0,
    supports: Number | None = None,
    basket: str | Sequence[str] | None = None,
    item: str | None = None,
    user: str | None = None,
    form: str | None = None,
    separator: str | None = None,
    header: bool | None = None,
    unit: str | None = None,
    ledger: Ledger | None = None,
    request: str | None = None,
    account: str | None = None,
    dataset: str | None = None,
    coins: Coins = SYSTEM,
) -> ItemsetRelease:
    """Release the most frequent itemset, or the k most frequent, under differential privacy.

    data        a path: .dat (one basket a line, items as whole numbers), CSV, Parquet or a folder
                of it. Or lists of items; a frame with the columns `basket` and `item`, or with a
                column of 0 and 1 for each item; a SciPy matrix; an Ibis table, whose rows stay in
                their engine
    size        how many items a set has: 2, or (2, 4) for two to four, or "any"
    k           how many itemsets to release, best first; the price is for all of them. There may be
                fewer
    epsilon     the price; a float means the decimal that it prints as: 0.1 is one tenth
    delta       probability with which the guarantee may fail; may be 0 only where all items are
                declared
    mechanism   a mechanism or method object, instead of epsilon, delta and neighbors; by default
                `auto` chooses
    items       "open": items are not known in advance. Otherwise all of them, or their number n if
                they are 0 … n − 1; public knowledge, never read off the data. Every itemset can
                then be released, also one nobody has
    neighbors   "add-remove" (the default): one individual more or less; "replace": another
                individual's baskets
    longest     no basket has more than so many different items, as a public rule; then less noise
                may do
    floor       public; supports at or below it count as nothing. It bounds the work where all
                supports are small
    supports    a part of epsilon, given beside it, for noisy supports of what is released
    basket, item, user   columns of tables and CSV files with one row per item of a basket; a list
                of several columns `basket` tells baskets apart together. ONE INDIVIDUAL IS ONE
                BASKET, unless `user` says whose it is: then an itemset counts once for each user
                with a basket that holds it
    form        of a file, where its name does not tell: "fimi", "wide" (one basket a line), "long"
                (one row an item) or "onehot" (a column for each item, 0 or 1 in its rows), the last
                also of tables and frames
    separator   of a CSV file; header: whether one with a basket per line begins with a line of
                names, to be skipped
    unit        what the price hides, for the ledger, which holds one unit: "user" with `user`,
                otherwise "basket". Say it where you know better: unit="user" if nobody has two
                baskets
    ledger      the privacy budget that pays, supports included: charged before the draw; the answer
                is recorded before it is returned. What does not fit is refused (BudgetError) before
                any data is read
    request, account, dataset   with a ledger: an id, under which a repeated request gives the
                recorded answer, reads no data and costs nothing more; a sub-budget to charge as
                well; a name of the data for the history
    coins       source of random bits; for tests only

    The release is empty when nothing could be released; that costs the same.
    """
    sizes = _sizes(size)
    whole("floor", floor, least=0)
    spread = None if supports is None else positive("supports", supports)
    is_open = isinstance(items, str) and items == OPEN
    growth = None if longest is None else touched(longest, size, user)
    known_items = None if is_open else declared(cast(Any, items))
    number = None if known_items is None else len(known_items)
    named = number if isinstance(known_items, range) else known_items
    hidden = checked(unit) or (BASKET if user is None else USER)
    method = cast(Method, mechanism) if type(mechanism) in METHODS.values() else None
    if method is not None:
        _for_method(
            method,
            epsilon=epsilon,
            delta=delta,
            neighbors=neighbors,
            supports=supports,
            longest=longest,
        )
        if is_open:
            raise ParameterError(
                "items", OPEN, f"{type(method).__name__} needs all items", "Declare them."
            )
        whole("k", k)
        plain = Release(
            (), method.privacy(), cast(Mechanism, method), "you chose it", {}, unit=hidden
        )
    else:
        chosen = cast(Mechanism | None, mechanism)
        made_for = chosen is not None and growth is not None and chosen.growth == growth
        check(chosen, epsilon, delta, neighbors, None if made_for else growth, k, is_open=is_open)
        universe = None if number is None else Universe(number, sizes).size
        plain = unanswered(
            chosen, epsilon, delta, neighbors, growth, k, universe=universe, unit=hidden
        )
    empty = _with_price(plain, spread)
    options: dict[str, object] = {
        "size": _told(sizes),
        "k": k,
        "neighbors": neighbors,
        "longest": longest,
    }
    options |= {"items": OPEN if number is None else number, "floor": floor}
    keys = columns("basket", basket)
    options |= {"basket": keys[0] if keys and len(keys) == 1 else keys, "item": item, "user": user}
    options |= {"form": form, "separator": separator, "header": header}
    single(item=item, user=user)
    payer = paid(
        ledger, request, account, dataset, "itemsets", options, {"supports": supports}, data, named
    )
    if payer is not None and (known := payer.recorded(empty)) is not None:
        return known
    warn_of_price(empty.privacy)
    unsaid = unit is None and user is None and basket is not None
    if unsaid and payer is not None and payer.strict:  # before the charge
        warn_of_baskets()

    def read(held: ExitStack) -> Callable[[], ItemsetRelease]:
        rows = baskets(
            present(data),
            basket=basket,
            item=item,
            user=user,
            form=form,
            separator=separator,
            header=header,
            held=held,
        )
        if longest is not None:
            _fitting(rows, longest)
        if not is_open:
            rows = rows.within(items)
        if unsaid:  # when there are baskets: an error would be the better hint
            warn_of_baskets()
        if method is not None:
            return _by_method(method, empty, rows, sizes, k, coins)
        source = ItemsetSource(rows, rows.labels, sizes, closed=not is_open, floor=floor)
        if payer is not None:
            ready(plain.mechanism, source.profile)
        return lambda: _with_supports(drawn(plain, source, coins), source, spread, floor, coins)

    def drawing(held: ExitStack) -> Draw:
        draw = read(held)
        return lambda: draw().written(encoded)

    if payer is None:
        with ExitStack() as held:
            return read(held)()
    if method is not None:
        _rehearse(method, owned=user is not None)
    elif payer.strict:
        rehearse(plain.mechanism, Profile([], universe=universe))
    return payer.answer(empty, drawing)


def _sizes(size: Size) -> range:
    """The sizes wanted, as a range."""
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
        "size", size, f'it must be a whole number from 1 to {LONGEST - 1}, two of them in order, '
                      f'or "any"',
        "For example 2, or (2, 4).",
    )  # fmt: skip


def touched(longest: int, size: Size, user: str | None = None) -> int:
    """How many itemsets one individual's record touches at most, if it is one basket of at most
    `longest` items.
    """
    sizes = _sizes(size)
    if user is not None:
        raise ParameterError(
            "longest", longest, "it bounds one basket, and a user may have many", "Leave it out."
        )
    within = range(sizes.start, min(sizes.stop, whole("longest", longest) + 1))
    return max(1, sum(math.comb(longest, one) for one in within))


def universe_size(items: int | str | Collection[Hashable], size: Size) -> int | str:
    """How many itemsets of these sizes there are over the declared items; "open" where none are
    declared.
    """
    if isinstance(items, str) and items == OPEN:
        return OPEN
    return Universe(len(declared(items)), _sizes(size)).size


def _fitting(rows: Baskets | TableRows, longest: int) -> None:
    if rows.longest() > longest:
        raise DataError(
            "A basket has more items than longest says. Shorten such by a public rule, or raise it."
        )


def _for_method(method: Method, **options: object) -> None:
    for name, value in options.items():
        if value is not None:
            raise ParameterError(
                name,
                value,
                f"{type(method).__name__} does not take it",
                "Make the method with what it takes.",
            )


def _told(sizes: range) -> int | str:
    """Sizes as a ledger writes them."""
    if len(sizes) == 1:
        return sizes.start
    return ANY if sizes == _sizes(ANY) else f"{sizes.start}-{sizes.stop - 1}"


def _with_price(plain: Release, spread: Fraction | None) -> ItemsetRelease:
    """A release that lacks its answer, at its price with supports."""
    privacy = plain.privacy
    if spread is not None:
        privacy = Privacy(privacy.epsilon + spread, privacy.delta)
    return ItemsetRelease((), privacy, plain.mechanism, plain.why, {}, unit=plain.unit)


def _by_method(
    method: Method,
    empty: ItemsetRelease,
    rows: Baskets | TableRows,
    sizes: range,
    k: int,
    coins: Coins,
) -> Callable[[], ItemsetRelease]:
    held = rows if isinstance(rows, Baskets) else rows.surviving(1)

    def draw() -> ItemsetRelease:
        problem = Problem(lambda wanted: Miner(held, wanted), held, sizes, k)
        found = method.draw(problem, coins)
        named = tuple(tuple(held.labels[code] for code in one.codes) for one in found)
        known = tuple(one.support for one in found if one.support is not None)
        return replace(empty, items=named, supports=known if len(known) == len(named) else ())

    return draw


def _rehearse(method: Method, *, owned: bool) -> None:
    """Meet what the method refuses before the charge: it draws from no baskets of three invented
    items.
    """
    none = np.zeros(0, np.int64)
    rows = Baskets(np.zeros(1, np.int64), none.astype(np.int32), range(3), none if owned else None)
    method.draw(Problem(lambda wanted: Miner(rows, wanted), rows, range(2, 3), 1), SYSTEM)


def _with_supports(
    release: Release, source: ItemsetSource, spread: Fraction | None, floor: int, coins: Coins
) -> ItemsetRelease:
    """The release, with noisy supports where `spread` pays for them.

    One individual moves each of at most k supports by 1, all the same way, so noise of scale k /
    spread costs `spread`; it is charged also where fewer, or none, are released.
    """
    free = dict(release.free)
    if "max_estimate" in free:
        free["max_estimate"] += floor
    privacy = release.privacy
    noisy: tuple[int, ...] = ()
    if spread is not None:
        k = release.mechanism.k  # a mechanism may bring its own
        privacy = Privacy(privacy.epsilon + spread, privacy.delta)
        noisy = tuple(
            source.support(one) + discrete_laplace(k / spread, coins) for one in release.items
        )
    return ItemsetRelease(
        release.items, privacy, release.mechanism, release.why, free, noisy, unit=release.unit
    )
