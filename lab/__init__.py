"""What shows that privmax is true and fast: nothing here is part of the package. See README.md."""
