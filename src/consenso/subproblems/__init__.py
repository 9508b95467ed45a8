"""Batched solvers for the parties' local problems, each answer with a certified distance to the exact one."""

from __future__ import annotations

from consenso.subproblems.local import Prox, Worst, certify, check_points, local_prox

__all__ = ["Prox", "Worst", "certify", "check_points", "local_prox"]
