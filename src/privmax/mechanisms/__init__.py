"""One file a mechanism; each answers `draw`, `law`, `privacy` and `lead`."""
