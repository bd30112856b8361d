"""The search through conjunctions: their numbering, and how many rows each covers."""
