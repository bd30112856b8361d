"""Steps before a private learner in a pipeline of scikit-learn.

Those that learn from the same private rows do so without noise.

A learner is not told that it is part of a pipeline. While it is fitted, the pipeline is among those
who called it, and that is where it is looked for. A transformation of X before that is not seen.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

from privmax.warnings import warn_of_steps

_DEEPEST = 100
"""Calls between the outermost pipeline's `fit` and that of the learner. Mostly there are three."""

_DECLARED = ("categories", "vocabulary", "feature_names", "dictionary", "knots")
"""Parameters that say what a step would otherwise learn; "auto", other words and None do not."""

_MORE = ("min_frequency", "max_categories", "use_idf", "target_type", "add_indicator")
"""Parameters of steps that learn something else as well, unless they are None or False."""

_NOTHING = ("FrozenEstimator", "PolynomialFeatures")
"""Classes that learn no more than how many columns there are, though they must be fitted."""


def warn_of_pipeline(learner: Any) -> None:
    """Warn if a learner is fitted as a part of a pipeline whose earlier steps learn from X."""
    pipelines = _calling_pipelines()
    steps = [
        name
        for pipeline, part in zip(pipelines, [*pipelines[1:], learner], strict=False)
        for step_name, step in _earlier_steps(pipeline, part)
        for name in _learning_parts(step_name, step)
    ]
    if steps:
        warn_of_steps(list(dict.fromkeys(steps)))


def _calling_pipelines() -> list[Any]:
    """Return the pipelines of scikit-learn that are being fitted, the outermost first."""
    module, pipelines = sys.modules.get("sklearn.pipeline"), []
    frame = sys._getframe(2)
    for _ in range(_DEEPEST):
        if module is None or frame is None:
            break
        code = frame.f_code
        # To ask for the variables of other calls would keep them, and the data, alive.
        if code.co_name.startswith("fit") and code.co_varnames[:1] == ("self",):
            caller = frame.f_locals.get("self")
            if isinstance(caller, module.Pipeline):
                pipelines.append(caller)
        frame = frame.f_back  # type: ignore[assignment]
    return pipelines[::-1]


def _earlier_steps(pipeline: Any, part: Any) -> list[tuple[str, Any]]:
    """Return the steps before the one that is being fitted, or before the first of its type.

    A pipeline may fit a copy. All but the last where there is neither.
    """
    types = [type(step) for _, step in pipeline.steps]
    places = [place for place, (_, step) in enumerate(pipeline.steps) if step is part]
    if not places and type(part) in types:
        places = [types.index(type(part))]
    return list(pipeline.steps[: places[0] if places else -1])


def _learning_parts(name: str, step: Any) -> Iterator[str]:
    """Yield the names of a step, or of its parts where it only distributes, that learn from X."""
    if step is None or isinstance(step, str):
        return  # "passthrough", "drop"
    parts = _parts(step)
    for part_name, part in parts:
        yield from _learning_parts(f"{name}.{part_name}", part)
    if not parts and _learns(step):
        yield f"{name} ({type(step).__name__})"


def _parts(step: Any) -> list[tuple[str, Any]]:
    """Return what a step distributes X to; nothing if it transforms X itself."""
    for attribute in ("transformers", "transformer_list", "steps"):
        listed = getattr(step, attribute, None)
        if isinstance(listed, list) and all(isinstance(one, tuple) for one in listed):
            rest = getattr(step, "remainder", None)
            return [(one[0], one[1]) for one in listed] + [("remainder", rest)]
    return []


def _learns(step: Any) -> bool:
    """Return whether a transformer learns from the rows it is fitted to, as far as it says."""
    from sklearn.utils import get_tags

    kind = type(step)
    if kind.__module__.startswith("privmax.") or kind.__name__ in _NOTHING:
        return False  # ours are private, and say what they cost
    try:
        stateless = not get_tags(step).requires_fit
    except Exception:  # a class of somebody's own, which has no tags
        stateless = False
    if stateless:
        return False
    more = (getattr(step, name, None) for name in _MORE)
    if any(value is not None and value is not False for value in more):
        return True
    if getattr(step, "strategy", None) == "constant":
        return False
    declared = (getattr(step, name, None) for name in _DECLARED)
    return not any(value is not None and not isinstance(value, str) for value in declared)
