"""Published methods for private frequent itemsets, to compare with."""
