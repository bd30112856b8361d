"""Exact randomness: where bits come from, and samplers that no rounding can bend."""
