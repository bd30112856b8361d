"""The front door: source ▸ profile ▸ mechanism ▸ outcome ▸ source ▸ release."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from privmax.encoding import recordable
from privmax.errors import DataError, ParameterError
from privmax.labels import label_by_value, plain_label
from privmax.ledger.events import ROW, USER
from privmax.ledger.ledger import Ledger
from privmax.ledger.payment import Question, Request, place_of
from privmax.mechanisms.contract import Law, Mechanism
from privmax.mechanisms.registry import make
from privmax.noise.coins import SYSTEM, Coins
from privmax.numbers import Number, whole
from privmax.profile import Profile
from privmax.release import Release, Terms, answer, is_ranked
from privmax.sources.base import Source
from privmax.sources.conditions import Condition
from privmax.sources.databases import open_database
from privmax.sources.reading import source
from privmax.sources.scale import Scale
from privmax.sources.tables import Columns
from privmax.universe import OPEN, Universe
from privmax.warnings import warn_of_rows


def select(
    data: object,
    *,
    epsilon: Number | None = None,
    delta: Number | None = None,
    mechanism: Mechanism | str | None = None,
    universe: object = OPEN,
    neighbors: str | None = None,
    sensitivity: Number | None = None,
    resolution: Number | None = None,
    growth: int | None = None,
    item: str | Sequence[str] | None = None,
    user: str | None = None,
    score: str | None = None,
    weight: str | None = None,
    bound: int | None = None,
    where: str | None = None,
    table: str | None = None,
    k: int = 1,
    ranked: bool = False,
    counts: Number | None = None,
    unit: str | None = None,
    ledger: Ledger | Request | None = None,
    coins: Coins = SYSTEM,
) -> Release:
    """Release the best candidate, or the best k, under differential privacy.

    data          mapping from label to score; or a list, NumPy, polars or Arrow array (labels are
                  positions); or a pandas Series (labels are its index); or a table with the columns
                  `item` and `score`. Or a table of rows to count: an Ibis table, a path (CSV, whose
                  values are text, or JSON Lines; Parquet, a folder of Parquet files; a pattern of
                  such), an open file of CSV, a DuckDB relation, a Spark, pandas, polars or Arrow
                  frame. The data stays in its engine
    item          column of the items, or several that name one together
    user          column of the individuals: the score of an item is how many different ones it has.
                  Without `user` and `score` EVERY ROW COUNTS AS ONE INDIVIDUAL
    score         column of ready scores
    weight        with `user`: column of whole numbers, of which an individual adds the sum for each
                  item, clipped to 0 … `bound`, a public number
    where         which rows count: a condition on each row alone, such as
                  "country = 'DE' and age >= 18" (docs/inputs.md). Of a dict or a pandas frame
                  choose them before
    table         where `data` is a database (a path, or a URL such as "postgres://…"): its table
    epsilon       the privacy cost; a float means the decimal that it prints as: 0.1 is one tenth
    delta         probability with which the guarantee may fail; may be 0 only in a closed universe
    mechanism     a mechanism object, instead of epsilon, delta, neighbors and growth; or the name
                  of one, such as "nested-margin", beside them; by default `auto` chooses one
    universe      "open": candidates are not known in advance. Otherwise the labels of all
                  candidates, or, where all are listed, their number; it must be public knowledge,
                  never computed from the data. Candidates without a score have score 0
    neighbors     "add-remove": one individual moves all scores the same way, as counts do (the
                  default for whole numbers). "replace": any way (needed for scores that are not
                  monotone). On a grid there is no default
    sensitivity   by how much one individual can move a score (default 1)
    resolution    step of the public grid on which scores are rounded down. Without it scores must
                  be whole numbers, of whatever type, if `sensitivity` is one; otherwise they are
                  put on a grid of sensitivity / 64
    growth        how many candidates one individual's record touches at most, if there is a bound;
                  public
    k             how many items to release, as a set, which comes sorted by name; the cost is for
                  all of them. There may be fewer: `release.notes` says so
    ranked        release their order, too, best first. That needs a much clearer lead, and
                  `release.why` tells both leads. In a closed universe a list may be what needs the
                  least: `release.ranked` tells what came
    counts        epsilon to pay beside, such as "0.2", for noisy counts of the items
                  (`release.counts`) with their error bar (`release.error`); they get the noise that
                  is smallest for k of them. Where that is Gaussian, it uses the same delta once
                  more, and `release.privacy` holds both
    unit          what the cost hides, for the ledger, which holds one unit: "user" with `user` and
                  for ready scores, "row" where rows are counted. Say it where you know better:
                  unit="user" if every row is a person
    ledger        the privacy budget that pays: the cost is charged before the draw, and the answer
                  is recorded before it is returned. What does not fit is refused (BudgetError)
                  before any data is read
                  To name the request, the account to charge as well or the data, give
                  `ledger.request("nightly", account=…, dataset=…)`: a repeated request returns the
                  recorded answer, reads no data and costs nothing more
    coins         source of random bits; for tests only

    A strict ledger is charged before the data is read, and whatever is wrong with that is no answer
    (docs/promises.md). The answer is None if nothing stood out; that costs the same. With
    a ledger items come back as plain Python values; those of a type that JSON cannot hold, which a
    mapping and a declared universe may not have, come back as text, their `repr`.
    """
    selection = Selection.of(
        Columns(item, user, score, weight, bound, where),
        sensitivity=sensitivity,
        resolution=resolution,
        unit=unit,
        universe=Universe.of(universe),
        given=mechanism,
        epsilon=epsilon,
        delta=delta,
        neighbors=neighbors,
        growth=growth,
        k=k,
        ranked=ranked,
        counts=counts,
    )
    place = None if ledger is None else place_of(data, table)
    return selection.answer(partial(open_database, data, table), ledger, place=place, coins=coins)


@dataclass(frozen=True)
class Selection:
    """A question for the best candidates, before any data is read, as `of` makes it.

    terms                     what runs, at what cost
    columns                   of a table: what its columns are
    sensitivity, resolution   the scale of the scores, as `select` takes it
    unit_is_default           whether nobody said what the cost hides
    condition                 which rows count; None: all
    """

    terms: Terms
    columns: Columns
    sensitivity: Number | None = None
    resolution: Number | None = None
    unit_is_default: bool = True
    condition: Condition | None = None

    @classmethod
    def of(
        cls,
        columns: Columns,
        *,
        sensitivity: Number | None = None,
        resolution: Number | None = None,
        unit: str | None = None,
        **terms: Any,
    ) -> Selection:
        """The question that the options of `select` ask; `terms` are those of `Terms`.

        The cost hides one of the rows, if those are counted, and otherwise a user, unless `unit`
        says what it hides.
        """
        counts_rows = columns.user is None and columns.score is None and columns.item is not None
        default = ROW if counts_rows else USER
        scale = Scale.of(sensitivity, resolution)
        if columns.weight is not None and columns.bound is not None:
            scale = replace(scale, steps=whole("bound", columns.bound))
        public = Terms(**terms, scale=scale, unit=default if unit is None else unit)
        if public.given is None or isinstance(public.given, str):
            scale.neighbors(public.neighbors)
        where = None if columns.where is None else Condition.of(columns.where)
        return cls(public, columns, sensitivity, resolution, unit is None, where)

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

        read     gives the data, as `select` takes it; called when the ledger was asked
        place    where it is, for the ledger; public
        ready    which columns hold items and scores, for the ledger, where `columns` does not say
        """
        if ledger is not None and self.terms.universe.labels is not None:
            _check_labels(self.terms.universe.labels)
        unsaid = self.unit_is_default and self.terms.unit == ROW
        return answer(
            self.terms,
            partial(self._read, read, ledger is not None),
            ledger,
            question=None if ledger is None else self._question(place, ready),
            warn=warn_of_rows if unsaid else None,
            coins=coins,
        )

    def _read(
        self, read: Callable[[ExitStack], object], is_recorded: bool, stack: ExitStack
    ) -> Source:
        data = read(stack)
        if is_recorded and isinstance(data, Mapping) and not recordable(map(label_by_value, data)):
            raise DataError(f"A label is {_STRANGE}. Use text or numbers.")
        found = source(
            data,
            self.columns,
            universe=self.terms.universe,
            sensitivity=self.sensitivity,
            resolution=self.resolution,
        )
        return stack.enter_context(closing(found))

    def _question(self, place: str | None, ready: Mapping[str, str] | None) -> Question:
        terms, universe = self.terms, self.terms.universe
        options = vars(self.columns) | {
            "k": terms.k,
            "ranked": None
            if is_ranked(terms.choice.mechanism)
            else False,  # as before there were sets
            "where": self.condition and str(self.condition),
            "growth": terms.growth,
            "neighbors": terms.neighbors,
            "universe": universe.size or OPEN,
        }
        numbers = {
            "sensitivity": self.sensitivity,
            "resolution": self.resolution,
            "counts": terms.counts,
        }
        labels: int | Iterable[object] | None = universe.size
        if universe.labels is not None:
            labels = map(label_by_value, universe.labels)
        return Question("select", options, numbers, place, ready, labels)


_STRANGE = "of a type that a ledger cannot write down exactly"


def _check_labels(labels: Iterable[Any]) -> None:
    """Refuse declared labels that a ledger would write down as text."""
    if not recordable(map(plain_label, labels)):
        raise ParameterError(
            "universe", "<labels>", f"a label is {_STRANGE}", "Use text or numbers."
        )


def law(
    data: object,
    *,
    mechanism: Mechanism | str,
    epsilon: Number | None = None,
    delta: Number | None = None,
    neighbors: str | None = None,
    growth: int | None = None,
    universe: object = OPEN,
    sensitivity: Number | None = None,
    resolution: Number | None = None,
    item: str | Sequence[str] | None = None,
    user: str | None = None,
    score: str | None = None,
    weight: str | None = None,
    bound: int | None = None,
) -> dict[Any, float] | Law:
    """The exact distribution of `select`'s answer: {item: probability, None: probability of no
    answer}.

    It is computed from the scores without any noise: for public or synthetic data only, never
    release it. Positions beyond a list, which `select` names, count as no answer here. With k > 1
    it is the law of the first item. For a `Profile`, which has no labels, the law by score is
    returned.

    mechanism    a mechanism object; or the name of one, such as "nested-margin", with epsilon and
                 whatever else it takes. Everything else is as in `select`
    """
    mechanism = make(mechanism, epsilon=epsilon, delta=delta, neighbors=neighbors, growth=growth)
    if isinstance(data, Profile):
        return mechanism.law(data)
    read = source(
        data,
        Columns(item, user, score, weight, bound),
        universe=Universe.of(universe),
        sensitivity=sensitivity,
        resolution=resolution,
    )
    with closing(read):
        exact = mechanism.law(read.profile)
        chances = {label: exact.of(value) for label, value in read.scores()}
    return {**chances, None: max(0.0, 1.0 - sum(chances.values()))}
