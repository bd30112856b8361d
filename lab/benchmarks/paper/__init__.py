"""Mechanisms next to the paper's that are compared with and not shipped."""
