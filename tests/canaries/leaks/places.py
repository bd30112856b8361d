"""Where is looked, what counts as a leak there, and what is known to remain.

The table of lab/canaries.md is made of this: `python -m leaks.run --table` prints it.
"""

from __future__ import annotations

from dataclasses import dataclass

ANY = "any mark that was not released"


@dataclass(frozen=True)
class Place:
    """A row of the table.

    searched   what is searched there
    counts     what counts as a leak
    remains    what is known to remain there, and does not count
    """

    searched: str
    counts: str = ANY
    remains: str = "nothing"


PLACES: dict[str, Place] = {
    "repr": Place("`repr` and `str` of all that a function returns"),
    "notebook": Place("what a notebook shows of it: `_repr_html_` and the like"),
    "attributes": Place(
        "its public attributes, properties and methods without arguments, three levels deep",
        remains="laws, profiles, windows, outcomes and comparisons are private by their "
        "documentation: only what they print is searched",
    ),
    "JSON": Place("`to_json`, `to_dict`, files of `--save` and `--output` that are JSON"),
    "pickle": Place(
        "the pickle of all that is returned or raised, also of fitted learners",
        remains="as above; a pickle of those holds scores",
    ),
    "errors": Place(
        "text, `repr`, arguments, attributes and notes of an error and of all errors behind it, "
        "and its traceback as Python prints it",
        remains="line numbers, and that there was an error: "
        "[what errors reveal](../docs/promises.md#what-errors-reveal). "
        "Without a ledger, the words of errors that are not ours, such as those of your own model",
    ),
    "frames": Place(
        "`repr` of every local variable of every frame that an error went through, which is what "
        "a crash reporter sends",
        counts="what was drawn and not released",
        remains="the data itself: an argument such as `data` is a local variable of `select`, as "
        "it is one of your own program, and a reader that fails has its line. Configure crash "
        "reporters to send no local variables",
    ),
    "log": Place(
        "every logger at DEBUG, those of DuckDB, Ibis, SQLGlot, numba, matplotlib and uvicorn, too"
    ),
    "warnings": Place("every warning, with its arguments"),
    "output": Place("standard output of commands and functions"),
    "progress": Place("standard error, on a terminal too: progress, messages, tracebacks"),
    "report": Place("pages of `--report` and `privmax.report`, with their comments and scripts"),
    "figures": Place(
        "SVG files, and every text that matplotlib is given to draw (it becomes outlines)"
    ),
    "files": Place("files of `--output` and `--registry`, and all else in the working folder"),
    "ledger": Place(
        "the bytes of the ledger's file, and its rows",
        remains="recorded answers: they are released",
    ),
    "journal": Place(
        "SQLite's journal beside the ledger, while it is there and after a kill",
        remains="SQLite writes an answer into the file before its transaction is complete: a "
        "machine that fails within these milliseconds may keep an answer that no one was given",
    ),
    "temporary files": Place(
        "all files in `TMPDIR`, while they are there, and afterwards",
        counts="a file that is left behind, or that others may open",
        remains="while it runs, DuckDB puts rows that do not fit into memory there, in a folder "
        "that only you can open; after kill -9 that folder stays",
    ),
    "arguments": Place(
        "`/proc/PID/cmdline` and `environ` of a command and of all processes that it starts",
        remains="what you type yourself: options are public",
    ),
    "pages": Place("every page and answer of `privmax explore`, with headers and scripts"),
    "core dumps": Place(
        "not searched",
        counts="–",
        remains="memory, swap and core dumps hold the data: `ulimit -c 0`, and encrypt swap",
    ),
}


def table() -> list[str]:
    """The table of the page."""
    lines = ["| place | what is searched | what counts | what is known to remain |"]
    lines.append("|---|---|---|---|")
    for name, place in PLACES.items():
        lines.append(f"| {name} | {place.searched} | {place.counts} | {place.remains} |")
    return lines
