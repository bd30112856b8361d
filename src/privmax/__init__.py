"""Differentially private selection: the best item of a huge or unknown universe.

`select` is the front door; README.md shows it in five lines, docs/ has the rest.
"""

from privmax.audit import Audit, audit
from privmax.errors import DataError, ParameterError, PrivmaxError
from privmax.mechanisms.above_threshold import AboveThreshold
from privmax.mechanisms.exponential import Exponential
from privmax.mechanisms.large_margin import LargeMargin
from privmax.mechanisms.noisy_maximum import NoisyMaximum
from privmax.mechanisms.permute_and_flip import PermuteAndFlip
from privmax.mechanisms.restricted_exponential import RestrictedExponential
from privmax.mechanisms.sharp_margin import DYADIC, FEW, Guards, SharpMargin
from privmax.privacy import Privacy
from privmax.profile import Profile
from privmax.select import Release, auto, law, select

__version__ = "0.1.0"

__all__ = [
    "DYADIC",
    "FEW",
    "AboveThreshold",
    "Audit",
    "DataError",
    "Exponential",
    "Guards",
    "LargeMargin",
    "NoisyMaximum",
    "ParameterError",
    "PermuteAndFlip",
    "Privacy",
    "PrivmaxError",
    "Profile",
    "Release",
    "RestrictedExponential",
    "SharpMargin",
    "audit",
    "auto",
    "law",
    "select",
]
