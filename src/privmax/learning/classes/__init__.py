"""Public classes of hypotheses, each counted in a way of its own."""
