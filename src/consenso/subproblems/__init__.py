"""Batched solvers for the parties' local problems, each answer with a certified distance to the exact one."""

from __future__ import annotations

from consenso.subproblems.local import Prox, certify, check_points, hide_by_rounding, local_prox

__all__ = ["Prox", "certify", "check_points", "hide_by_rounding", "local_prox"]
