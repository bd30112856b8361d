"""How sure we are: searches for broken guarantees, draws against laws, and what time tells."""
