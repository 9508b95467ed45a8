"""Refusals of bad parameters, targets, points and steps.

Messages name the kind of value that was found, never the value itself: a target is part of a private record, and an
error may travel further than the data.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from consenso.arrays import Array
from consenso.errors import InputError, is_finite

# Beyond this, point - step * slope has no digits left to solve for.
LARGEST_STEP = 1e12


def check_bound(parameter: str, value: float) -> None:
    """A public bound on the rows is a finite number above 0."""
    if not (is_finite(value) and value > 0):
        raise InputError(
            f"{parameter}={value!r}: a bound on the norm of a row is a finite number above 0; clip the rows to one."
        )


def check_signs(owner: str, targets: NDArray[Any]) -> None:
    """Targets (n,) are -1 or +1."""
    _check_vector(owner, targets)
    if not np.all(np.abs(targets) == 1):  # NaN compares unequal
        raise InputError(
            f"{owner}: targets must be -1 or +1, and some are neither; map labels 0 and 1 to them by 2 * labels - 1."
        )


def check_reals(owner: str, targets: NDArray[Any]) -> None:
    """Targets (n,) are finite."""
    _check_vector(owner, targets)
    if not np.all(np.isfinite(targets)):
        raise InputError(
            f"{owner}: targets must be finite, and some are NaN or infinite; drop or impute those records."
        )


def check_classes(owner: str, classes: int, targets: NDArray[Any]) -> None:
    """Targets (n,) are integers in 0..classes-1."""
    _check_vector(owner, targets)
    if targets.dtype.kind not in "iu":
        raise InputError(
            f"{owner}: targets must be integer class indices, and their type is {targets.dtype}; "
            "encode the labels as int64."
        )
    if targets.size and (targets.min() < 0 or targets.max() >= classes):
        raise InputError(
            f"{owner}: targets must be class indices in 0..{classes - 1}, and some lie outside; "
            "number the classes from 0 or raise `classes`."
        )


def _check_vector(owner: str, targets: NDArray[Any]) -> None:
    if targets.ndim != 1 or targets.dtype.kind not in "fiu":
        raise InputError(
            f"{owner}: targets must be a numeric vector of shape (records,), and they are {targets.dtype} of shape "
            f"{targets.shape}; pass one number per record."
        )


def check_scores(owner: str, outputs: int, scores: NDArray[Any]) -> None:
    """Scores are finite, (n,) for one output and (n, outputs) for several."""
    fits = scores.ndim == 1 if outputs == 1 else scores.ndim == 2 and scores.shape[1] == outputs
    if not fits:
        shape = "(records,)" if outputs == 1 else f"(records, {outputs})"
        raise InputError(f"{owner}: scores must have shape {shape}, and theirs is {scores.shape}; reshape them.")
    if not np.all(np.isfinite(scores)):
        raise InputError(
            f"{owner}: scores must be finite, and some are NaN or infinite; check the rows, then the model."
        )


def require_step(step: float, row_bound: float, needed_by: str) -> None:
    """Refuse a step that is too large for a row at the bound: a rule of public facts, so that no row decides it.

    step: that of a record's own loss.
    """
    if not step * row_bound**2 <= LARGEST_STEP:
        raise InputError(
            f"{needed_by}: the step of a record times the squared row bound is {step * row_bound**2:.3g}, and proxes "
            f"are solved up to {LARGEST_STEP:.0e}; take a smaller step, or state the rows in larger units."
        )


def prox_arguments(
    owner: str, outputs: int, points: NDArray[Any], steps: float | Array, targets: NDArray[Any]
) -> tuple[Array, Array]:
    """Points and steps as float64 arrays, steps of shape () or (n,), after checking that they fit the targets."""
    points = np.asarray(points, dtype=np.float64)
    steps = np.asarray(steps, dtype=np.float64)
    check_scores(owner, outputs, points)
    records = len(points)
    if targets.shape != (records,) or steps.shape not in ((), (records,)):
        raise InputError(
            f"{owner}: {records} points need as many targets, and one step or as many, and the shapes are "
            f"{targets.shape} and {steps.shape}; pass one target per record."
        )
    if not np.all((steps >= 0) & (steps <= LARGEST_STEP)):
        raise InputError(
            f"{owner}: a step lies in [0, {LARGEST_STEP:.0e}], and some do not; "
            "rescale the rows, or the step of the algorithm."
        )
    return points, steps
