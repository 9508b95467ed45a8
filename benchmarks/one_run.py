"""One-run audits: our bounds beside those of public programs on the same runs and scores.

    export CONSENSO_JAX_PRIVACY=path/to/jax_privacy/auditing.py CONSENSO_OPAKE=path/to/site-packages
    python -m benchmarks.one_run

JAX Privacy (`jax_privacy.auditing`) needs NumPy, SciPy and dp_accounting only, so that the file alone is enough. Its
bounds are those of Steinke et al. 2023 and Mahloujifar et al. 2024, with the threshold corrected for having been looked
for, or chosen on half of the canaries. Opake (`pip install --no-deps opake-base opake-auditing`) has the bounds of
Xiang et al. 2025; its estimators need NumPy and SciPy only. Each is taken if its variable is set.

A second table is of canaries that show much or little together: each alone is as private as is claimed.
"""

from __future__ import annotations

import importlib.util
import os
import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from consenso.audit import one_run_table
from consenso.audit.guesses import mu_of_claim
from consenso.audit.one_run import weigh
from consenso.conventions import LARGEST_DELTA
from consenso.privacy.events import Gaussian, Pure

SEEDS = range(16)
CLAIMS = (3.0, 8.0)
CANARIES, CONFIDENCE = 2000, 0.95


Bounds = Callable[[np.ndarray, np.ndarray], list[float]]
# Points of Opake's integrals: the fewest that it allows, with errors of 1e-6. Its default takes a minute a run.
GRID = 1000


def load_jax_privacy(path: str) -> Bounds:
    """Steinke et al. and Mahloujifar et al., each with two ways to choose a threshold."""
    spec = importlib.util.spec_from_file_location("jax_privacy_auditing", path)
    assert spec is not None
    assert spec.loader is not None
    theirs: Any = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = theirs
    spec.loader.exec_module(theirs)

    def bound(scores: np.ndarray, coins: np.ndarray) -> list[float]:
        auditor = theirs.CanaryScoreAuditor(scores[coins], scores[~coins])
        strategies = (theirs.Bonferroni(), theirs.Split(seed=0))
        return [
            float(method(1 - CONFIDENCE, LARGEST_DELTA, threshold_strategy=strategy))
            for method in (auditor.epsilon_one_run, auditor.epsilon_one_run_fdp)
            for strategy in strategies
        ]

    return bound


def load_opake(path: str) -> Bounds:
    """Xiang et al. for any mechanism, and for Gaussian ones, which is the default."""
    sys.path.append(path)
    # The package imports PyTorch for attacks that are not used here.
    package = types.ModuleType("opake.api.auditing")
    package.__path__ = [str(Path(path) / "opake/api/auditing")]
    sys.modules[package.__name__] = package
    theirs: Any = importlib.import_module("opake.api.auditing.one_run._estimate")

    def bound(scores: np.ndarray, coins: np.ndarray) -> list[float]:
        inside, outside = scores[coins], scores[~coins]
        thresholds, negatives, missed = theirs.get_tn_fn_counts(inside, outside)
        estimate = theirs.OneRunEstimate(
            n_in=len(inside),
            n_out=len(outside),
            thresholds=thresholds,
            tn_counts=negatives,
            fn_counts=missed,
            tp_counts=(missed[-1] - missed)[::-1],
            fp_counts=(negatives[-1] - negatives)[::-1],
            in_scores=inside,
            out_scores=outside,
        )
        methods = (estimate.eps_delta(), estimate.gdp(grid_size=GRID))
        return [float(method.epsilon_at(delta=LARGEST_DELTA, significance=1 - CONFIDENCE)) for method in methods]

    return bound


RIVALS: dict[str, tuple[Callable[[str], Bounds], tuple[str, ...]]] = {
    "CONSENSO_JAX_PRIVACY": (
        load_jax_privacy,
        (
            "JAX Privacy, Steinke et al., all thresholds",
            "split",
            "JAX Privacy, Mahloujifar et al., all thresholds",
            "split",
        ),
    ),
    "CONSENSO_OPAKE": (load_opake, ("Opake, any mechanism", "Opake, Gaussian")),
}


def main() -> None:
    """Measure and print both tables."""
    rivals = [(load(os.environ[name]), columns) for name, (load, columns) in RIVALS.items() if name in os.environ]
    columns = ["any mechanism", "claimed curve", "Gaussian pair", *(name for _, names in rivals for name in names)]
    for draw, what in (
        (one_run_table.draw, "mean"),
        (one_run_table.draw_coupled, "share of runs above the claim, coupled"),
    ):
        print(f"| claimed, {what} | " + " | ".join(columns) + " |")
        print("| --- |" + " --- |" * len(columns))
        for epsilon in CLAIMS:
            claim = Gaussian(std=1.0, sensitivity=mu_of_claim(Pure(epsilon), LARGEST_DELTA))
            found = []
            for seed in SEEDS:
                scores, coins = draw(claim.sensitivity, CANARIES, seed)
                ours = weigh(scores, coins, delta=LARGEST_DELTA, confidence=CONFIDENCE, claim=claim)
                theirs = [value for bound, _ in rivals for value in bound(scores, coins)]
                found.append([ours.lower, ours.within, ours.pair, *theirs])
            if draw is one_run_table.draw_coupled:
                cells = " | ".join(f"{share:.0%}" for share in np.mean(np.array(found) > epsilon, axis=0))
            else:
                cells = " | ".join(f"{mean:.2f}, {mean / epsilon:.0%}" for mean in np.mean(found, axis=0))
            print(f"| {epsilon:g} | {cells} |", flush=True)


if __name__ == "__main__":
    main()
