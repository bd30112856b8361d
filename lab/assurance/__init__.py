"""What tests and benchmarks of laws and draws share: settings, searches, repeated draws."""
