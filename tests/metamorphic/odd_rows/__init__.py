"""Base data, one odd row more, and what every entry point reads of both."""
