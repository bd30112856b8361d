"""One file per mechanism; each answers `draw`, `law`, `privacy` and `lead`."""
