"""The command line: parse, call, print.

Commands are loaded when they are asked for, so that help and completion are quick.
"""

from privmax.cli.group import COMMANDS, main

__all__ = ["COMMANDS", "main"]
