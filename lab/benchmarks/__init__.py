"""Speed, quality and pictures of the paper. Run as modules from the project's root."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[2] / "tools"))  # servers.py, which tests use too
