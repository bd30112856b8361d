"""The command line: parse, call, print. Commands are loaded when they are asked for: help and
completion are quick.
"""

from __future__ import annotations

import click

from privmax import __version__
from privmax.cli.lazily import LazyGroup

COMMANDS = {
    "demo": "Tell the whole story on a small invented data set.",
    "select": "Release the best item, or the best k, of FILE.",
    "itemsets": "Release the most frequent itemset, or the k most frequent, of FILE.",
    "learn": "Release the rule that predicts a column of FILE best.",
    "plan": "Tell how clear a winner must be for each mechanism, and which one would be chosen.",
    "compare": "Tell what each mechanism would release on scores like yours, and with what chance.",
    "audit": "Look for two neighbouring data sets that break the promise of MECHANISM.",
    "budget": "Make, look at, raise and check a privacy budget.",
}
"""What `privmax --help` lists. Each stands in the module of its name, as `command`."""


@click.group(cls=LazyGroup, lazy=COMMANDS, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="privmax")
def main() -> None:
    """Pick the best item of a huge or unknown universe under differential privacy."""
