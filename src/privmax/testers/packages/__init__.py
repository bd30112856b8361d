"""What can be audited of each package, a file each: `subjects()` makes them all."""
