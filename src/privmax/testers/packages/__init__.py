"""What can be audited of each package, one file per package: `subjects()` makes them all."""
