"""Tables with more columns than a second moment can be taken of: the default, with nothing set, beside tuned descent.

`python -m benchmarks.utility.wide --page docs/solvers.md` writes the table of that page, in a few minutes. The rival is
noisy full-batch gradient descent with exact accounting, whose steps, rate and clip are the best of a grid on the test
part, for free, and are then measured with fresh noise. Rows are within a bound that one in twenty exceeds.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from scipy.optimize import brentq
from scipy.special import expit
from scipy.stats import norm

from consenso import PrivateLogisticRegression

RECORDS, TEST, COLUMNS, TOLD = 8000, 2000, 1300, 40
EPSILONS, DELTA, SEEDS = (1.0, 5.0), 1e-5, 2
GRID = tuple(product((10, 40, 160), (8.0, 32.0, 128.0, 512.0, 2048.0), (1.0, 0.3)))  # steps, rate, clip
BEGIN, END = "<!-- wide tables -->", "<!-- end of wide tables -->"


@dataclass(frozen=True, kw_only=True, eq=False)
class Made:
    """Rows (records, columns) that are at most 1 long but for a few, and signs."""

    rows: Any
    signs: np.ndarray

    @property
    def training(self) -> tuple[Any, np.ndarray]:
        """What is fitted."""
        return self.rows[:RECORDS], self.signs[:RECORDS]

    def loss(self, scores: np.ndarray) -> np.ndarray:
        """Mean log loss of scores (test records, ...) of the test part."""
        signs = self.signs[RECORDS:].reshape(-1, *[1] * (scores.ndim - 1))
        return np.logaddexp(0.0, -signs * scores).mean(axis=0)


def _dense(correlation: float = 0.0, decades: float = 0.0) -> Made:
    rng = np.random.default_rng(3)
    X = rng.normal(size=(RECORDS + TEST, COLUMNS))
    X = math.sqrt(1 - correlation) * X + math.sqrt(correlation) * rng.normal(size=(len(X), 1))
    scores = X[:, :TOLD] @ rng.normal(size=TOLD)
    sizes = 10.0 ** rng.permutation(np.linspace(-decades / 2, decades / 2, COLUMNS))
    return _label(X * sizes, scores, rng)


def _words() -> Made:
    rng = np.random.default_rng(0)
    columns, each, many = 2000, 30, RECORDS + TEST
    often = 1.0 / np.arange(1, columns + 1)
    words = rng.choice(columns, size=many * each, p=often / often.sum())
    X = sparse.csr_array((np.ones(many * each), (np.repeat(np.arange(many), each), words)), (many, columns))
    weights = np.where(rng.random(columns) < 0.1, rng.normal(size=columns), 0.0)
    return _label(X, X @ weights, rng)


def _label(X: Any, scores: np.ndarray, rng: np.random.Generator) -> Made:
    signs = np.where(rng.random(len(scores)) < expit(3 * (scores - scores.mean()) / scores.std()), 1.0, -1.0)
    lengths = np.sqrt(np.asarray((X * X).sum(axis=1)).ravel())
    return Made(rows=X / np.quantile(lengths, 0.95), signs=signs)


TABLES: dict[str, Callable[[], Made]] = {
    "2,000 words": _words,
    "dense, independent": _dense,
    "dense, correlated by 0.9": lambda: _dense(correlation=0.9),
    "dense, sizes over two decades": lambda: _dense(decades=2.0),
}


def our_losses(table: Made, epsilon: float) -> np.ndarray:
    """Of the default, (seeds,)."""
    X, signs = table.training
    settings = {"epsilon": epsilon, "delta": DELTA, "row_bound": 1.0, "classes": [-1, 1]}
    found = []
    for seed in range(SEEDS):
        model = PrivateLogisticRegression(**settings, adjacency="add-remove", records=RECORDS, random_state=seed)
        found.append(table.loss(model.fit(X, signs.astype(int)).decision_function(table.rows[RECORDS:])))
    return np.array(found)


def tuned_losses(table: Made, epsilon: float) -> tuple[np.ndarray, str]:
    """Of descent with the settings that are best on the test part, (seeds,), and which they are."""
    tuned = np.mean([_descend(table, epsilon, GRID, seed) for seed in range(100, 100 + SEEDS)], axis=0)
    best = GRID[int(np.argmin(tuned))]
    losses = np.array([_descend(table, epsilon, (best,), seed)[0] for seed in range(SEEDS)])
    return losses, "{} steps of {:g}, clip {:g}".format(*best)


def _descend(table: Made, epsilon: float, grid: tuple[tuple[int, float, float], ...], seed: int) -> np.ndarray:
    """Losses of every setting, (settings,)."""
    rng = np.random.default_rng(seed)
    rows = _with_constant(table.rows)
    A, b = rows[:RECORDS], table.signs[:RECORDS, None].astype(np.float32)
    lengths = np.sqrt(np.asarray((A * A).sum(axis=1)).reshape(-1, 1))
    steps, rates, clips = (np.array(each) for each in zip(*grid, strict=True))
    noise = clips * np.sqrt(steps) / _mu(epsilon)
    w = np.zeros((A.shape[1], len(grid)), dtype=np.float32)
    for step in range(int(steps.max())):
        going = np.flatnonzero(step < steps)
        slopes = -b * expit(-b * (A @ w[:, going]))
        slopes *= np.minimum(1.0, clips[going] / np.maximum(np.abs(slopes) * lengths, 1e-9))
        noisy = A.T @ slopes.astype(np.float32) + rng.normal(size=(len(w), len(going))) * noise[going]
        w[:, going] -= (rates[going] / RECORDS * noisy).astype(np.float32)
    return table.loss(np.asarray(rows[RECORDS:] @ w, dtype=np.float64))


def _with_constant(X: Any) -> Any:
    """Rows of at most 1 with a constant of 1/2 beside them, as the library has them, divided to a length of 1."""
    short = np.minimum(1.0, 1.0 / np.sqrt(np.asarray((X * X).sum(axis=1)).ravel())) / math.sqrt(1.25)
    constant = np.full((X.shape[0], 1), 0.5 / math.sqrt(1.25))
    if sparse.issparse(X):
        return sparse.csr_array(sparse.hstack([sparse.diags_array(short) @ X, constant]), dtype=np.float32)
    return np.hstack([X * short[:, None], constant]).astype(np.float32)


def _mu(epsilon: float) -> float:
    """Of a Gaussian mechanism that is exactly (epsilon, DELTA)."""

    def beyond(mu: float) -> float:
        high, low = norm.cdf(-epsilon / mu + mu / 2), norm.cdf(-epsilon / mu - mu / 2)
        return float(high - math.exp(epsilon) * low) - DELTA

    return float(brentq(beyond, 1e-3, 20))


def measure() -> Iterator[str]:
    """Lines of the table."""
    yield "| table | epsilon | default | tuned descent | a constant |"
    yield "| --- | --- | --- | --- | --- |"
    for name, make in TABLES.items():
        table = make()
        share = float(np.mean(table.signs[:RECORDS] > 0))
        constant = table.loss(np.full(TEST, math.log(share / (1 - share))))
        for epsilon in EPSILONS:
            ours, (tuned, how) = our_losses(table, epsilon), tuned_losses(table, epsilon)
            yield f"| {name} | {epsilon:g} | {ours.mean():.3f} | {tuned.mean():.3f} ({how}) | {constant:.3f} |"


def main() -> None:
    """Measure, print, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--page", type=Path, help="file whose table is written anew")
    page, lines = parser.parse_args().page, []
    for line in measure():
        print(line, flush=True)
        lines.append(line)
    if page is not None:
        before, _, rest = page.read_text().partition(BEGIN)
        page.write_text("\n".join([f"{before}{BEGIN}", *lines, END]) + rest.partition(END)[2])


if __name__ == "__main__":
    main()
