"""Every key that enough individuals have, with counts, released under differential privacy.

Proof:      docs/proofs/keys-rounds.md
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, ClassVar

from privmax.counts import CountNoise, Noise, choose_noise
from privmax.encoding import encode
from privmax.errors import ParameterError
from privmax.grouping import combine
from privmax.keyset.procedure import KeySearch
from privmax.labels import by_name
from privmax.ledger.events import USER, Charge, label
from privmax.ledger.ledger import Ledger
from privmax.ledger.payment import Description
from privmax.ledger.request import Request
from privmax.noise.coins import SYSTEM, Coins
from privmax.numbers import Number, flag, positive
from privmax.payload import LONG_ITEMS, Drawn, Record, ReleasedField, read_number
from privmax.privacy import Privacy
from privmax.release import Release, answer, check_only
from privmax.selection import open_declared
from privmax.sources.conditions import Condition
from privmax.sources.declared import Declared
from privmax.sources.dialect import PLAIN, Dialect
from privmax.sources.pairs import Pairs
from privmax.sources.places import declare
from privmax.sources.reading import pairs
from privmax.sources.roles import Columns
from privmax.sources.users import read_missing_users

PER_USER = 30
"""The number of keys of one individual that count by default."""

_SALT_BITS = 128

WHY = "finds every key that enough individuals have"
"""The reason why nothing else is chosen."""


_OTHER = ReleasedField.of(
    "other",
    record=Record("other", "other", lambda number, _: encode(number),
                  lambda one, _: read_number(one), optional=True),
    words=lambda number: [] if number is None else [f"{number:,} individuals have none of them"],
)  # fmt: skip


@dataclass(frozen=True)
class DrawnKeys(Drawn):
    """Keys that were drawn: the largest noisy count first, or sorted by name.

    Args:
        other: How many individuals have none of the keys, with noise; None: it was not asked for.
    """

    other: int | float | None = None

    FIELDS: ClassVar[tuple[ReleasedField, ...]] = (
        LONG_ITEMS,
        *(one for one in Drawn.FIELDS if one.attribute in ("counts", "error", "noise")),
        _OTHER,
        *(one for one in Drawn.FIELDS if one.part != "answer"),
    )


@dataclass(frozen=True, repr=False)
class KeysRelease(Release):
    """A `Release` whose items are all the keys that were found."""

    payload: DrawnKeys

    @property
    def other(self) -> int | float | None:
        """The number of individuals without any of the keys, with noise; None: not asked for."""
        return self.payload.other

    def describe_other(self) -> str:
        """Describe the number of individuals without any of the keys; "": it was not asked for."""
        if self.other is None:
            return ""
        error = "" if self.error is None else f" ± {self.error:,} (95 %)"
        return f"{self.other:,}{error} individuals have none of the keys"

    @property
    def notes(self) -> tuple[str, ...]:
        """Remarks about the keys, in sentences."""
        if not self.items:
            return ()
        per_user = getattr(self.mechanism, "per_user", PER_USER)
        ordered = "Largest noisy count first." if self.counts else "Sorted by name."
        limit = f"At most {per_user} keys of each individual count."
        return (ordered, limit) if self.counts else (ordered,)


@dataclass(frozen=True, kw_only=True)
class AllKeys:
    """The question for all keys that enough individuals have: procedure and cost. No data enters.

    It implements `Releasable`.

    Args:
        search: What runs.
        counts: What noisy counts cost, in epsilon beside the keys; None: there are none.
        other: Whether to count individuals that have none of the keys, too.
        unit: What the cost hides; None: a user.
    """

    search: KeySearch
    counts: Number | None = None
    other: bool = False
    unit: str | None = None

    def __post_init__(self) -> None:
        if self.counts is not None:
            positive("counts", self.counts, "For example 0.5, or leave it out.")
        object.__setattr__(self, "other", flag("other", self.other))
        if self.other and self.counts is None:
            raise ParameterError(
                "other", self.other, "it is a noisy count, which has its own cost",
                "Give counts, the epsilon of noisy counts, such as 0.5.",
            )  # fmt: skip
        if self.unit is not None:
            label("unit", self.unit)

    @cached_property
    def count_noise(self) -> CountNoise:
        """The noise on counts, where they are asked for, and what they cost.

        An individual counts for `per_user` keys at most, and for "other" only if it has none.
        """
        price = Privacy(self.counts or 0, self.search.delta)
        return choose_noise(price, k=_UNBOUNDED, growth=self.search.per_user)

    @property
    def noise(self) -> Noise | None:
        return None if self.counts is None else self.count_noise.noise

    @property
    def _unit(self) -> str:
        return USER if self.unit is None else self.unit

    def describe(self) -> str:
        """Return a description of the procedure."""
        return repr(self.search)

    def privacy(self) -> Privacy:
        """Return the cost of the keys and their counts."""
        cost = self.search.privacy()
        return cost if self.counts is None else cost + self.count_noise.privacy

    def charge(self) -> Charge:
        """Return the charge."""
        return Charge(self.privacy(), neighbors=self.search.neighbors, unit=self._unit)

    def check(self) -> None:
        """Find the noise and the thresholds, which follow from public numbers."""
        self.search.prepare()

    def preflight(self, source: Pairs) -> None:
        """Nothing more is to be met: the pairs are counted and kept."""

    def draw(self, source: Pairs, coins: Coins) -> DrawnKeys:
        """Search for the keys, and return them with names and counts."""
        drawn = self.search.draw(source, coins)
        items = source.name(drawn.numbers)
        if self.counts is None:
            return DrawnKeys(tuple(sorted(items, key=by_name)), drawn.diagnostics)
        noise = self.count_noise.noise
        true_counts, others = source.count(drawn.numbers, self.search.per_user)
        counts = noise.add_all(true_counts.tolist(), coins)
        ranked = sorted(zip(items, counts, strict=True), key=lambda one: (-one[1], by_name(one[0])))
        return DrawnKeys(
            tuple(item for item, _ in ranked),
            drawn.diagnostics,
            tuple(count for _, count in ranked),
            noise,
            other=noise.add(others, coins) if self.other else None,
        )

    def draw_nothing(self) -> DrawnKeys:
        """No keys."""
        return DrawnKeys(counts=None if self.counts is None else (), noise=self.noise)

    def write(self, payload: DrawnKeys, source: Pairs) -> dict[str, Any]:
        """Write what was drawn for a ledger."""
        return payload.to_json()

    def read(self, written: Mapping[str, Any]) -> DrawnKeys:
        """Return what a ledger recorded."""
        return DrawnKeys.from_json(written)

    def release(self, payload: DrawnKeys) -> KeysRelease:
        """The release of what was drawn."""
        return KeysRelease(
            payload,
            self.privacy(),
            self.search,
            WHY,
            unit=self._unit,
            requested=0,
            counts_privacy=None if self.counts is None else self.count_noise.privacy,
        )


_UNBOUNDED = 1 << 62
"""The bound on the number of counts: there is none, as for keys."""


def keys(
    data: object,
    *,
    item: str | Sequence[str] | None = None,
    user: str | None = None,
    where: str | None = None,
    columns: Columns | None = None,
    per_user: int = PER_USER,
    counts: Number | None = None,
    other: bool = False,
    epsilon: Number,
    delta: Number,
    ledger: Ledger | Request | None = None,
    coins: Coins = SYSTEM,
) -> KeysRelease:
    """Release every key that enough individuals have, when no one can list the keys.

    How many individuals a key must have depends on epsilon, delta, `per_user` and on how many keys
    individuals have: `privmax plan --keys` says it. The cost is the same for one key and for a
    hundred thousand.

    Args:
        data: Rows with an item and a user each, as `select` takes them: a path (CSV, JSON Lines,
            Parquet, a database), a pandas, polars, Arrow or Spark frame, a DuckDB relation, an Ibis
            table. They stay in their engine.
        item: Column of the keys, or several that name one together.
        user: Column of the individuals.
        where: Which rows count: a condition on each row alone, such as "country = 'DE'".
        columns: The same as one value, with `missing_users`, which is rarely needed.
        per_user: How many keys of one individual count at most; public. Which ones follows from
            the individual's own keys alone.
        counts: Epsilon to pay beside, such as "0.5", for noisy counts of the individuals that have
            each key (`release.counts`) with their error bar (`release.error`).
        other: With `counts`: also how many individuals have none of the keys (`release.other`).
        epsilon: The privacy cost; a float means the decimal that it prints as.
        delta: Probability with which the guarantee may fail, above 0: for example 1e-6.
        ledger: The privacy budget that pays, or a request to it, as `select` takes it.
        coins: Source of random bits; for tests only.

    Returns:
        All the keys, the largest noisy count first or sorted by name. Those of a type that JSON
        cannot hold come back from a ledger as text.

    Raises:
        ParameterError: An option is out of bounds, or a column is not there.
        DataError: A row has an item but no user.
        BudgetError: The budget does not allow it. Nothing was read or charged.

    Examples:
        >>> import pandas as pd, privmax
        >>> rows = pd.DataFrame({"person": range(900), "city": ["Rome"] * 899 + ["Ulm"]})
        >>> privmax.keys(rows, item="city", user="person", epsilon=1, delta=1e-6).items
        ('Rome',)
    """
    request = Request.of(ledger)
    named = combine("columns", Columns, columns, item=item, user=user, where=where)
    declared = Declared.of(data, check=request.check)
    search = KeySearch(epsilon=epsilon, delta=delta, per_user=per_user)
    question = AllKeys(search=search, counts=counts, other=other, unit=request.unit)
    enquiry = KeysEnquiry.of(question, named, declared.dialect)
    read, place = open_declared(declared, request)
    return enquiry.answer(read, request.payment(), place=place, coins=coins)


@dataclass(frozen=True)
class KeysEnquiry:
    """A question for keys of data as `keys` takes it, before any is read, as `of` makes it.

    Args:
        question: What runs, at what cost.
        columns: What the columns of the table are.
        condition: Which rows count; None: all.
        dialect: What is declared of a file of text, and whether this is a check only.
    """

    question: AllKeys
    columns: Columns
    condition: Condition | None = None
    dialect: Dialect = PLAIN

    @classmethod
    def of(cls, question: AllKeys, columns: Columns, dialect: Dialect = PLAIN) -> KeysEnquiry:
        """Check the columns, by name alone."""
        for option, name in (("item", columns.item), ("user", columns.user)):
            if name is None:
                what = "keys" if option == "item" else "individuals: a key is released if enough " \
                    "of them have it"  # fmt: skip
                raise ParameterError.required(
                    option, f"it names the column of {what}", "Name a column."
                )
        dropped = read_missing_users(columns.missing_users, columns.user)
        where = None if columns.where is None else Condition.of(columns.where)
        return cls(question, replace(columns, missing_users=dropped), where, dialect)

    def answer(
        self,
        read: Callable[[ExitStack], object],
        ledger: Ledger | Request | None = None,
        *,
        place: str | None = None,
        coins: Coins = SYSTEM,
    ) -> KeysRelease:
        """Read the data and find its keys.

        Args:
            read: Gives the data, as `keys` takes it; called when the ledger was asked.
            ledger: What pays.
            place: Where the data is, for the ledger; public.
            coins: Source of random bits; for tests only.
        """
        if ledger is None:  # with one, this comes before the charge
            self.question.check()
        reads = partial(self._read, read, coins)
        description = None if ledger is None else self._describe(place)
        if self.dialect.check:
            return check_only(self.question, reads, ledger, description=description)
        return answer(self.question, reads, ledger, description=description, coins=coins)

    def _read(self, read: Callable[[ExitStack], object], coins: Coins, stack: ExitStack) -> Pairs:
        data = declare(read(stack), self.dialect, stack)
        salt = f"{coins.bits(_SALT_BITS):x}"
        return stack.enter_context(closing(pairs(data, self.columns, salt)))

    def _describe(self, place: str | None) -> Description:
        question = self.question
        options = {
            **{name: value for name, value in vars(self.columns).items() if name != "where"},
            "per_user": question.search.per_user,
            "other": question.other or None,
            "where": self.condition and str(self.condition),
            "delimiter": self.dialect.delimiter,
            "encoding": self.dialect.encoding,
        }
        return Description("keys", options, {"counts": question.counts}, place)
