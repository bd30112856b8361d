"""The commands, one file each: options are read, `run_job` or a function of the library is called,
and what it gives is printed.
"""
