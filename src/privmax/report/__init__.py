"""HTML pages about what was released, fitted or compared.

Each is one file, with everything in it. They ask nothing of a network.

A page says what was asked, what was released and what it cost, whom that protects and how, and how
to check it. What is not in a release does not enter: no count, no time, nothing of the data that
was not charged.
"""

from pathlib import Path

from privmax import writing
from privmax.report.comparison_page import comparison
from privmax.report.model_card import card
from privmax.report.release_page import html

ENDINGS = (".html", ".htm")


def write(page: str, path: str | Path) -> None:
    """Write a page into an .html file.

    An existing file is replaced when the page is complete, and otherwise stays.

    Args:
        page: The page.
        path: The file.

    Raises:
        ParameterError: It does not end in .html, or cannot be written.
    """
    writing.write(page, path, "report", ENDINGS)


def writable(path: str | Path) -> None:
    """Check that a page could be written to a path now. Leaves nothing.

    Args:
        path: The file.

    Raises:
        ParameterError: It could not.
    """
    writing.check_file(path, "report", ENDINGS)


def __dir__() -> list[str]:
    return __all__


__all__ = ["card", "comparison", "html", "writable", "write"]
