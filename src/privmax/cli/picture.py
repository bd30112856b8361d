"""`--plot`: the option, and how the picture is written."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from privmax.errors import ParameterError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

plot_option = click.option("--plot", metavar="FILE", help="Draw it, too, into a .png or .svg file.")


def ready(file: str | None) -> None:
    """Refuse, before anything is computed, a picture that could not be written. None: none is asked for."""
    if file is None:
        return
    try:
        from privmax.plots import check
    except ImportError:
        raise ParameterError(
            "plot", file, "pictures need a package that is not installed", 'Run pip install "privmax[plot]".'
        ) from None
    check(file)
    folder = Path(file).absolute().parent
    if not folder.is_dir():
        raise ParameterError("plot", file, "there is no such folder", "Make it, or choose another file.")
    if Path(file).is_dir() or not os.access(file if os.path.exists(file) else folder, os.W_OK):
        raise ParameterError("plot", file, "it cannot be written", "Name a file in a folder you may write to.")


def draw(figure: Figure, file: str) -> None:
    from privmax.plots import write

    try:
        write(figure, Path(file))
    except OSError as error:
        raise ParameterError(
            "plot", file, f"it cannot be written ({error.strerror})", "Name a file in a folder you may write to."
        ) from None
