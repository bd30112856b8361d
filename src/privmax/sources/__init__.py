"""Sources of scores.

A source answers two aggregate questions and one look-up; it alone knows labels.
"""
