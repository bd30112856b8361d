"""One classifier that decides by public facts which of several models it fits."""
