"""Which algorithm fits a problem, with which hyperparameters: rules from public facts only, nothing to tune."""

from __future__ import annotations

from consenso.solvers.choose import names, prepare
from consenso.solvers.exact import Exact, fit_exact, solve_exact

__all__ = ["Exact", "fit_exact", "names", "prepare", "solve_exact"]
