"""Averaged operators: maps whose fixed points solve a problem, with the constants that are proved for them."""

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
from consenso.operators.contract import Operator, Proximable, Smooth
from consenso.operators.matrices import LinearMap
from consenso.operators.records import MeanGradient, MeanOperator, MeanProx, gradient_bound, shorten_slopes
from consenso.operators.splitting import DouglasRachford, Image, lions_mercier, require_injective
from consenso.operators.steps import (
    BlockGradientStep,
    GradientStep,
    ProximalGradient,
    ProximalPoint,
    ReflectedProx,
    contraction_of_reflection,
    gradient_contraction,
    largest_step,
    prox_sensitivity,
)

__all__ = [
    "Activation",
    "AllBlocks",
    "Argmin",
    "BlockGradientStep",
    "CyclicBlocks",
    "DouglasRachford",
    "GradientStep",
    "Image",
    "LinearMap",
    "MeanGradient",
    "MeanOperator",
    "MeanProx",
    "Operator",
    "Proximable",
    "ProximalGradient",
    "ProximalPoint",
    "RandomBlock",
    "ReflectedProx",
    "SampledBlocks",
    "Smooth",
    "argmin",
    "block_sizes",
    "certify_argmin",
    "contraction_of_reflection",
    "coordinates",
    "gradient_bound",
    "gradient_contraction",
    "is_separable",
    "largest_step",
    "lions_mercier",
    "prox_sensitivity",
    "public_coins",
    "require_injective",
    "shorten_slopes",
]
