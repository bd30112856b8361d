"""What stands before a private learner in a pipeline of scikit-learn, and learns from the same
private rows without noise.

A learner is not told that it is part of a pipeline. While it is fitted, the pipeline is among those
who called it, and that is where it is looked for. Whoever transforms X beforehand is not seen.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

from privmax.warnings import warn_of_steps

_DEEPEST = 40
"""Calls between a pipeline's `fit` and that of its last step. There are two or three."""

_DECLARED = ("categories", "vocabulary", "feature_names", "dictionary")
"""Parameters that say what a step would otherwise learn; "auto" and None do not."""


def warn_of_pipeline(learner: Any) -> None:
    """Warn if a learner is fitted as a part of a pipeline whose earlier steps learn from X."""
    pipeline = _calling_pipeline()
    if pipeline is None:
        return
    steps = [
        name
        for step_name, step in _earlier_steps(pipeline, learner)
        for name in _learning_parts(step_name, step)
    ]
    if steps:
        warn_of_steps(steps)


def _calling_pipeline() -> Any:
    """The pipeline of scikit-learn that is being fitted; None: there is none."""
    module = sys.modules.get("sklearn.pipeline")
    frame = sys._getframe(2)
    for _ in range(_DEEPEST):
        if module is None or frame is None:
            return None
        caller = frame.f_locals.get("self")
        if isinstance(caller, module.Pipeline) and frame.f_code.co_name.startswith("fit"):
            return caller
        frame = frame.f_back  # type: ignore[assignment]
    return None


def _earlier_steps(pipeline: Any, learner: Any) -> list[tuple[str, Any]]:
    """The steps before the learner, or before the first of its type: a pipeline may fit a copy."""
    types = [type(step) for _, step in pipeline.steps]
    places = [place for place, (_, step) in enumerate(pipeline.steps) if step is learner]
    if not places and type(learner) in types:
        places = [types.index(type(learner))]
    return list(pipeline.steps[: places[0] if places else -1])


def _learning_parts(name: str, step: Any) -> Iterator[str]:
    """The names of a step, or of the parts of one that only distributes, that learn from X."""
    if step is None or isinstance(step, str):
        return  # "passthrough", "drop"
    parts = getattr(step, "transformers", None) or getattr(step, "transformer_list", None)
    if parts:
        for part in parts:
            yield from _learning_parts(f"{name}.{part[0]}", part[1])
        return
    if hasattr(step, "steps"):
        for part_name, part in step.steps:
            yield from _learning_parts(f"{name}.{part_name}", part)
        return
    if _learns(step):
        yield f"{name} ({type(step).__name__})"


def _learns(step: Any) -> bool:
    """Whether a transformer learns from the rows that it is fitted to, as far as it tells.

    One that takes a ledger is charged for what it learns.
    """
    from sklearn.utils import get_tags

    if hasattr(step, "ledger"):
        return False
    try:
        stateless = not get_tags(step).requires_fit
    except Exception:  # a class of somebody's own, which has no tags
        stateless = False
    if stateless or getattr(step, "strategy", None) == "constant":
        return False
    declared = (getattr(step, name, None) for name in _DECLARED)
    return not any(given is not None and not isinstance(given, str) for given in declared)
