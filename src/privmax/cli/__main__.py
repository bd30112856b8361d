"""`python -m privmax.cli`."""

import sys

from privmax.cli import main

sys.exit(main(prog_name="privmax"))
