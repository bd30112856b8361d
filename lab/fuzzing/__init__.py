"""Fuzz targets: each hands bytes to one public entry point and accepts a value or an error of ours.

`targets()` lists them; `lab/fuzz.py` drives them by coverage, and `tests/fuzz` with Hypothesis.
"""
