"""A warning of pipelines that learn from the data, without noise, before a private model does."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from typing import Any

from consenso.conventions import GIVEN_BY, LEARNERS


class PipelineWarning(UserWarning):
    """A scaler, an imputer or an encoder that a pipeline fits on private data before a private model."""


def warn_of_learners(model: Any) -> None:
    """Warn where a pipeline that is being fitted has learnt something for this model. No data are looked at.

    A model is not told that it is part of a pipeline, so the callers are looked at.
    """
    steps = next((steps for steps in _open_pipelines() if steps and steps[-1] is model), [])
    found = sorted({type(each).__name__ for step in steps[:-1] for each in _parts(step) if learns(each)})
    if found:
        warnings.warn(
            f"{type(model).__name__}.fit: the pipeline has fitted {', '.join(found)} on these records before, and what "
            "that has learnt no guarantee covers; use SchemaTransformer, PrivateScaler or public constants.",
            PipelineWarning,
            stacklevel=4,
        )


def learns(step: Any) -> bool:
    """Whether a transformer of scikit-learn learns from data: all do that are not told."""
    name = type(step).__name__
    if name not in LEARNERS or not type(step).__module__.startswith("sklearn."):
        return False
    key, public = GIVEN_BY.get(name, ("", None))
    given = getattr(step, key, None)
    if public is not None:
        return bool(given != public)
    return given is None or isinstance(given, str)


def _open_pipelines() -> Iterator[list[Any]]:
    """The steps of the pipelines that are being fitted, the innermost first."""
    frame: Any = sys._getframe()
    while frame is not None:
        if frame.f_globals.get("__name__") == "sklearn.pipeline":
            steps = getattr(frame.f_locals.get("self"), "steps", None)
            if isinstance(steps, list):
                yield [step for _, step in steps]
        frame = frame.f_back


def _parts(step: Any) -> Iterator[Any]:
    """A step, or what it is made of: pipelines, unions and transformers of columns."""
    for name, place in (("steps", 1), ("transformer_list", 1), ("transformers", 1)):
        inner = getattr(step, name, None)
        if isinstance(inner, list):
            for each in inner:
                yield from _parts(each[place])
            return
    yield step
