"""How baskets are read: from text files, frames, matrices, lists, and tables of engines."""
