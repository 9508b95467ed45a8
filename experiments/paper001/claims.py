"""Bounds as printed by Chan, Xie and Zhao 2024, as zCDP. For comparison only: sound, and looser than need be."""

from __future__ import annotations


def printed_constant(*, step: float, penalty: float, matrix_norm: float, std: float) -> float:
    """The constant C of the final-iterate bound: D <= C |dx|^2 / T after 2T further iterations."""
    return max(2.0, 3 / (step * penalty)) * (1 + penalty * step * matrix_norm**2) / (2 * std**2)


def printed_final_iterate(
    *,
    step: float,
    penalty: float,
    matrix_norm: float,
    std: float,
    distance: float,
    pairs: int,
    pair_contraction: float = 1.0,
) -> float:
    """The bound itself, for a difference |dx| = distance and `pairs` = T; contraction L of a pair gives L^(T-1) / T."""
    constant = printed_constant(step=step, penalty=penalty, matrix_norm=matrix_norm, std=std)
    return constant * distance**2 * pair_contraction ** (pairs - 1) / pairs
