"""Reads baskets: from text files, frames, matrices, lists, and tables of engines."""
