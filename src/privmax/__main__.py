"""`python -m privmax`: the same as the command privmax."""

import sys

from privmax.cli import main

sys.exit(main(prog_name="privmax"))
