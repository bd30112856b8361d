"""Additive models: a table of whole numbers for each feature, fitted in a few private rounds."""
