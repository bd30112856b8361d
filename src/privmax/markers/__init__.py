"""Markers in a case–control study under differential privacy: which differ most between the groups.

Imported when it is first named: `from privmax.markers import top_markers`.
"""

from privmax.markers.release import GenotypeColumns, top_markers


def __dir__() -> list[str]:
    return __all__


__all__ = ["GenotypeColumns", "top_markers"]
