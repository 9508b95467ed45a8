"""How often 90 % intervals of private models cover the truth.

    python -m benchmarks.coverage --seeds 100 --page docs/estimators.md

Every seed draws new records and new noise. A row of the table is a model, a law of the rows and a budget; "ordinary"
are the intervals that leave the noise of privacy out. The last two rows have a row bound that half of the rows exceed.
"""

from __future__ import annotations

import argparse
import math
import warnings
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from scipy.special import expit

from consenso import PrivateLogisticRegression, PrivateRidge
from consenso.arrays import Array
from consenso.audit.table import write_into
from consenso.errors import InputError
from consenso.estimators.uncertainty import estimate

TRUTH, INTERCEPT, SPREAD = np.array([1.0, -0.5, 0.25, 0.0]), 0.3, 0.5
LEVEL = 0.9
MARKERS = ("<!-- coverage -->", "<!-- end of coverage -->")
FIRST_SEED = 50_000


@dataclass(frozen=True, kw_only=True)
class Setting:
    """model: ridge or logistic. rows: uniform, gaussian or skewed. bound: on rows, sqrt(4) for all of uniform ones."""

    model: str
    rows: str = "uniform"
    records: int = 2000
    epsilon: float = 1.0
    bound: float = 2.0


SETTINGS = (
    *(Setting(model=model, epsilon=epsilon) for epsilon in (1.0, 4.0) for model in ("ridge", "logistic")),
    *(Setting(model=model, rows="gaussian", bound=4.0, records=4000) for model in ("ridge", "logistic")),
    *(Setting(model=model, rows="skewed", bound=4.0, records=4000) for model in ("ridge", "logistic")),
    *(Setting(model=model, bound=1.1, epsilon=4.0) for model in ("ridge", "logistic")),
)


def draw(setting: Setting, seed: int) -> tuple[Array, Array]:
    """Records of a setting: rows, and targets of a linear or a logistic model."""
    rng, shape = np.random.default_rng(seed), (setting.records, len(TRUTH))
    if setting.rows == "uniform":
        X = rng.uniform(-1, 1, shape)
    elif setting.rows == "gaussian":
        X = np.clip(0.5 * rng.normal(size=shape), -2, 2)
    else:
        X = np.clip(0.5 * (rng.exponential(size=shape) - 1), -2, 2)
    score = X @ TRUTH + INTERCEPT
    if setting.model == "ridge":
        return X, score + SPREAD * rng.normal(size=len(X))
    return X, (rng.random(len(X)) < expit(2 * score)).astype(float)


def measure(setting: Setting, seeds: int) -> tuple[Array, Array]:
    """Of each fit that has intervals, the share of the coefficients that they cover, and that ordinary ones do."""
    truth = np.append(TRUTH, INTERCEPT) * (1.0 if setting.model == "ridge" else 2.0)
    covered, ordinary = [], []
    for seed in range(FIRST_SEED, FIRST_SEED + seeds):
        X, y = draw(setting, seed)
        shared = {"epsilon": setting.epsilon, "row_bound": setting.bound, "random_state": seed}
        if setting.model == "ridge":
            model = PrivateRidge(target_bound=4.0, **shared).fit(X, y)
        else:
            model = PrivateLogisticRegression(classes=[0.0, 1.0], **shared).fit(X, y)
        try:
            low, high = model.confidence_intervals(LEVEL).T
        except InputError:
            continue
        covered.append(((low <= truth) & (truth <= high)).mean())
        ordinary.append((np.abs(_center(model) - truth) <= 1.645 * _sampling_errors(model)).mean())
    return np.array(covered), np.array(ordinary)


def describe(setting: Setting, seeds: int) -> str:
    """A line of the table. Coefficients of one fit share its noise: the error is that of the mean over fits."""
    covered, ordinary = measure(setting, seeds)
    error = covered.std(ddof=1) / math.sqrt(len(covered))
    return (
        f"| {setting.model} | {setting.rows} | {setting.records:,} | {setting.epsilon:g} | {setting.bound:g} | "
        f"{len(covered):,} | {covered.mean():.1%} +- {error:.1%} | {ordinary.mean():.1%} |"
    )


def _center(model: PrivateRidge | PrivateLogisticRegression) -> Array:
    return model.confidence_intervals(LEVEL).mean(axis=1)


def _sampling_errors(model: PrivateRidge | PrivateLogisticRegression) -> Array:
    """Standard errors as if there were no noise."""
    assert model._evidence is not None
    loss, records, constant, seen = model._evidence
    assert seen is not None
    assert constant is not None
    quiet = replace(seen, noise=0.0, scatter=np.zeros(3), moments=replace(seen.moments, blur=0.0))
    errors = estimate(loss, records, constant, quiet).standard_errors
    return np.append(errors[:-1], constant * errors[-1])


def main() -> None:
    """Print the table, and write it into a page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=100)
    parser.add_argument("--page", type=Path, help="file whose table is written anew")
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    lines = [
        "| model | rows | records | epsilon | row_bound | fits | covered | ordinary |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    print(*lines, sep="\n")
    for setting in SETTINGS:
        lines.append(describe(setting, asked.seeds))
        print(lines[-1], flush=True)
    if asked.page is not None:
        write_into(asked.page, "\n".join(lines), MARKERS)


if __name__ == "__main__":
    main()
