"""Private ADMM: convex models on sensitive data, with guarantees that are true for every observer."""

from __future__ import annotations

__version__ = "0.2.0.dev0"

_LAZY = {
    "PrivateElasticNet": "consenso.estimators",
    "PrivateHuberRegressor": "consenso.estimators",
    "PrivateLADRegressor": "consenso.estimators",
    "PrivateLasso": "consenso.estimators",
    "PrivateLinearSVC": "consenso.estimators",
    "PrivateLogisticRegression": "consenso.estimators",
    "PrivateRidge": "consenso.estimators",
    "PrivateScaler": "consenso.estimators",
    "plan": "consenso.runtime.plan",
    "private_bounds": "consenso.estimators",
    "run": "consenso.runtime.run",
}


def __getattr__(name: str) -> object:
    """Load what is heavy when it is first asked for."""
    if name not in _LAZY:
        raise AttributeError(f"module 'consenso' has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(_LAZY[name]), name)


def __dir__() -> list[str]:
    """The public names, also those that are not loaded yet."""
    return sorted([*_LAZY, "__version__"])
