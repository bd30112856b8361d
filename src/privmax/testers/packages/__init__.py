"""The subjects to audit, one file per package: `subjects()` makes them all."""
