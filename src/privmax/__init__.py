"""Differentially private selection: the best item of a huge or unknown universe.

`select` is the front door; README.md shows it in five lines, docs/ has the rest.
"""

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.2.0.dev0"

if TYPE_CHECKING:
    from privmax import itemsets, learning, markers
    from privmax.auditing import Audit, audit
    from privmax.choice import auto
    from privmax.errors import DataError, ParameterError, PrivacyWarning, PrivmaxError
    from privmax.itemsets import top_itemsets
    from privmax.learning import PrivateERM, select_model
    from privmax.ledger import Ledger
    from privmax.mechanisms.above_threshold import AboveThreshold
    from privmax.mechanisms.choosing import Choosing
    from privmax.mechanisms.exponential import Exponential
    from privmax.mechanisms.gap_test import GapTest
    from privmax.mechanisms.guards import DYADIC, FEW, Guards
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
    from privmax.mechanisms.set_margin import SetMargin
    from privmax.mechanisms.sharp_margin import SharpMargin
    from privmax.mechanisms.stable_maximum import StableMaximum
    from privmax.mechanisms.stages import Stage
    from privmax.padding import pad_time
    from privmax.planning.comparison import Comparison, compare
    from privmax.planning.plans import Plan, crossover, plan
    from privmax.privacy import Privacy
    from privmax.profile import Profile
    from privmax.release import Release
    from privmax.selection import law, select
    from privmax.universe import Universe

_MODULES = (
    "errors",
    "itemsets",
    "learning",
    "ledger",
    "markers",
    "mechanisms",
    "noise",
    "planning",
    "privacy",
    "profile",
    "report",
    "samples",
)
"""Whatever else can be named."""

_HOMES = {
    "Audit": "auditing",
    "audit": "auditing",
    "auto": "choice",
    "DataError": "errors",
    "ParameterError": "errors",
    "PrivacyWarning": "errors",
    "PrivmaxError": "errors",
    "top_itemsets": "itemsets",
    "PrivateERM": "learning",
    "select_model": "learning",
    "Ledger": "ledger",
    "AboveThreshold": "mechanisms.above_threshold",
    "Choosing": "mechanisms.choosing",
    "Exponential": "mechanisms.exponential",
    "GapTest": "mechanisms.gap_test",
    "JointExponential": "mechanisms.joint_exponential",
    "LargeMargin": "mechanisms.large_margin",
    "LargeMarginTruncated": "mechanisms.large_margin_truncated",
    "LimitedDomain": "mechanisms.limited_domain",
    "MaxOfLaplaces": "mechanisms.max_of_laplaces",
    "MaxOfTruncated": "mechanisms.max_of_truncated",
    "FOURFOLD": "mechanisms.nested_margin",
    "NestedMargin": "mechanisms.nested_margin",
    "NoisyMaximum": "mechanisms.noisy_maximum",
    "PermuteAndFlip": "mechanisms.permute_and_flip",
    "DistanceTest": "mechanisms.propose_test_release",
    "ProposeTestRelease": "mechanisms.propose_test_release",
    "RestrictedExponential": "mechanisms.restricted_exponential",
    "DYADIC": "mechanisms.guards",
    "FEW": "mechanisms.guards",
    "Guards": "mechanisms.guards",
    "SetMargin": "mechanisms.set_margin",
    "Stage": "mechanisms.stages",
    "SharpMargin": "mechanisms.sharp_margin",
    "StableMaximum": "mechanisms.stable_maximum",
    "pad_time": "padding",
    "Comparison": "planning.comparison",
    "compare": "planning.comparison",
    "Plan": "planning.plans",
    "crossover": "planning.plans",
    "plan": "planning.plans",
    "Privacy": "privacy",
    "Profile": "profile",
    "Release": "release",
    "law": "selection",
    "select": "selection",
    "Universe": "universe",
}
"""The module of each public name: it is loaded when the name is first used, so that `import
privmax` takes no time.
"""


if not TYPE_CHECKING:  # who checks types sees the imports above, and that no other name exists

    def __getattr__(name: str) -> Any:
        if name in _MODULES:
            return import_module(f"privmax.{name}")
        if name not in _HOMES:
            raise AttributeError(f"module 'privmax' has no attribute {name!r}")
        value = getattr(import_module(f"privmax.{_HOMES[name]}"), name)
        setattr(sys.modules[__name__], name, value)
        return value


def __dir__() -> list[str]:
    return [*globals(), *__all__]


__all__ = [
    "DYADIC",
    "FEW",
    "FOURFOLD",
    "AboveThreshold",
    "Audit",
    "Choosing",
    "Comparison",
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
    "PrivacyWarning",
    "PrivateERM",
    "PrivmaxError",
    "Profile",
    "ProposeTestRelease",
    "Release",
    "RestrictedExponential",
    "SetMargin",
    "SharpMargin",
    "StableMaximum",
    "Stage",
    "Universe",
    "audit",
    "auto",
    "compare",
    "crossover",
    "itemsets",
    "law",
    "learning",
    "markers",
    "pad_time",
    "plan",
    "select",
    "select_model",
    "top_itemsets",
]
