"""`privmax audit`.

Exit 0: the claim holds over all pairs compared. 1: it does not, or the laws are too inexact to
tell. 2: bad input. 130: stopped by Ctrl-C. With --of, code is run: see cli/audit_of.py.
"""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any, Literal

import click
from click.core import ParameterSource

from privmax.cli.exits import Exit
from privmax.cli.group import Command, Refused
from privmax.cli.messages import describe_error
from privmax.cli.options import growth_option, json_option, rank_option
from privmax.cli.output import busy
from privmax.errors import ParameterError, PrivmaxError
from privmax.mechanisms.registry import MECHANISMS, build
from privmax.numbers import nonnegative, plain, probability
from privmax.privacy import ADD_REMOVE, REPLACE, Privacy, exact_privacy

if TYPE_CHECKING:
    from privmax.auditing import Audit, Scores
    from privmax.mechanisms.contract import Law, Mechanism
    from privmax.profile import Profile

Universe = Literal["closed", "open"]

_CHANCES = ("chance here", "chance there", "ratio")

_WIDE = 200
"""Columns there are room for: the table is narrow, and its lines are not to be folded."""

_OF = ("only", "pairs", "rho", "samples", "confidence")
_LAWS = (
    *("neighbors", "universe", "k", "rank", "growth", "cap", "candidates", "highest"),
    *("claim_epsilon", "claim_delta"),
)
"""Options that only the one or only the other kind of audit has."""

_MOST_PAIRS = 10**6
"""Pairs of data sets compared at most, about: some minutes for a quick mechanism."""


def _list_mechanisms(command: Command) -> Command:
    """Write the names of all mechanisms into the help of a command."""
    *names, last = MECHANISMS
    command.help = (command.help or "").replace("{names}", f"{', '.join(names)} or {last}")
    return command


@_list_mechanisms
@click.command("audit", cls=Command)
@click.argument(
    "mechanism", type=click.Choice(list(MECHANISMS)), metavar="[MECHANISM]", required=False
)
@click.option("--epsilon", help="Privacy cost to run it at; decimals are exact.")
@click.option(
    "--delta", default="0", show_default=True, help="Probability that the guarantee fails."
)
@click.option("--neighbors", type=click.Choice([ADD_REMOVE, REPLACE]), help="Default add-remove.")
@click.option(
    "--universe",
    type=click.Choice(["closed", "open"]),
    help="Whether candidates without a score are known. Default: open for mechanisms that may "
    "abstain.",
)
@click.option("--k", type=int, help="How many items it releases.")
@rank_option
@growth_option
@click.option(
    "--cap",
    type=int,
    help="For large-margin in an open universe: where its search ends, such as 5.",
)
@click.option(
    "--candidates", type=int, default=3, show_default=True, help="Candidates in each data set."
)
@click.option(
    "--highest", type=int, default=4, show_default=True, help="The highest score in a data set."
)
@click.option("--claim-epsilon", help="Test this epsilon instead of its own.")
@click.option("--claim-delta", help="Test this delta instead of its own.")
@click.option(
    "--of",
    "packages",
    multiple=True,
    metavar="PACKAGE",
    help="Instead of MECHANISM: run a package, or module:function; can be repeated.",
)
@click.option("--only", help="With --of: only subjects whose name contains this text.")
@click.option("--pairs", metavar="FILE", help="With module:function: JSON, [[left, right], …].")
@click.option("--rho", help="With module:function: the zCDP cost to test, instead of --epsilon.")
@click.option(
    "--samples", type=int, default=100_000, show_default=True, help="With --of: runs of a subject."
)
@click.option(
    "--confidence",
    default="0.99",
    show_default=True,
    help="With --of: confidence required to report a violation.",
)
@json_option
@click.pass_context
def command(
    context: click.Context,
    /,
    mechanism: str | None,
    packages: tuple[str, ...],
    as_json: bool,
    **options: Any,
) -> None:
    """Search for two neighboring data sets that break the guarantee of MECHANISM.

    The audit takes all small data sets and all their neighbors, computes the probability of every
    output on each, and shows the pair that differs most. Nothing is drawn and no data is read.
    Exit 1: the claim is broken.

    A pair that breaks the claim is a counterexample: the probabilities are exact, up to a rounding
    error that is shown, and must add up to 1. Without delta every output is compared by itself,
    however rare. No counterexample is not a proof. Larger data sets are not tested, and the audit
    checks the law of the mechanism, not the program that draws from it (coin walks in the tests do
    that). privmax help proofs lists the proofs.

    If small data sets need only a part of the claim, larger ones may need more. The large-margin
    mechanisms take half a minute at --epsilon 1, and less at a larger cost such as --epsilon 6
    --delta 0.3.

    MECHANISM is {names}. In Python, privmax.audit takes any mechanism.

    With --of, no law is used: code is run, and its outputs are tested. PACKAGE is privmax,
    opendp, diffprivlib or tmlt.core, each at the costs that it states itself, if it is installed;
    known-wrong, mechanisms that are known to be broken; or module:function, a function of your own
    that takes a data set and a seed. Outcomes are enumerated where possible, otherwise sampled.

    \b
    privmax audit permute-and-flip --epsilon 1
    privmax audit exponential --epsilon 1 --neighbors replace --claim-epsilon 0.5
    privmax audit limited-domain --rank 2 --epsilon 1 --delta 1e-6
    privmax audit --of opendp --of diffprivlib
    privmax audit --of mymodule:myfunction --epsilon 1 --pairs pairs.json
    """
    of = {name: options.pop(name) for name in _OF}
    if bool(packages) == (mechanism is not None):
        raise Refused("Give either MECHANISM or --of PACKAGE.")
    for name in _LAWS if mechanism is None else _OF:
        if context.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            goes = "MECHANISM, not with --of" if mechanism is None else "--of"
            raise Refused(f"--{name.replace('_', '-')} goes with {goes}.")
    if mechanism is None:
        _run(context, packages, as_json, **of, epsilon=options["epsilon"], delta=options["delta"])
    else:
        _compare_laws(context, mechanism, as_json, **options)


def _run(
    context: click.Context,
    packages: tuple[str, ...],
    as_json: bool,
    *,
    confidence: str,
    samples: int,
    only: str | None,
    pairs: str | None,
    **claim: str | None,
) -> None:
    """Audit by running code."""
    from privmax.cli.audit_of import audit_named, report_verdicts

    try:
        verdicts = list(
            audit_named(
                packages,
                only=only,
                pairs=pairs,
                claim=claim,
                samples=samples,
                confidence=confidence,
            )
        )
    except PrivmaxError as error:
        raise Refused(describe_error(error)) from None
    report_verdicts(context, verdicts, confidence, as_json)


def _compare_laws(
    context: click.Context,
    mechanism: str,
    as_json: bool,
    *,
    universe: Universe | None,
    candidates: int,
    highest: int,
    growth: int | None,
    **options: Any,
) -> None:
    """Audit by laws."""
    from privmax.auditing import audit

    if options["epsilon"] is None:
        raise Refused("Missing option '--epsilon'.")
    where: Universe = universe or ("open" if MECHANISMS[mechanism].abstains else "closed")
    claimed = options.pop("claim_epsilon"), options.pop("claim_delta")
    options["neighbors"] = options["neighbors"] or ADD_REMOVE
    try:
        own = growth if "growth" in MECHANISMS[mechanism].parameters else None
        made = build(mechanism, **options, growth=own)
        claim = _claim(made, *claimed)
        _few(candidates, highest, made)
        with busy("Comparing exact probabilities"):
            result = audit(
                made,
                universe=where,
                candidates=candidates,
                highest=highest,
                growth=growth,
                claim=claim,
            )
    except PrivmaxError as error:
        raise Refused(describe_error(_suit(error))) from None
    about = {"universe": where, "candidates": candidates, "highest": highest}
    click.echo(
        _json(made, result, about) if as_json else _text(made, result, where, candidates, highest)
    )
    context.exit(Exit.DONE if result.holds else Exit.BROKEN)


def _claim(mechanism: Mechanism, epsilon: str | None, delta: str | None) -> Privacy:
    own = mechanism.privacy()
    claim = Privacy(
        own.epsilon if epsilon is None else nonnegative("claim-epsilon", epsilon),
        own.delta if delta is None else probability("claim-delta", delta),
    )
    if claim == Privacy(0):
        raise ParameterError(
            "claim-epsilon", epsilon, "with epsilon and delta 0 the claim holds only if the answer "
            "ignores the data",
            "Give one that is above 0.",
        )  # fmt: skip
    return claim


def _few(candidates: int, highest: int, mechanism: Mechanism) -> None:
    """Refuse sizes at which no one would see the end."""
    if candidates < 1 or highest < 0:
        return  # refused by the audit itself
    some = min(candidates, _MOST_PAIRS.bit_length())  # as many as are surely too many
    starts = math.comb(highest + some, some)
    moves = 2 * 2**some if mechanism.neighbors == ADD_REMOVE else 3**some
    if 2 * starts * moves > _MOST_PAIRS:
        raise ParameterError(
            "candidates", candidates, f"with scores up to {highest} there are more than "
            f"{_MOST_PAIRS:,} pairs",
            "Use fewer candidates or a lower --highest.",
        )  # fmt: skip


def _suit(error: PrivmaxError) -> PrivmaxError:
    """Return the error with a remedy that suits an audit."""
    if isinstance(error, ParameterError) and error.name == "cap":
        return ParameterError("cap", error.value, error.allowed, "Add a small one: --cap 5.")
    return error


def _text(
    mechanism: Mechanism, result: Audit, universe: Universe, candidates: int, highest: int
) -> str:
    lines = {
        "mechanism": repr(mechanism),
        "claim": f"epsilon {plain(result.claim.epsilon)}, delta {plain(result.claim.delta)}",
        "compared": f"{result.pairs:,} pairs of neighbors: {candidates} candidates, scores up to "
        f"{highest}, "
        f"{universe} universe",
        "worst": _worst(result),
        "at most": f"no pair needs more than delta {result.most:.1e}, rounding errors included",
        "verdict": _verdict(result),
    }
    if result.fault is not None and not result.undecided:
        del lines["worst"], lines["at most"]
    body = "\n".join(f"{name:11}{text}" for name, text in lines.items())
    return f"{body}\n\n{_pair(mechanism, result.pair, universe)}"


def _verdict(result: Audit) -> str:
    if result.fault is not None:
        return f"{'UNDECIDED' if result.undecided else 'BROKEN'}: {result.fault}"
    return "the claim holds for all pairs" if result.holds else "BROKEN: the pair below needs more"


def _worst(result: Audit) -> str:
    """Return how much of the claim the worst pair needs."""
    epsilon, delta = plain(result.claim.epsilon), result.claim.delta
    if result.least == 0:
        ratio = _power(result.tightness * float(result.claim.epsilon))
        none = (
            f"no delta is needed at epsilon {epsilon}, up to a rounding error of {result.most:.0e}"
        )
        return (
            none
            if delta
            else f"a probability changes by a factor of {ratio}: {_part(result.tightness)} the "
            "claimed epsilon"
        )
    needed = f"delta {result.delta:.3g} is needed at epsilon {epsilon}"
    if delta:
        return f"{needed}: {_part(result.tightness)} the claimed delta"
    never = "" if math.isfinite(result.tightness) else "; an output here is impossible there"
    return f"{needed}, and 0 is claimed{never}"


def _part(share: float) -> str:
    return (
        f"{100 * share:.3g} % of"
        if share < 10
        else f"{share:,.0f} times"
        if share < 10**6
        else f"{share:.1e} times"
    )


def _power(logarithm: float) -> str:
    return f"e^{logarithm:.3f}".replace("-0.000", "0.000")


def _pair(mechanism: Mechanism, pair: tuple[Scores, Scores], universe: Universe) -> str:
    """Return the two data sets, with probabilities where one item is released."""
    from rich import box
    from rich.console import Console
    from rich.table import Table

    single = mechanism.k == 1
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    for name in ("candidate", "score here", "score there", *(_CHANCES if single else ())):
        table.add_column(name, justify="left" if name == "candidate" else "right")
    laws = [mechanism.law(_profile(scores, universe)) for scores in pair] if single else []
    for place, scores in enumerate(zip(*pair, strict=True)):
        chances = [_chance(law, score, universe) for law, score in zip(laws, scores, strict=False)]
        shown = ["unseen" if universe == "open" and score == 0 else str(score) for score in scores]
        table.add_row(_letters(place), *shown, *_compare(chances))
    if any(law.none > 0 for law in laws):
        table.add_row("nothing", "", "", *_compare([law.none for law in laws]))
    console = Console(highlight=False, width=_WIDE)
    with console.capture() as captured:
        console.print(table)
    drawn = "\n".join(line.rstrip() for line in captured.get().splitlines())
    if not single:
        return f"{drawn}\n\nWhole lists were compared; there are too many to show."
    if len(mechanism.joint(_profile(pair[0], universe))) > 1:
        return (
            f"{drawn}\n\nDiagnostics released with the item were compared, too; they are not shown."
        )
    return drawn


def _profile(scores: Scores, universe: Universe) -> Profile:
    from privmax.profile import Profile

    if universe == "closed":
        return Profile(
            [(score, scores.count(score)) for score in set(scores)], universe=len(scores)
        )
    return Profile([(score, scores.count(score)) for score in set(scores) if score], universe=None)


def _chance(law: Law, score: int, universe: Universe) -> float:
    return 0.0 if universe == "open" and score == 0 else law.of(score)


def _compare(chances: list[float]) -> list[str]:
    """Two chances and their ratio."""
    if not chances:
        return []
    here, there = chances
    ratio = "" if here <= 0 else _power(math.log(here / there)) if there > 0 else "no bound"
    return [f"{here:.4g}", f"{there:.4g}", ratio]


def _letters(place: int) -> str:
    """A, B, … for candidates, who have no names."""
    return chr(ord("A") + place) if place < 26 else f"{place + 1}"


def _json(mechanism: Mechanism, result: Audit, about: dict[str, Any]) -> str:
    fields = {
        "mechanism": repr(mechanism),
        "neighbors": mechanism.neighbors,
        **about,
        "claim": exact_privacy(result.claim),
    }
    fields |= {"holds": result.holds, "fault": result.fault}
    fields |= {"delta": result.delta, "error": result.error, "most": result.most}
    fields |= {"tightness": result.tightness if math.isfinite(result.tightness) else None}
    fields |= {"pairs": result.pairs, "pair": [list(scores) for scores in result.pair]}
    return json.dumps(fields, ensure_ascii=False)
