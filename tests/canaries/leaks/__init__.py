"""The hunt for canaries: run everything on marked data, and look for marks where none may be.

marks      values that are rare, and the forms in which they are looked for
field      data that is made of marks
places     where is looked, what counts there, and what is known to remain
child      one run, in a process of its own
nursery    starts such processes, and watches the files that they make
functions  what is run of the public names
commands   what is run of the command line
judge      what a run left behind, and which marks of that were not released
run        all of it, as often as is asked for
"""
