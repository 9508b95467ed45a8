"""Refusals of bad parameters and steps."""

from __future__ import annotations

import numpy as np

from consenso.errors import InputError, is_finite


def is_count(value: object) -> bool:
    """Whether a parameter is a positive integer."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool) and int(value) >= 1


def check_strength(owner: str, parameter: str, value: float) -> None:
    """A strength is a finite number of at least 0."""
    if not (is_finite(value) and value >= 0):
        raise InputError(
            f"{owner}({parameter}={value!r}): a strength is a finite number of at least 0; use NoPenalty() for none."
        )


def check_step(owner: object, step: float) -> None:
    """A step of a prox is a finite number of at least 0, one for the whole batch."""
    if not (is_finite(step) and step >= 0):
        raise InputError(
            f"{owner!r}.prox(step={step!r}): a step is one finite number of at least 0; call once for each step."
        )
