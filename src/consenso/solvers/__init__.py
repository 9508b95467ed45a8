"""Which algorithm fits a problem, with which hyperparameters: rules from public facts only, nothing to tune."""

from __future__ import annotations

from consenso.solvers.choose import names, prepare
from consenso.solvers.exact import Exact, fit_exact, solve_exact
from consenso.solvers.forecast import ExpectedExcess, expected_excess

__all__ = ["Exact", "ExpectedExcess", "expected_excess", "fit_exact", "names", "prepare", "solve_exact"]
