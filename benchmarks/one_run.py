"""One-run audits: our bounds beside those of JAX Privacy (`jax_privacy.auditing`) on the same runs and scores.

    CONSENSO_JAX_PRIVACY=path/to/jax_privacy/auditing.py python -m benchmarks.one_run

The module needs NumPy, SciPy and dp_accounting only, so that the file alone is enough; without the variable the
installed package is taken. Its bounds are those of Steinke et al. 2023 and Mahloujifar et al. 2024, with the threshold
corrected for having been looked for, or chosen on half of the canaries.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from typing import Any

import numpy as np

from consenso.arrays import Array
from consenso.audit import one_run_table
from consenso.audit.guesses import mu_of_claim
from consenso.audit.one_run import weigh
from consenso.conventions import LARGEST_DELTA
from consenso.privacy.events import Gaussian, Pure

SEEDS = range(16)
CLAIMS = (3.0, 8.0)
CANARIES, CONFIDENCE = 2000, 0.95


def load() -> Any:
    """The rival's module."""
    path = os.environ.get("CONSENSO_JAX_PRIVACY")
    if path is None:
        return importlib.import_module("jax_privacy.auditing")
    spec = importlib.util.spec_from_file_location("jax_privacy_auditing", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def bound_theirs(theirs: Any, scores: Array, coins: Array) -> list[float]:
    """Steinke et al. and Mahloujifar et al., each with two ways to choose a threshold."""
    auditor = theirs.CanaryScoreAuditor(scores[coins], scores[~coins])
    strategies = (theirs.Bonferroni(), theirs.Split(seed=0))
    return [
        float(method(1 - CONFIDENCE, LARGEST_DELTA, threshold_strategy=strategy))
        for method in (auditor.epsilon_one_run, auditor.epsilon_one_run_fdp)
        for strategy in strategies
    ]


def main() -> None:
    """Measure and print a table."""
    theirs = load()
    print("| claimed | Steinke et al., ours | theirs, all thresholds | theirs, split | Mahloujifar et al., ours | "
          "theirs, all thresholds | theirs, split |")  # fmt: skip
    print("| --- |" + " --- |" * 6)
    for epsilon in CLAIMS:
        claim = Gaussian(std=1.0, sensitivity=mu_of_claim(Pure(epsilon), LARGEST_DELTA))
        found = []
        for seed in SEEDS:
            scores, coins = one_run_table.draw(claim.sensitivity, CANARIES, seed)
            ours = weigh(scores, coins, delta=LARGEST_DELTA, confidence=CONFIDENCE, claim=claim)
            any_, any_split, curve, curve_split = bound_theirs(theirs, scores, coins)
            found.append([ours.lower, any_, any_split, ours.within, curve, curve_split])
        cells = " | ".join(f"{mean:.2f}, {mean / epsilon:.0%}" for mean in np.mean(found, axis=0))
        print(f"| {epsilon:g} | {cells} |", flush=True)


if __name__ == "__main__":
    main()
