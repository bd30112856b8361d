"""HTML pages about what was released or compared: one file each, with everything in it. They ask nothing of a network.

A page says what was asked, what was released and what it cost, whom that protects and how, and how to check it. What is
not in a release does not enter: no count, no time, nothing of the data that was not paid for.
"""

from privmax.report.comparison import comparison
from privmax.report.release import html
from privmax.report.writing import write

__all__ = ["comparison", "html", "write"]
