"""`--plot`: the option, and how the picture is written."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from privmax.errors import ParameterError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

plot_option = click.option("--plot", metavar="FILE", help="Draw it, too, into a .png or .svg file.")


def ready(file: str | None) -> None:
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
            "pictures need a package that is not installed",
            'Run pip install "privmax[plot]".',
        ) from None
    check(file)


def draw(figure: Figure, file: str) -> None:
    from privmax.plots import write

    write(figure, file)
