"""Speed and memory against peers. Run as modules from the project's root: see README.md."""
