"""The markers that differ most between cases and controls, released under differential privacy.

Proof:      docs/proofs/markers.md
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privmax.best_items import BestItems
from privmax.encoding import recordable
from privmax.errors import ParameterError
from privmax.grouping import IN_DATA, IN_REQUEST, combine, moved
from privmax.labels import label_by_value
from privmax.ledger import Ledger
from privmax.ledger.events import USER
from privmax.ledger.payment import Description, source_location
from privmax.ledger.request import Request
from privmax.markers.reading import StudyLayout, count_genotypes
from privmax.markers.scores import DIFFERENCE, Score, StudyGroups, make_score
from privmax.mechanisms.contract import Mechanism
from privmax.noise.coins import SYSTEM, Coins
from privmax.numbers import Number
from privmax.privacy import REPLACE
from privmax.release import Release, answer_request, is_ranked
from privmax.rounds import choose_rounds
from privmax.sources.declared import Declared
from privmax.sources.memory import MemorySource
from privmax.universe import Universe


@dataclass(frozen=True)
class GenotypeColumns:
    """Name the columns of genotypes of a study, and say how unknown ones count. Public.

    Args:
        status: Who is a case: the column of a table, or values beside an array.
        case: The value of a case in it.
        marker: Column of markers, where a row is one genotype.
        genotype: Column of genotypes there: copies of the allele.
        person: Column of people there.
        missing: What stands for an unknown genotype: a whole number such as -1, or "null". Without
            it everyone must have a genotype at every marker.
        impute: As how many copies an unknown genotype counts.

    Examples:
        >>> GenotypeColumns("group", case="ill", missing="null").impute
        0
    """

    status: Any = None
    case: object = 1
    marker: str | None = None
    genotype: str | None = None
    person: str | None = None
    missing: int | str | None = None
    impute: int = 0


_IN_COLUMNS = {
    "columns=privmax.markers.GenotypeColumns({}=…)": (
        "marker", "genotype", "person", "missing", "impute"
    ),
    'privmax.Database(place, table="…") as the table': ("table_name",),
}  # fmt: skip


@moved({**_IN_COLUMNS, **IN_DATA, **IN_REQUEST})
def top_markers(
    table: Any,
    *,
    cases: int | None = None,
    controls: int | None = None,
    markers: Iterable[Any] | None = None,
    status: Any = None,
    case: object = 1,
    columns: GenotypeColumns | None = None,
    k: int = 1,
    epsilon: Number | None = None,
    delta: Number | None = None,
    mechanism: Mechanism | str | None = None,
    score: str = DIFFERENCE,
    threshold: Number | None = None,
    ledger: Ledger | Request | None = None,
    coins: Coins = SYSTEM,
) -> Release:
    """Release the k markers that differ most between cases and controls, privately.

    GROUP SIZES AND THE LIST OF MARKERS ARE PUBLIC. The cost hides one person of one group: whatever
    genotypes someone has, at however many markers, the release would have been nearly as likely
    with another person of the same group in their place. Who is a case is fixed: to hide also in
    which group someone is, two people change places, and that is two persons.

    All markers are candidates, whether or not anyone has the allele: the universe is closed.

    Args:
        table: Counts: an array with a row for each marker and 2 columns (copies of the allele among
            cases and among controls), or of shape (markers, 2, 3): people by group, cases first,
            and genotype, 0, 1 or 2 copies; a frame of 2 or 6 such columns. Or genotypes: an array
            with a row for each person and a column for each marker, with `status` beside it; a
            frame, a Parquet or CSV file, a DuckDB relation or an Ibis table with the same and a
            status column; or such a table with a row for each person and marker, whose columns
            `columns` names. The last is counted by its engine. A `privmax.TextFile` says how a file
            of text is to be read, and a `privmax.Database` names a table of one.
        cases: How many cases the study has; public.
        controls: How many controls; public.
        markers: Names of all markers, public; by default positions, or the columns of a frame.
            Needed where the table is a file, or has a row for each genotype.
        status: Who is a case: the column of a table, or values beside an array.
        case: The value of a case in it.
        columns: The two as one value, with the columns of a table that has a row for each
            genotype, and what stands for an unknown genotype.
        k: How many markers to release; the cost covers all of them. They come best first, unless
            you name a mechanism that releases a set.
        epsilon: What it costs; a float means the decimal that it prints as: 0.1 is one tenth.
        delta: Probability with which the guarantee may fail; may be 0.
        mechanism: A mechanism object for neighbors="replace", instead of epsilon and delta; or the
            name of one beside them. By default one marker is chosen by what `auto` says, and k of
            them by k rounds of the exponential mechanism: of markers that hardly differ it finds
            more than one draw over sets.
        score: "difference" of allele counts (the default, and best unless epsilon is large);
            "chi-square" of alleles; "genotype-chi-square" of the table with three genotypes;
            "distance": how many people must change before the test of alleles changes its verdict.
        threshold: Of "distance": the χ² from which on a marker is significant. By default that of
            0.05 divided by the number of markers.
        ledger: The privacy budget that pays: charged before the draw, recorded before the answer is
            returned. What does not fit is refused (BudgetError) before the table is read. Give
            `ledger.request("study-7", account=…, dataset=…)` to name the request: repeated, it
            returns the recorded answer at no extra cost. A request also says what the cost hides
            (`unit=`, "user" by default) and whether this is only a check (`check=True`). Without a
            ledger `privmax.Request(unit=…, check=…)` says these two.
        coins: Source of random bits; for tests only.

    Returns:
        The names or positions of the markers. No score is released.

    Raises:
        ParameterError: An option is not allowed, or does not fit another.
        DataError: A value is no genotype, or groups are not as large as was said.
        BudgetError: The ledger does not allow it.

    Examples:
        >>> import numpy as np
        >>> counts = np.array([[400, 410], [900, 300], [55, 60]])  # alleles of cases, of controls
        >>> top_markers(counts, cases=1000, controls=1000, epsilon=1).item
        1
    """
    request = Request.of(ledger)
    groups = StudyGroups.of(cases, controls)
    named = vars(combine("columns", GenotypeColumns, columns, status=status, case=case))
    declared = Declared.of(table, check=request.check)
    declared.refuse(request)
    place, table_name, dialect = declared
    layout = StudyLayout.of(place, groups, markers, **named, table=table_name, dialect=dialect)
    scoring = make_score(score, groups, layout.number, threshold)
    _check_counts(place, layout, scoring)
    question = _make_question(
        layout.number, mechanism=mechanism, epsilon=epsilon, delta=delta, k=k, unit=request.unit
    )
    if request.ledger is not None and not recordable(layout.names or ()):
        raise ParameterError(
            "markers", "<names>", "a ledger cannot write down a name", "Use text or numbers."
        )
    options = {
        "cases": groups.cases, "controls": groups.controls, "markers": layout.number,
        "score": score, "k": k, "case": layout.case, "missing": layout.missing,
        "impute": layout.impute,
        "ranked": None if question.choice.mechanism.k == 1 or is_ranked(question.choice.mechanism)
        else False,
        "marker": layout.marker, "genotype": layout.genotype, "person": layout.person,
        "status": layout.status if isinstance(layout.status, str) else None,
        "delimiter": dialect.delimiter, "encoding": dialect.encoding,
    }  # fmt: skip
    description = Description(
        "top_markers",
        options,
        {"threshold": threshold},
        place=None if request.ledger is None else source_location(place, table_name),
        labels=layout.number if layout.names is None else map(label_by_value, layout.names),
    )

    def read(stack: ExitStack) -> MarkerSource:
        counts = count_genotypes(place, layout, stack)
        return MarkerSource(scoring.score(counts), layout.names, scoring)

    return answer_request(question, read, request, description=description, coins=coins)


class MarkerSource(MemorySource):
    """Markers and their scores. It is private.

    Examples:
        >>> from privmax.markers.scores import Difference
        >>> MarkerSource(np.array([3, 9]), ["rs1", "rs2"], Difference(StudyGroups(50, 50)))
        MarkerSource(<private>)
    """

    def __init__(
        self, scores: NDArray[np.int64], names: Sequence[Any] | None, score: Score
    ) -> None:
        super().__init__(scores, universe=len(scores), sensitivity=score.steps)
        self.step, self._labels = score.unit, names  # names are public, and released as they are

    def __repr__(self) -> str:
        return "MarkerSource(<private>)"


def _make_question(
    markers: int, *, k: int, mechanism: Mechanism | str | None, **options: Any
) -> BestItems:
    """Return the best of a closed universe, where people are replaced by others."""
    unit = options.pop("unit")
    if mechanism is not None and not isinstance(mechanism, str):
        if getattr(mechanism, "neighbors", REPLACE) != REPLACE:
            raise ParameterError(
                "mechanism", mechanism, "group sizes are public, so one person takes the place of "
                                    "another, and scores move either way",
                'Make it with neighbors="replace".',
            )  # fmt: skip
        neighbors = None
    else:
        neighbors = REPLACE
    question = BestItems(
        **options, given=mechanism, k=k, neighbors=neighbors, universe=Universe(markers),
        unit=USER if unit is None else unit, choose=choose_rounds,
    )  # fmt: skip
    longest = max(k, getattr(mechanism, "k", 1))
    if longest > markers:
        raise ParameterError(
            "k", longest, "it must not exceed the number of markers", "Ask for fewer."
        )
    return question


def _check_counts(table: Any, layout: StudyLayout, score: Score) -> None:
    """Refuse counts of alleles where genotypes are needed."""
    shape = getattr(table, "shape", ())
    if score.needs_genotypes and layout.status is None and tuple(shape[1:]) == (2,):
        raise ParameterError(
            "score", "genotype-chi-square", "counts of alleles do not determine genotypes",
            'Give people by genotype, or use "chi-square".',
        )  # fmt: skip
