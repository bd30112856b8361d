"""Differentially private selection: the best item of a huge or unknown universe.

`select` is the front door; README.md shows it in five lines, docs/ has the rest.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from privmax.audit import Audit, audit
from privmax.errors import DataError, ParameterError, PrivmaxError
from privmax.ledger import Ledger
from privmax.mechanisms.above_threshold import AboveThreshold
from privmax.mechanisms.choosing import Choosing
from privmax.mechanisms.exponential import Exponential
from privmax.mechanisms.gap_test import GapTest
from privmax.mechanisms.joint_exponential import JointExponential
from privmax.mechanisms.large_margin import LargeMargin
from privmax.mechanisms.large_margin_truncated import LargeMarginTruncated
from privmax.mechanisms.limited_domain import LimitedDomain
from privmax.mechanisms.max_of_laplaces import MaxOfLaplaces
from privmax.mechanisms.max_of_truncated import MaxOfTruncated
from privmax.mechanisms.nested_margin import FOURFOLD, NestedMargin
from privmax.mechanisms.noisy_maximum import NoisyMaximum
from privmax.mechanisms.permute_and_flip import PermuteAndFlip
from privmax.mechanisms.propose_test_release import DistanceTest, ProposeTestRelease
from privmax.mechanisms.restricted_exponential import RestrictedExponential
from privmax.mechanisms.sharp_margin import DYADIC, FEW, Guards, SharpMargin
from privmax.mechanisms.stable_maximum import StableMaximum
from privmax.plan import Plan, crossover, plan
from privmax.privacy import Privacy
from privmax.profile import Profile
from privmax.select import Release, auto, law, select

__version__ = "0.1.0"

if TYPE_CHECKING:
    from privmax import itemsets, learning


def __getattr__(name: str) -> Any:
    """Packages that not everybody needs are loaded when they are first named."""
    if name in ("itemsets", "learning"):
        return import_module(f"privmax.{name}")
    raise AttributeError(f"module 'privmax' has no attribute {name!r}")


__all__ = [
    "DYADIC",
    "FEW",
    "FOURFOLD",
    "AboveThreshold",
    "Audit",
    "Choosing",
    "DataError",
    "DistanceTest",
    "Exponential",
    "GapTest",
    "Guards",
    "JointExponential",
    "LargeMargin",
    "LargeMarginTruncated",
    "Ledger",
    "LimitedDomain",
    "MaxOfLaplaces",
    "MaxOfTruncated",
    "NestedMargin",
    "NoisyMaximum",
    "ParameterError",
    "PermuteAndFlip",
    "Plan",
    "Privacy",
    "PrivmaxError",
    "Profile",
    "ProposeTestRelease",
    "Release",
    "RestrictedExponential",
    "SharpMargin",
    "StableMaximum",
    "audit",
    "auto",
    "crossover",
    "itemsets",
    "law",
    "learning",
    "plan",
    "select",
]
