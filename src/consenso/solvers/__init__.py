"""Which algorithm fits a problem, with which hyperparameters: rules from public facts only, nothing to tune."""

from __future__ import annotations

from consenso.solvers.choose import Prepared, names, prepare

__all__ = ["Prepared", "names", "prepare"]
