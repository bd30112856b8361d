"""Before any data is touched: what each mechanism needs, what it would do, what is proved."""
