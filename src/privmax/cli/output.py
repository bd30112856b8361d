"""What commands show: a release for people and as JSON, pictures, and that they are busy."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from threading import Event, Thread
from time import monotonic
from typing import TYPE_CHECKING, Any

from privmax.advice import NO_ANSWER
from privmax.display import to_json
from privmax.errors import ParameterError, explain_install
from privmax.numbers import plain, round_down, round_up
from privmax.privacy import Privacy

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from privmax.release import Release


def describe_release(
    name: str,
    shown: Sequence[str],
    release: Release,
    beside: Mapping[str, Any],
    more: Mapping[str, Sequence[str]],
) -> str:
    """A release in lines, each with a name.

    name      what its items are called
    shown     the items in words
    beside    what is known of its payment
    more      more lines, by name
    """
    answer = "\n           ".join(shown) if shown else NO_ANSWER.format(name)
    about = f"{type(release.mechanism).__name__}: {release.why}"
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
    if beside:
        left: Privacy | None = beside["left"]
        lines["left"] = "not known now"
        if left is not None:
            lines["left"] = f"epsilon {round_down(left.epsilon)}, delta {round_down(left.delta)}"
        lines["request"] = beside["request"]
    return "\n".join(f"{name:11}{text}" for name, text in lines.items())


def with_counts(shown: Sequence[str], release: Release) -> list[str]:
    """Items in words, each with its noisy count, where there are counts."""
    if not release.counts:
        return list(shown)
    counts = release.describe_counts()
    name, number = max(map(len, shown)), max(map(len, counts))
    return [f"{one:{name}}  {count:>{number}}" for one, count in zip(shown, counts, strict=True)]


def minute(when: str) -> str:
    """A moment that a ledger noted, to the minute."""
    return f"{datetime.fromisoformat(when):%Y-%m-%d %H:%M} UTC"


def dump_release(fields: Mapping[str, object], release: Release, beside: Mapping[str, Any]) -> str:
    price = exact_privacy(release.privacy)
    about = {
        "mechanism": repr(release.mechanism),
        "why": release.why,
        "free": dict(release.diagnostics),
        "unit": release.unit,
    }
    if beside and beside["left"] is not None:
        beside = {**beside, "left": exact_privacy(beside["left"])}
    return to_json({**fields, "privacy": price, **about, **beside})


def exact_privacy(privacy: Privacy) -> dict[str, str]:
    """A cost, or what is left, as JSON."""
    return {"epsilon": plain(privacy.epsilon), "delta": plain(privacy.delta)}


@contextmanager
def busy(doing: str, watched: Sequence[Any] = ()) -> Iterator[None]:
    """Say what is being done while it is, on standard error and on a terminal only. rich is loaded
    here and not with the command, whose help is quicker so.

    watched    connections to DuckDB, which tell how far they are; some may come later
    """
    from rich.console import Console
    from rich.markup import escape

    console = Console(stderr=True)
    doing = escape(doing)
    with console.status(doing) as status:
        if not console.is_terminal:
            yield
            return
        done = Event()
        watcher = Thread(target=_watch, args=(doing, watched, status.update, done), daemon=True)
        watcher.start()
        try:
            yield
        finally:
            done.set()
            watcher.join()


_PAUSE = 0.5
"""Seconds between two looks at how far an engine is."""


def _watch(doing: str, watched: Sequence[Any], show: Callable[[str], None], done: Event) -> None:
    """Show how far the last connection is, by the share of its input that is read, and how long
    the rest will take at that pace. A clock tells whoever waits as much: nothing that was counted
    is in it, and DuckDB tells no number of rows.
    """
    begun: float | None = None
    while not done.wait(_PAUSE):
        share = -1.0
        with suppress(Exception):  # one that is closed meanwhile
            share = watched[-1].query_progress() if watched else -1.0
        begun = None if share < 0 else begun or monotonic() - _PAUSE
        show(doing if begun is None else describe_progress(doing, share, monotonic() - begun))


def describe_progress(doing: str, share: float, seconds: float) -> str:
    """How far something is that has done `share` percent after so many seconds.

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
    """Refuse, before anything is computed, a picture that could not be written. None: none is asked
    for.
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
