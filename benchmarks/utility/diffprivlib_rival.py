"""diffprivlib in its own environment, with the scikit-learn that it needs: pure epsilon, so its delta is 0.

Run as a script by that environment's Python: reads an .npz, writes the coefficients as .npy.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

ENVIRONMENT = "CONSENSO_DIFFPRIVLIB"


def python() -> str | None:
    """The interpreter of diffprivlib's environment, as `make bench-utility` names it."""
    found = os.environ.get(ENVIRONMENT)
    return found if found and Path(found).exists() else None


def fit(task: Any, strength: float, epsilon: float, seed: int) -> Any:
    """The coefficients, (features, outputs). `strength` is the L2 penalty; diffprivlib has no private choice of it."""
    interpreter = python()
    assert interpreter is not None
    with tempfile.TemporaryDirectory() as folder:
        given, made = Path(folder, "given.npz"), Path(folder, "made.npy")
        np.savez(
            given, X=task.X, y=task.y, epsilon=epsilon, strength=strength, seed=seed, bound=task.target_bound or 0.0
        )
        done = subprocess.run([interpreter, "-W", "ignore", __file__, given, made], capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(done.stderr.strip().splitlines()[-1])
        return np.load(made)


def _main(given: str, made: str) -> None:
    from diffprivlib.models import LinearRegression, LogisticRegression

    data = np.load(given)
    X, y, epsilon, seed = data["X"], data["y"], float(data["epsilon"]), int(data["seed"])
    if float(data["bound"]):
        bound = float(data["bound"])
        box = (np.minimum(-1.0, np.zeros(X.shape[1])), np.ones(X.shape[1]))
        model = LinearRegression(
            epsilon=epsilon, bounds_X=box, bounds_y=(-bound, bound), fit_intercept=False, random_state=seed
        ).fit(X, y)
        np.save(made, model.coef_.reshape(-1, 1))
        return
    inverse = 1.0 / (len(y) * float(data["strength"]))
    model = LogisticRegression(
        epsilon=epsilon, data_norm=1.0, C=inverse, fit_intercept=False, max_iter=1000, random_state=seed
    ).fit(X, y)
    np.save(made, model.coef_.T)


if __name__ == "__main__":
    _main(*sys.argv[1:])
