"""Parties of one record each, as compiled rounds take them."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

from consenso.arrays import Array
from consenso.losses import Absolute, EpsilonInsensitive, Hinge, Huber, Logistic, Loss, SmoothedHinge, Squared
from consenso.losses.checks import LARGEST_STEP
from consenso.privacy.run_spec import RunSpec
from consenso.shards import Shards

# Rows; targets, weights and norms; and the loss: its number, its parameter, its largest curvature.
Records: TypeAlias = tuple[Any, tuple[Array, Array, Array], tuple[int, float, float]]


def records_of(spec: RunSpec, shards: Shards, step: float) -> Records | None:
    """Rows, their targets, weights and norms, and the loss, if the kernels can take them."""
    everyone, problem = shards.cohort(), spec.facts.problem
    rows = everyone._rows  # an engine may look at the rows of the parties that it runs; an algorithm may not
    if rows.is_sparse or len(shards.parties) != spec.parties or not rows.layout.one_each:
        return None
    loss = _find_compiled_loss(problem.loss)
    norms, weights = np.sqrt(everyone.squared_norms), step * problem.scales
    if loss is None or (weights * norms**2).max() > LARGEST_STEP:
        return None
    return rows.matrix, (np.ascontiguousarray(everyone._targets, dtype=np.float64), weights, norms), loss


def _find_compiled_loss(loss: Loss) -> tuple[int, float, float] | None:
    """The number and parameter under which a loss is compiled, and its largest curvature."""
    from consenso import kernels
    from consenso.engine.record_kernels import TUBE

    match loss:
        case Logistic():
            kind, parameter = kernels.LOGISTIC, 0.0
        case Squared():
            kind, parameter = kernels.RESIDUAL, np.inf
        case Huber():
            kind, parameter = kernels.RESIDUAL, loss.threshold
        case Hinge():
            kind, parameter = kernels.HINGE, 0.0
        case SmoothedHinge():
            kind, parameter = kernels.HINGE, loss.smoothing
        case Absolute():
            kind, parameter = TUBE, 0.0
        case EpsilonInsensitive():
            kind, parameter = TUBE, loss.width
        case _:
            return None
    return kind, float(parameter), float(loss.curvature_bound)
