"""The commands, one file per command.

Each reads its options, calls `run_job` or a function of the library, and prints the result.
"""
