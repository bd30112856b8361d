"""Tumult Core: noise on a number. It imports Spark, and starts none.

Each is claimed to cost what its own privacy function says of neighbors at distance 1.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from privmax.testers.claims import Claim
from privmax.testers.subjects import Subject

PACKAGE = "tmlt.core"


def subjects() -> list[Subject]:
    """Return all that the installed version has."""
    import numpy as np

    domains = import_module("tmlt.core.domains.numpy_domains")
    noises = import_module("tmlt.core.measurements.noise_mechanisms")
    real = domains.NumpyFloatDomain()
    made: dict[str, tuple[Any, Any, bool]] = {
        "AddLaplaceNoise": (noises.AddLaplaceNoise(real, 1), np.float64, False),
        "AddGeometricNoise": (noises.AddGeometricNoise(1), np.int64, False),
        "AddDiscreteGaussianNoise": (noises.AddDiscreteGaussianNoise(1), np.int64, True),
    }
    return [_subject(name, *row) for name, row in made.items()]


def _subject(name: str, noise: Any, kind: Any, rho: bool) -> Subject:
    cost = noise.privacy_function(1).to_float(round_up=True)
    claim = Claim.of(rho=cost) if rho else Claim.of(epsilon=cost)
    return Subject(PACKAGE, name, claim, [(0, 1), (3, 4)], lambda data, seed: noise(kind(data)))
