"""Averaged operators that see the data through one mean over records, and the public halves of steps.

`NoisyFixedPoint` iterates a `MeanOperator` of the user's choice. Here are matrices, projections, blocks and the
certified private argmin that algorithms share; what a party or a hub does in a round belongs to `consenso.algorithms`.
"""

from __future__ import annotations

from consenso.operators.argmin import Argmin, argmin, certify_argmin
from consenso.operators.blocks import (
    Activation,
    AllBlocks,
    CyclicBlocks,
    RandomBlock,
    SampledBlocks,
    block_sizes,
    coordinates,
    is_separable,
    public_coins,
)
from consenso.operators.matrices import LinearMap, require_injective
from consenso.operators.records import MeanGradient, MeanOperator, MeanProx, gradient_bound, shorten_slopes

__all__ = [
    "Activation",
    "AllBlocks",
    "Argmin",
    "CyclicBlocks",
    "LinearMap",
    "MeanGradient",
    "MeanOperator",
    "MeanProx",
    "RandomBlock",
    "SampledBlocks",
    "argmin",
    "block_sizes",
    "certify_argmin",
    "coordinates",
    "gradient_bound",
    "is_separable",
    "public_coins",
    "require_injective",
    "shorten_slopes",
]
