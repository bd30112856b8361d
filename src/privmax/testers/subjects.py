"""Subjects of an audit: packages by name, and your own functions.

Every package has a file in `packages/` with a function `subjects()`. A subject is a mechanism that
is made the way its documentation says, with the cost that the package itself states for it, and
pairs of neighboring data sets to try it on. The pairs come from `patterns` and are the same for
all: the place of a fault is not shown.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from importlib import import_module, metadata
from pathlib import Path
from typing import Any

from privmax.errors import ParameterError
from privmax.testers.claims import Claim
from privmax.testers.enumeration import Bracket
from privmax.testers.search import Pair, Run

PACKAGES = {
    "privmax": "ours",
    "known-wrong": "known_wrong",
    "opendp": "opendp",
    "diffprivlib": "diffprivlib",
    "tmlt.core": "tumult",
}
"""Packages by name, and the file in `packages/` that knows each."""


@dataclass(frozen=True)
class Subject:
    """Something to be audited.

    Attributes:
        package: Whose it is.
        name: What it is.
        claim: What its package states of it.
        pairs: Neighboring data sets, as `run` takes them.
        run: From a data set and a seed to an outcome.
        enumerate: Where all courses of its randomness can be followed: from a data set to what is
            known of its law. Otherwise None.
        source: Where a fault of it is described, if it is known to be wrong.
    """

    package: str
    name: str
    claim: Claim
    pairs: Sequence[Pair]
    run: Run
    enumerate: Callable[[Any], Bracket] | None = None
    source: str = ""


def package_version(package: str) -> str:
    """Return the version of a package that is installed.

    Examples:
        >>> package_version("known-wrong")
        ''
    """
    if package == "known-wrong":
        return ""
    from privmax import __version__

    return __version__ if package == "privmax" else metadata.version(package)


def subjects_of(package: str) -> list[Subject]:
    """Return all that can be audited of a package.

    Args:
        package: Its name.

    Raises:
        ParameterError: The package is not known, or not installed.

    Examples:
        >>> len(subjects_of("privmax")) > 10
        True
    """
    if package not in PACKAGES:
        near = get_close_matches(package, PACKAGES, 1)
        raise ParameterError(
            "of", package, "it is neither a known package nor module:function",
            f"Did you mean {near[0]}?" if near else f"Known are {', '.join(PACKAGES)}.",
        )  # fmt: skip
    home = import_module(f"privmax.testers.packages.{PACKAGES[package]}")
    try:
        subjects: list[Subject] = home.subjects()
    except ModuleNotFoundError as error:
        raise ParameterError(
            "of", package, f"it is not installed here: there is no module {error.name}",
            f"Install {package} beside privmax.",
        ) from None  # fmt: skip
    return subjects


def load_function(place: str) -> Run:
    """Import a function by `module:function`; modules in the working folder are found, too.

    Raises:
        ParameterError: There is no such function.

    Examples:
        >>> load_function("operator:sub")(5, 3)
        2
    """
    module, _, name = place.partition(":")
    before = list(sys.path)
    sys.path.insert(0, str(Path.cwd()))
    try:
        function = getattr(import_module(module), name, None)
    except ModuleNotFoundError as error:
        raise ParameterError(
            "of", place, f"there is no module {error.name}",
            "Run the command in the folder of the module, or install it.",
        ) from None  # fmt: skip
    except (Exception, SystemExit) as error:
        raise ParameterError(
            "of", place, f"importing it raised {type(error).__name__}",
            "Write module:function, and import the module by itself to see why.",
        ) from None  # fmt: skip
    finally:
        sys.path[:] = before
    if not callable(function):
        raise ParameterError("of", place, f"the module {module} has no function {name or '…'}")
    return function  # type: ignore[no-any-return]
