"""Regularizers: convex functions of the model, with their proxes."""

from __future__ import annotations

from consenso.regularizers.constraints import Ball, Box, Simplex
from consenso.regularizers.groups import GroupL1
from consenso.regularizers.norms import L1, L2, ElasticNet, NoPenalty
from consenso.regularizers.regularizer import Regularizer
from consenso.regularizers.sums import Sum
from consenso.regularizers.unpenalized import Unpenalized

__all__ = [
    "L1",
    "L2",
    "Ball",
    "Box",
    "ElasticNet",
    "GroupL1",
    "NoPenalty",
    "Regularizer",
    "Simplex",
    "Sum",
    "Unpenalized",
]
