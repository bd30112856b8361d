"""Shows the output of commands: releases for people and as JSON, pictures, and progress."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from threading import Event, Thread
from time import monotonic
from typing import TYPE_CHECKING, Any

from privmax.advice import NO_ANSWER
from privmax.display import format_label, on_terminal, to_json
from privmax.errors import ParameterError, explain_install
from privmax.mechanisms.registry import describe_mechanism
from privmax.numbers import round_down, round_up
from privmax.privacy import Privacy, exact_privacy

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from privmax.groups import GroupedRelease
    from privmax.release import Release


def describe_release(
    name: str,
    shown: Sequence[str],
    release: Release,
    payment: Mapping[str, Any],
    more: Mapping[str, Sequence[str]],
) -> str:
    """Return a release in lines, each with a name.

    Args:
        name: What its items are called.
        shown: The items in words.
        payment: What is known of its payment.
        more: More lines, by name.
    """
    answer = "\n           ".join(shown) if shown else NO_ANSWER.format(name)
    about = describe_mechanism(release.mechanism, release.why)
    cost = f"epsilon {round_up(release.privacy.epsilon)}, delta {round_up(release.privacy.delta)}"
    lines = {name: answer}
    lines |= {title: "\n           ".join(texts) for title, texts in more.items() if texts}
    if release.notes:
        lines["note"] = "\n           ".join(release.notes)
    lines |= {"cost": cost, "mechanism": about}
    if release.noise is not None and release.counts_privacy is not None:
        part = release.counts_privacy
        lines["counts"] = (
            f"{release.noise.title}, for epsilon {round_up(part.epsilon)}, delta "
            f"{round_up(part.delta)} of the cost"
        )
    if release.recorded is not None:
        lines["recorded"] = f"on {minute(release.recorded)}; no data was read"
    if payment:
        left: Privacy | None = payment["left"]
        lines["left"] = "not known now"
        if left is not None:
            lines["left"] = f"epsilon {round_down(left.epsilon)}, delta {round_down(left.delta)}"
        lines["request"] = payment["request"]
    return "\n".join(f"{name:11}{text}" for name, text in lines.items())


LONGEST = 60
"""Counts are in one column beside items that are no longer than so many characters."""


def with_counts(shown: Sequence[str], release: Release) -> list[str]:
    """Items in words, each with the noisy numbers that are released beside it."""
    counts = release.describe_numbers()[: len(shown)]
    if not counts:
        return list(shown)
    name = max((len(one) for one in shown if len(one) <= LONGEST), default=0)
    number = max(map(len, counts))
    return [f"{one:{name}}  {count:>{number}}" for one, count in zip(shown, counts, strict=True)]


SHOWN = 20
"""Items of groups that are printed; --output and --json have all."""


def list_groups(release: GroupedRelease, name: Callable[[Any], str] | None = None) -> list[str]:
    """Return the first groups in words, an item on each line, and how many more there are.

    A group without an answer has a line, too.

    Args:
        release: What was released.
        name: Gives an item in words; None: the release does.
    """
    numbers, rows = iter(release.describe_numbers()), list[tuple[str, str, str]]()
    say = release.name_answer if name is None else name
    for group, items in release.groups.items():
        title = format_label(group)
        rows += [(title, say(item), next(numbers, "")) for item in items]
        rows += [] if items else [(title, "no answer", "")]
    shown = rows[:SHOWN]
    widths = [max(map(len, column)) for column in zip(*shown, strict=True)]
    lines = [
        "  ".join(f"{cell:{width}}" for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in shown
    ]
    more, kind = len(rows) - SHOWN, "items" if name is None else "itemsets"
    return [*lines, f"… and {more:,} more: --output FILE writes all {kind}"] if more > 0 else lines


def minute(when: str) -> str:
    """Return a moment that a ledger noted, to the minute."""
    return f"{datetime.fromisoformat(when):%Y-%m-%d %H:%M} UTC"


def dump_release(fields: Mapping[str, object], release: Release, payment: Mapping[str, Any]) -> str:
    """Return a release as JSON.

    Args:
        fields: Its answer, by name.
        payment: What is known of its payment.
    """
    if payment and payment["left"] is not None:
        payment = {**payment, "left": exact_privacy(payment["left"])}
    return to_json({**fields, **release.to_fields("cost"), **payment})


@contextmanager
def busy(doing: str, watched: Sequence[Any] = ()) -> Iterator[None]:
    """Show what is being done while it is, on standard error and on a terminal only.

    Most work is done before there is anything to show.

    Args:
        watched: Connections to DuckDB, which say how far they are; some may come later.
    """
    if not on_terminal():
        yield
        return
    done = Event()
    watcher = Thread(target=_show_status, args=(doing, watched, done), daemon=True)
    watcher.start()
    try:
        yield
    finally:
        done.set()
        watcher.join()


_PAUSE = 0.5
"""Seconds before the first look at how far an engine is, and between two looks."""


def _show_status(doing: str, watched: Sequence[Any], done: Event) -> None:
    """Show a spinner beside what is being done, unless it is done in a moment."""
    if done.wait(_PAUSE):
        return
    from rich.console import Console
    from rich.markup import escape

    doing = escape(doing)
    with Console(stderr=True).status(doing) as status:
        _watch(doing, watched, status.update, done)


def _watch(doing: str, watched: Sequence[Any], show: Callable[[str], None], done: Event) -> None:
    """Show how far the last connection is, and how long the rest will take at that pace.

    The share of its input that is read is shown. A clock reveals as much to the person who waits:
    nothing that was counted is in it, and DuckDB reports no number of rows.
    """
    begun: float | None = None
    while not done.wait(_PAUSE):
        share = -1.0
        with suppress(Exception):  # one that is closed meanwhile
            share = watched[-1].query_progress() if watched else -1.0
        begun = None if share < 0 else begun or monotonic() - _PAUSE
        show(doing if begun is None else describe_progress(doing, share, monotonic() - begun))


def describe_progress(doing: str, share: float, seconds: float) -> str:
    """Return how far something is that has done `share` percent after so many seconds.

    Examples:
        >>> describe_progress("Counting", 25.0, 30.0)
        'Counting: 25 % done, about 1 min 30 s left'
    """
    text = f"{doing}: {min(int(share), 100)} % done"
    if share < 1:
        return text
    minutes, rest = divmod(round(seconds * (100 - min(share, 100)) / share), 60)
    return f"{text}, about {f'{minutes} min ' if minutes else ''}{rest} s left"


def check_plot(file: str | None) -> None:
    """Refuse, before anything is computed, a picture that could not be written.

    None means that no picture is wanted.
    """
    if file is None:
        return
    try:
        from privmax.plots import check
    except ImportError:
        raise ParameterError(
            "plot",
            file,
            "figures need a package that is not installed",
            explain_install("plot"),
        ) from None
    check(file)


def draw_plot(figure: Figure, file: str) -> None:
    from privmax.plots import write

    write(figure, file)
