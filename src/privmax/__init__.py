"""Differentially private selection: the best item of a huge or unknown universe.

`select` is where to start; the command `privmax help` lists the pages of the documentation.
"""

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.3.0.dev0"

if TYPE_CHECKING:
    from privmax import itemsets, learning, markers
    from privmax.auditing import Audit, audit
    from privmax.choice import auto
    from privmax.errors import DataError, ParameterError, PrivacyWarning, PrivmaxError
    from privmax.groups import GroupedRelease, Groups
    from privmax.itemsets import top_itemsets
    from privmax.keyset.plans import KeyPlan, plan_keys
    from privmax.keyset.release import KeysRelease, keys
    from privmax.learning import (
        PrivateClassifier,
        PrivateERM,
        PrivateGAM,
        PrivateRegressor,
        select_model,
    )
    from privmax.ledger import Ledger, Request
    from privmax.maximization import maximize
    from privmax.mechanisms.above_threshold import AboveThreshold
    from privmax.mechanisms.max_of_truncated import MaxOfTruncated
    from privmax.mechanisms.noisy_maximum import NoisyMaximum
    from privmax.mechanisms.propose_test_release import DistanceTest, ProposeTestRelease
    from privmax.mechanisms.restricted_exponential import RestrictedExponential
    from privmax.padding import pad_time
    from privmax.planning.comparison import Comparison, compare
    from privmax.planning.plans import Plan, crossover, plan
    from privmax.privacy import Privacy
    from privmax.profile import Profile
    from privmax.release import Release
    from privmax.selection import law, select
    from privmax.sources.declared import Database, TextFile
    from privmax.sources.roles import Columns
    from privmax.sources.scale import Scores
    from privmax.universe import Universe

if TYPE_CHECKING:  # written by tools/pages.py from mechanisms/registry.py
    from privmax.mechanisms.choosing import Choosing
    from privmax.mechanisms.exponential import Exponential
    from privmax.mechanisms.gap_test import GapTest
    from privmax.mechanisms.guards import DYADIC, FEW, Guards
    from privmax.mechanisms.joint_exponential import JointExponential
    from privmax.mechanisms.large_margin import LargeMargin
    from privmax.mechanisms.large_margin_truncated import LargeMarginTruncated
    from privmax.mechanisms.limited_domain import LimitedDomain
    from privmax.mechanisms.max_of_laplaces import MaxOfLaplaces
    from privmax.mechanisms.nested_margin import FOURFOLD, NestedMargin
    from privmax.mechanisms.permute_and_flip import PermuteAndFlip
    from privmax.mechanisms.ranked_margin import RankedMargin
    from privmax.mechanisms.set_margin import SetMargin
    from privmax.mechanisms.sharp_margin import SharpMargin
    from privmax.mechanisms.stable_maximum import StableMaximum
    from privmax.mechanisms.stages import Stage

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
    "GroupedRelease": "groups",
    "Groups": "groups",
    "top_itemsets": "itemsets",
    "KeyPlan": "keyset.plans",
    "plan_keys": "keyset.plans",
    "KeysRelease": "keyset.release",
    "keys": "keyset.release",
    "PrivateClassifier": "learning",
    "PrivateERM": "learning",
    "PrivateGAM": "learning",
    "PrivateRegressor": "learning",
    "select_model": "learning",
    "Ledger": "ledger",
    "Request": "ledger",
    "maximize": "maximization",
    "AboveThreshold": "mechanisms.above_threshold",
    "MaxOfTruncated": "mechanisms.max_of_truncated",
    "NoisyMaximum": "mechanisms.noisy_maximum",
    "DistanceTest": "mechanisms.propose_test_release",
    "ProposeTestRelease": "mechanisms.propose_test_release",
    "RestrictedExponential": "mechanisms.restricted_exponential",
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
    "Database": "sources.declared",
    "TextFile": "sources.declared",
    "Scores": "sources.scale",
    "Columns": "sources.roles",
    "Universe": "universe",
}
"""The module of each public name: it is loaded when the name is first used, so that `import
privmax` takes no time. Those of mechanisms are in their registry.
"""


if not TYPE_CHECKING:  # who checks types sees the imports above, and that no other name exists

    def __getattr__(name: str) -> Any:
        if name in _MODULES:
            return import_module(f"privmax.{name}")
        home = f"privmax.{_HOMES[name]}" if name in _HOMES else _find_mechanism(name)
        if home is None:
            raise AttributeError(f"module 'privmax' has no attribute {name!r}")
        value = getattr(import_module(home), name)
        setattr(sys.modules[__name__], name, value)
        return value


def _find_mechanism(name: str) -> str | None:
    """Return the module of a mechanism, or of what goes with one; None: there is no such name."""
    if name.startswith("_"):  # which Python itself looks for, and would load the registry
        return None
    from privmax.mechanisms.registry import public_names

    return public_names().get(name)


def __dir__() -> list[str]:
    return sorted({"__version__", *_MODULES, *__all__})


__all__ = [
    "AboveThreshold",
    "Audit",
    "Columns",
    "Comparison",
    "DataError",
    "Database",
    "DistanceTest",
    "GroupedRelease",
    "Groups",
    "KeyPlan",
    "KeysRelease",
    "Ledger",
    "MaxOfTruncated",
    "NoisyMaximum",
    "ParameterError",
    "Plan",
    "Privacy",
    "PrivacyWarning",
    "PrivateClassifier",
    "PrivateERM",
    "PrivateGAM",
    "PrivateRegressor",
    "PrivmaxError",
    "Profile",
    "ProposeTestRelease",
    "Release",
    "Request",
    "RestrictedExponential",
    "Scores",
    "TextFile",
    "Universe",
    "audit",
    "auto",
    "compare",
    "crossover",
    "itemsets",
    "keys",
    "law",
    "learning",
    "markers",
    "maximize",
    "pad_time",
    "plan",
    "plan_keys",
    "select",
    "select_model",
    "top_itemsets",
]

__all__ += [  # written by tools/pages.py from mechanisms/registry.py
    "DYADIC",
    "FEW",
    "FOURFOLD",
    "Choosing",
    "Exponential",
    "GapTest",
    "Guards",
    "JointExponential",
    "LargeMargin",
    "LargeMarginTruncated",
    "LimitedDomain",
    "MaxOfLaplaces",
    "NestedMargin",
    "PermuteAndFlip",
    "RankedMargin",
    "SetMargin",
    "SharpMargin",
    "StableMaximum",
    "Stage",
]
