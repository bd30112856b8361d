"""Regression by additive models: the same private rounds, with targets that are numbers."""
