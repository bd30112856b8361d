"""The selection of the best items: source ▸ profile ▸ mechanism ▸ outcome ▸ source ▸ release."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from privmax.best_items import BestItems
from privmax.encoding import UNRECORDABLE, check_recordable, recordable
from privmax.errors import DataError, refuse_given
from privmax.grouping import IN_COLUMNS, IN_DATA, IN_REQUEST, IN_SCORES, combine, moved
from privmax.labels import label_by_value
from privmax.ledger.events import ROW, USER
from privmax.ledger.request import Request
from privmax.mechanisms.contract import Law, Mechanism
from privmax.mechanisms.registry import make
from privmax.noise.coins import SYSTEM, Coins
from privmax.numbers import Number, whole
from privmax.profile import Profile
from privmax.release import Releasable, Release, answer, is_ranked
from privmax.sources.base import Source
from privmax.sources.conditions import Condition
from privmax.sources.databases import open_database
from privmax.sources.declared import Declared
from privmax.sources.dialect import PLAIN, Dialect
from privmax.sources.places import declare, path_name
from privmax.sources.reading import grouped, source
from privmax.sources.roles import Columns
from privmax.sources.scale import Scale, Scores
from privmax.universe import OPEN, OPEN_UNIVERSE, Universe
from privmax.warnings import warn_of_rows

if TYPE_CHECKING:
    from privmax.best_per_group import BestPerGroup
    from privmax.groups import Groups
    from privmax.ledger.ledger import Ledger
    from privmax.ledger.payment import Description
    from privmax.sources.grouped import GroupedSource


@moved({**IN_COLUMNS, **IN_SCORES, **IN_DATA, **IN_REQUEST})
def select(
    data: object,
    *,
    item: str | Sequence[str] | None = None,
    user: str | None = None,
    score: str | None = None,
    where: str | None = None,
    columns: Columns | None = None,
    by: str | Groups | None = None,
    epsilon: Number | None = None,
    delta: Number | None = None,
    mechanism: Mechanism | str | None = None,
    universe: object = OPEN,
    scores: Scores | None = None,
    k: int = 1,
    ranked: bool = False,
    counts: Number | None = None,
    ledger: Ledger | Request | None = None,
    coins: Coins = SYSTEM,
) -> Release:
    """Release the best candidate, or the best k, under differential privacy.

    A strict ledger is charged before the data is read, and whatever is wrong with it gives no
    answer (`privmax help promises`). The answer is None if nothing stood out; that costs the same.
    With a ledger items come back as plain Python values; those of a type that JSON does not have,
    which mappings and declared universes may not contain, come back as text, their `repr`.

    Args:
        data: Mapping from label to score; or a list, NumPy, polars or Arrow array (labels are
            positions); or a pandas Series (labels are its index); or a table with the columns
            `item` and `score`. Or a table of rows to count: an Ibis table, a path (CSV, whose
            values are text, or JSON Lines; Parquet, a folder of Parquet files; a pattern of such),
            an open file of CSV, a DuckDB relation, a Spark, pandas, polars or Arrow frame. The data
            stays in its engine. A `TextFile` says how a file of text is to be read, and a
            `Database` names a table of one.
        item: Column of the items, or several that name one together.
        user: Column of the individuals: the score of an item is how many different ones it has.
            Without `user` and `score` EVERY ROW COUNTS AS ONE INDIVIDUAL.
        score: Column of ready scores.
        where: Which rows count: a condition on each row alone, such as
            "country = 'DE' and age >= 18" (`privmax help inputs`). Of a dict choose them before.
        columns: The same as one value, with columns that are rarely needed, such as weights.
        by: Column of groups, such as regions: the best of every group at the cost of one. Each
            individual counts in the group that most of its own rows name. `Groups` declares all
            groups, or lets an individual count in several; otherwise a part of the cost finds the
            groups that enough individuals have. Comes as a `GroupedRelease`.
        epsilon: The privacy cost; a float means the decimal that it prints as: 0.1 is one tenth.
        delta: Probability with which the guarantee may fail; may be 0 only in a closed universe.
        mechanism: A mechanism object, instead of epsilon, delta, and the neighbors and growth of
            `scores`; or the name of one, such as "nested-margin", beside them; by default `auto`
            chooses one.
        universe: "open": candidates are not known in advance. Otherwise the labels of all
            candidates, or, where all are listed, their number; it must be public knowledge, never
            computed from the data. Candidates without a score have score 0.
        scores: By how much and which way one individual can move scores, where they are not counts.
        k: How many items to release, as a set, which comes sorted by name; the cost is for all of
            them. There may be fewer: `release.notes` says so.
        ranked: Release their order, too, best first. That needs a clearer lead, and `release.why`
            has both. Where the order is made from noisy counts, `release.relative` has how far each
            is behind the first, and `release.close` marks those that are not told apart from the
            one before; a list per group (`by`) comes without them. In a closed universe a list may
            be what needs the least: `release.ranked` says what came.
        counts: Epsilon to pay beside, such as "0.2", for noisy counts of the items
            (`release.counts`) with their error bar (`release.error`); they get the noise that is
            smallest for k of them. Where that is Gaussian, it uses the same delta once more, and
            `release.privacy` holds both.
        ledger: The privacy budget that pays: the cost is charged before the draw, and the answer is
            recorded before it is returned. What does not fit is refused (BudgetError) before any
            data is read. To name the request, the account to charge as well or the data, give
            `ledger.request("nightly", account=…, dataset=…)`: a repeated request returns the
            recorded answer, reads no data and costs nothing more. A request also says what the cost
            hides (`unit="user"` if every row is a person) and whether this is only a check
            (`check=True`, where errors depend on the data, as `privmax help promises` has it).
            Without a ledger `Request(unit=…, check=…)` says these two.
        coins: Source of random bits; for tests only.

    Returns:
        What was released, with its cost. After a check `release.checked` is true.

    Raises:
        ParameterError: An option is not allowed, or does not fit another.
        DataError: The data cannot be used.
        BudgetError: The ledger does not allow it.

    Examples:
        >>> select({"apple": 912, "pear": 640, "fig": 12}, epsilon=1, delta=1e-6).item
        'apple'
    """
    request = Request.of(ledger)
    columns = combine("columns", Columns, columns, item=item, user=user, score=score, where=where)
    moves = combine("scores", Scores, scores)
    declared = Declared.of(data, check=request.check)
    selection = Selection.of(
        columns,
        sensitivity=moves.sensitivity,
        resolution=moves.resolution,
        unit=request.unit,
        universe=Universe.of(universe),
        given=mechanism,
        epsilon=epsilon,
        delta=delta,
        neighbors=moves.neighbors,
        growth=moves.growth,
        k=k,
        ranked=ranked,
        counts=counts,
        dialect=declared.dialect,
        groups=None if by is None else _read_groups(by),
    )
    read, place = open_declared(declared, request)
    return selection.answer(read, request.payment(), place=place, coins=coins)


def _read_groups(by: str | Groups) -> Groups | None:
    from privmax.groups import Groups

    return Groups.of(by)


def open_declared(
    declared: Declared, request: Request
) -> tuple[Callable[[ExitStack], object], str | None]:
    """Refuse data by its name alone, and say how to read it.

    Nothing is asked of the data itself, not even its class: nothing was charged yet.

    Args:
        declared: The data.
        request: What will pay.

    Returns:
        What opens the data when the ledger was asked, and where it is, for the ledger.
    """
    data, table = declared.data, declared.table
    is_named = path_name(data) is not None
    if is_named or table is not None:
        declared.refuse(request)
    if not is_named:
        return (lambda _: data), None
    opened = partial(open_database, data, table)
    if request.ledger is None:
        return opened, None
    from privmax.ledger.payment import source_location

    return opened, source_location(data, table)


@dataclass(frozen=True)
class Selection:
    """A selection from data as `select` takes it, before any is read, as `of` makes it.

    Args:
        question: What runs, at what cost; of groups, in each of them.
        columns: Of a table: what its columns are.
        sensitivity: By how much one individual moves a score, as `Scores` takes it.
        resolution: Of the grid of scores, as `Scores` takes it.
        unit_is_default: Whether it was left open what the cost hides.
        condition: Which rows count; None: all.
        dialect: What is declared of a file of text, and whether this is a check only.
        groups: The groups to select in; None: all rows are one.
        counts: What noisy counts cost, as it was given.
    """

    question: BestItems
    columns: Columns
    sensitivity: Number | None = None
    resolution: Number | None = None
    unit_is_default: bool = True
    condition: Condition | None = None
    dialect: Dialect = PLAIN
    groups: Groups | None = None
    counts: Number | None = None

    @classmethod
    def of(
        cls,
        columns: Columns,
        *,
        sensitivity: Number | None = None,
        resolution: Number | None = None,
        unit: str | None = None,
        dialect: Dialect = PLAIN,
        groups: Groups | None = None,
        **options: Any,
    ) -> Selection:
        """Make the question that the options of `select` ask.

        Args:
            columns: Of a table: what its columns are.
            sensitivity: By how much one individual moves a score.
            resolution: Of the grid of scores.
            unit: What the cost hides; by default one of the rows, if those are counted, and
                otherwise a user.
            dialect: What is declared of a file of text, and whether this is a check only.
            groups: The groups to select in.
            **options: Those of `BestItems`.
        """
        if columns.missing_users is not None:
            columns = columns.checked()
        if groups is not None:
            given = options.get("given")
            relation = options.get("neighbors") or getattr(given, "neighbors", None)
            groups.check(columns, options.get("universe", OPEN_UNIVERSE), relation)
            scaled = {"sensitivity": sensitivity, "resolution": resolution}
            refuse_given(scaled, "it has no meaning when groups are counted")
        counts_rows = columns.user is None and columns.score is None and columns.item is not None
        default = ROW if counts_rows else USER
        scale = Scale.of(sensitivity, resolution)
        if columns.weight is not None and columns.bound is not None:
            scale = replace(scale, steps=whole("bound", columns.bound))
        question = BestItems(**options, scale=scale, unit=default if unit is None else unit)
        if not scale.whole and (question.given is None or isinstance(question.given, str)):
            scale.neighbors(question.neighbors)
        if groups is not None:
            from privmax.best_per_group import ask_in_group

            question = ask_in_group(question, groups)
        where = None if columns.where is None else Condition.of(columns.where)
        given = (columns, sensitivity, resolution, unit is None, where, dialect, groups)
        return cls(question, *given, options.get("counts"))

    @property
    def releasable(self) -> BestItems | BestPerGroup:
        """The question that is charged and answered, in every group if there are any."""
        if self.groups is None:
            return self.question
        from privmax.best_per_group import BestPerGroup

        return BestPerGroup(best=self.question, groups=self.groups)

    def answer(
        self,
        read: Callable[[ExitStack], object],
        ledger: Ledger | Request | None = None,
        *,
        place: str | None = None,
        ready: Mapping[str, str] | None = None,
        coins: Coins = SYSTEM,
    ) -> Release:
        """Read the data and select from it.

        Args:
            read: Gives the data, as `select` takes it; called when the ledger was asked.
            ledger: What pays, if anything does.
            place: Where the data is, for the ledger; public.
            ready: Which columns have items and scores, for the ledger, if `columns` does not say.
            coins: Source of random bits; for tests only.
        """
        if ledger is not None and self.question.universe.labels is not None:
            check_recordable("universe", self.question.universe.labels)
        if ledger is not None and self.groups is not None:
            check_recordable("groups", self.groups.grouping.labels or ())
        unsaid = self.unit_is_default and self.question.unit == ROW
        reads = partial(self._read, read, ledger is not None)
        description = None if ledger is None else self._describe(place, ready)
        question: Releasable[Any, Any, Release] = self.releasable
        return answer(
            question,
            reads,
            ledger,
            description=description,
            warn=warn_of_rows if unsaid else None,
            coins=coins,
            check=self.dialect.check,
        )

    def _read(
        self, read: Callable[[ExitStack], object], is_recorded: bool, stack: ExitStack
    ) -> Source | GroupedSource:
        data = read(stack)
        if self.dialect != PLAIN:
            data = declare(data, self.dialect, stack)
        if self.groups is not None:
            counted = grouped(data, self.columns, self.groups.grouping)
            return stack.enter_context(closing(counted))
        public: dict[str, Any] = {
            "universe": self.question.universe,
            "sensitivity": self.sensitivity,
            "resolution": self.resolution,
        }
        if isinstance(data, Mapping):
            if is_recorded and not recordable(map(label_by_value, data)):
                raise DataError(f"A label is {UNRECORDABLE}. Use text or numbers.")
            if all(one is None for one in vars(self.columns).values()):
                from privmax.sources.memory import MemorySource

                return MemorySource(data, **public)  # labels and scores: nothing is opened
        return stack.enter_context(closing(source(data, self.columns, **public)))

    def _describe(self, place: str | None, ready: Mapping[str, str] | None) -> Description:
        from privmax.ledger.payment import Description

        question, universe = self.question, self.question.universe
        options = vars(self.columns) | {
            "k": question.k,
            "ranked": None
            if is_ranked(question.choice.mechanism)
            else False,  # as before there were sets
            "where": self.condition and str(self.condition),
            "growth": question.growth,
            "neighbors": question.neighbors,
            "universe": universe.size or OPEN,
            "delimiter": self.dialect.delimiter,
            "encoding": self.dialect.encoding,
        }
        numbers = {
            "sensitivity": self.sensitivity,
            "resolution": self.resolution,
            "counts": self.counts,
        }
        if self.groups is not None:
            options |= self.groups.describe()
            numbers["groups_share"] = self.groups.share or None
        labels: int | Iterable[object] | None = universe.size
        if universe.labels is not None:
            labels = map(label_by_value, universe.labels)
        return Description("select", options, numbers, place, ready, labels)


@moved({**IN_COLUMNS, **IN_SCORES})
def law(
    data: object,
    *,
    mechanism: Mechanism | str,
    epsilon: Number | None = None,
    delta: Number | None = None,
    universe: object = OPEN,
    scores: Scores | None = None,
    item: str | Sequence[str] | None = None,
    user: str | None = None,
    score: str | None = None,
    where: str | None = None,
    columns: Columns | None = None,
) -> dict[Any, float] | Law:
    """Compute the exact distribution of `select`'s answer.

    It is computed from the scores without any noise: for public or synthetic data only, never
    release it. Positions beyond a list, which `select` names, count as no answer here. With k > 1
    it is the law of the first item.

    Args:
        data: Whatever `select` takes, or a `Profile`, which has no labels.
        mechanism: A mechanism object; or the name of one, such as "nested-margin", with epsilon and
            whatever else it takes.
        epsilon: As in `select`, with the name of a mechanism.
        delta: As in `select`, with the name of a mechanism.
        universe: As in `select`.
        scores: As in `select`.
        item: As in `select`.
        user: As in `select`.
        score: As in `select`.
        where: As in `select`.
        columns: As in `select`.

    Returns:
        {item: probability, None: probability of no answer}; for a `Profile` the law by score.

    Raises:
        ParameterError: An option is not allowed, or does not fit another.
        DataError: The data cannot be used.

    Examples:
        >>> counts = {"a": 90, "b": 1}
        >>> round(law(counts, mechanism="exponential", epsilon=1, universe=["a", "b"])["a"], 6)
        1.0
    """
    columns = combine("columns", Columns, columns, item=item, user=user, score=score, where=where)
    moves = combine("scores", Scores, scores)
    mechanism = make(
        mechanism, epsilon=epsilon, delta=delta, neighbors=moves.neighbors, growth=moves.growth
    )
    if isinstance(data, Profile):
        return mechanism.law(data)
    with ExitStack() as stack:
        read = source(
            Declared.of(data).open(stack),
            columns.checked(),
            universe=Universe.of(universe),
            sensitivity=moves.sensitivity,
            resolution=moves.resolution,
        )
        stack.enter_context(closing(read))
        exact = mechanism.law(read.profile)
        chances = {label: exact.of(value) for label, value in read.scores()}
    return {**chances, None: max(0.0, 1.0 - sum(chances.values()))}
