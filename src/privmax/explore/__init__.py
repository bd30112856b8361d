"""`privmax explore`: plan, try, ask and hand over in a browser, on one's own machine.

The pages are written here, on the server; nothing is fetched from elsewhere. docs/explore.md shows
how it is used, lab/explore-threats.md what it is safe from.
"""
