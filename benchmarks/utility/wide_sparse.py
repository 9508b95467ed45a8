"""`python -m benchmarks.utility.wide_sparse`: sparse answers on a wide table, `PrivateLasso` beside Frank-Wolfe.

8,000 records with 2,000 independent columns, of which 20 tell of the target; add-remove, delta 1e-5. Frank-Wolfe over
an L1 ball (Talwar, Thakurta and Zhang 2015) has the best of 15 settings on the test part, for free. Its noise follows
the largest entry that a row can have: the row bound, as for ours, or the largest entry of the table, which is private.
"""

from __future__ import annotations

import math
from itertools import product

import numpy as np

from benchmarks.utility.classical import multiplier
from consenso import PrivateLasso
from consenso.arrays import Array

RECORDS, TEST, COLUMNS, TOLD, DELTA = 8000, 2000, 2000, 20, 1e-5
EPSILONS, SEEDS, TARGET_BOUND = (1.0, 5.0), 3, 4.0
GRID = tuple(product((3.0, 10.0, 30.0, 100.0, 300.0), (5, 20, 60)))


def make() -> tuple[Array, Array]:
    """Rows that are hardly ever longer than 1, and targets of a standard deviation of about 1.1."""
    rng = np.random.default_rng(5)
    X = rng.normal(size=(RECORDS + TEST, COLUMNS))
    scores = X[:, :TOLD] @ rng.normal(size=TOLD)
    return X / (1.05 * math.sqrt(COLUMNS)), scores / scores.std() + 0.5 * rng.normal(size=len(X))


def take_corners(X: Array, y: Array, setting: tuple[float, int], epsilon: float, largest: float, seed: int) -> Array:
    """Frank-Wolfe with residuals clipped at 1. setting: radius of the ball, and steps."""
    radius, steps = setting
    rng, w = np.random.default_rng(seed), np.zeros(COLUMNS)
    scale = 2 * largest * multiplier(epsilon, DELTA) * math.sqrt(steps) / 2
    for step in range(steps):
        gradient = X.T @ np.clip(X @ w - y, -1, 1)
        which = int(np.argmax(np.concatenate([gradient, -gradient]) + rng.gumbel(0, scale, size=2 * COLUMNS)))
        w *= 1 - 2 / (step + 2)
        w[which % COLUMNS] += 2 / (step + 2) * (-radius if which < COLUMNS else radius)
    return w


def main() -> None:
    """Mean squared errors, and how many columns are used, in brackets those that tell."""
    X, y = make()
    training, test = (X[:RECORDS], y[:RECORDS]), (X[RECORDS:], y[RECORDS:])

    def show(models: list[tuple[Array, float]]) -> str:
        error = np.mean([np.mean((test[0] @ w + b - test[1]) ** 2) for w, b in models])
        used, told = (np.mean([np.count_nonzero(w[:many]) for w, _ in models]) for many in (COLUMNS, TOLD))
        return f"{error:.3f}, {used:.0f} columns ({told:.0f})"

    print("| epsilon | PrivateLasso | Frank-Wolfe, same bounds | Frank-Wolfe, told the largest entry | a constant |")
    print("| --- | --- | --- | --- | --- |")
    for epsilon in EPSILONS:
        fits = [
            PrivateLasso(
                **{"epsilon": epsilon, "delta": DELTA, "row_bound": 1.0, "target_bound": TARGET_BOUND},
                **{"adjacency": "add-remove", "records": RECORDS, "random_state": seed},
            ).fit(*training)
            for seed in range(SEEDS)
        ]
        cells = [show([(fit.coef_.ravel(), float(fit.intercept_)) for fit in fits])]
        for largest in (1.0, float(np.abs(training[0]).max())):
            tried = {s: take_corners(*training, s, epsilon, largest, 100) for s in GRID}
            best = min(GRID, key=lambda s, tried=tried: float(np.mean((test[0] @ tried[s] - test[1]) ** 2)))
            cells.append(show([(take_corners(*training, best, epsilon, largest, s), 0.0) for s in range(SEEDS)]))
        print(f"| {epsilon:g} | {' | '.join(cells)} | {np.var(test[1]):.3f} |", flush=True)


if __name__ == "__main__":
    main()
