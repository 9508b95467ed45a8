"""`python -m benchmarks.utility.random_tables`: fits of random tables that strain a rule, against no fit at all.

A table has 50 to 100,000 records, 1 to 3,000 columns, tails from Gaussian to Cauchy, duplicates, constant, empty and
collinear columns, columns of any scale, and labels or numbers that depend on it a lot or not at all. Each is fitted
by `solver="auto"` at a budget from 0.1 to 10, by every estimator of numbers or of labels.

A fit is compared on the records it was made of with the constant model of those records, which knows their targets
without noise. A private constant model is above that one by what noise does to counts; `allowance` is that, and 0.01.
For numbers 0.01 is the square of a shift of a tenth of the target bound, and what a constant model that is as far off
costs is what absolute losses are allowed, too.

It is the expected loss that is held to the allowance: where records times epsilon are few, single draws of the noise
are above it with any rule that ever learns something. A table gets FEW draws, and twice as many while two standard
errors of their mean do not tell on which side of the allowance it is, up to MOST. Each has noise of its own: with the
same noise for all tables one draw that is far out fails many of them together.
"""

from __future__ import annotations

import argparse
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import ndtr

import consenso
from consenso.arrays import Array
from consenso.privacy.calibrate import EpsilonDelta, calibrate_noise
from consenso.privacy.events import Gaussian
from consenso.solvers.forecast import MOST_COUNTS

DELTA, LARGEST = 1e-5, 4_000_000
FEW, MOST = 4, 64
EPSILONS = (0.1, 0.3, 1.0, 3.0, 10.0)
KINDS = ("binary", "classes", "numbers")
CLASSIFIER, HINGE = "PrivateLogisticRegression", "PrivateLinearSVC"
# Estimators of numbers, and whether their loss is that of squares or absolute.
REGRESSORS = {
    "PrivateRidge": "squares",
    "PrivateLasso": "squares",
    "PrivateElasticNet": "squares",
    "PrivateHuberRegressor": "absolute",
    "PrivateLADRegressor": "absolute",
}


@dataclass(frozen=True, kw_only=True, eq=False)
class Table:
    """Rows with a bound on their lengths, and targets."""

    seed: int
    told: str
    kind: str
    X: Array
    y: Array
    row_bound: float
    target_bound: float
    classes: int
    epsilon: float


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """How far the loss of fits is above that of the constant model on average, and how far it may be."""

    told: str
    above: float
    allowance: float
    error: float = math.inf  # standard error of `above`
    draws: int = 1

    @property
    def holds(self) -> bool:
        """Whether fits are models, and on average no worse than they may be."""
        return math.isfinite(self.above) and self.above <= self.allowance

    @property
    def is_decided(self) -> bool:
        """Whether two standard errors tell on which side of the allowance the mean is."""
        return not abs(self.above - self.allowance) < 2 * self.error


def make_table(seed: int, largest: int = LARGEST) -> Table:
    """The table of a seed, of at most `largest` numbers."""
    rng = np.random.default_rng([16, seed])
    records = int(np.exp(rng.uniform(np.log(50), np.log(min(100_000, largest)))))
    features = int(np.exp(rng.uniform(0, np.log(max(1.5, min(3000, largest / records))))))
    tail = float(rng.choice([1.0, 2.0, 5.0, 1e6]))
    X = rng.standard_t(tail, size=(records, features))
    scores = X[:, : max(1, features // 3)] @ rng.normal(size=max(1, features // 3))
    scores *= float(rng.choice([0.0, 0.5, 3.0])) / max(float(np.median(np.abs(scores))), 1e-12)
    damage = _damage(rng, X)
    scale = 10.0 ** rng.uniform(-6, 6)
    X *= scale
    bound = float(np.clip(np.quantile(np.linalg.norm(X, axis=1), rng.choice([0.5, 0.95, 1.0])), 1e-8, 1e8))
    kind = str(rng.choice(KINDS))
    classes = 2 if kind != "classes" else int(rng.choice([3, 10, 40]))
    y, target_bound = _targets(rng, kind, classes, scores)
    epsilon = float(rng.choice(EPSILONS))
    told = (
        f"{seed}: {kind} {classes}, {records} x {features}, tail {tail:g}, {damage}, scale {scale:.1g}, eps {epsilon:g}"
    )
    return Table(
        seed=seed,
        told=told,
        kind=kind,
        X=X,
        y=y,
        row_bound=bound,
        target_bound=target_bound,
        classes=classes,
        epsilon=epsilon,
    )


def _damage(rng: np.random.Generator, X: Array) -> str:
    """Spoil a table in place, and say how."""
    features, told = X.shape[1], []
    if rng.random() < 0.3:
        X[rng.integers(len(X), size=len(X) // 2)] = X[0]
        told.append("duplicates")
    if rng.random() < 0.3:
        X[:, rng.integers(features)] = rng.choice([0.0, 3.0])
        told.append("a constant column")
    if rng.random() < 0.3 and features > 1:
        X[:, 0] = X[:, 1:].sum(axis=1)
        told.append("collinear")
    if rng.random() < 0.3:
        X *= 10.0 ** rng.uniform(-3, 3, size=features)
        told.append("columns of any scale")
    return " and ".join(told) or "intact"


def _targets(rng: np.random.Generator, kind: str, classes: int, scores: Array) -> tuple[Array, float]:
    if kind == "numbers":
        size = 10.0 ** rng.uniform(-4, 4)
        y = size * (rng.normal() * 3 + scores + rng.normal(size=len(scores)))
        return y, float(np.quantile(np.abs(y), 0.99) * rng.choice([1.0, 5.0]))
    if kind == "binary":
        shifted = np.clip(scores + rng.choice([0.0, 3.0]), -30, 30)
        return (rng.random(len(scores)) < 1 / (1 + np.exp(-shifted))).astype(np.int64), 1.0
    ranks = np.argsort(np.argsort(scores + rng.normal(size=len(scores)))) / len(scores)
    return np.minimum((ranks ** float(rng.choice([1.0, 3.0])) * classes).astype(np.int64), classes - 1), 1.0


def judge(table: Table, estimator: str | None = None, *, few: int = FEW, most: int = MOST) -> Verdict:
    """Fit a table by one of its estimators (the first of `list_estimators`), and compare: as often as it takes."""
    name, found = estimator or list_estimators(table)[0], []
    while True:
        above, allowance = measure(table, len(found), name)
        found.append(above)
        draws, error = len(found), float(np.std(found, ddof=1) / math.sqrt(len(found))) if len(found) > 1 else math.inf
        told = table.told if name == CLASSIFIER else f"{table.told}, {name}"
        verdict = Verdict(told=told, above=float(np.mean(found)), allowance=allowance, error=error, draws=draws)
        # Looked at after FEW draws and whenever there are twice as many: a look at every draw would end too soon.
        looks = draws >= few and math.log2(draws / few).is_integer()
        if draws >= most or (looks and verdict.is_decided):
            return verdict


def measure(table: Table, draw: int, name: str) -> tuple[float, float]:
    """How far a fit with the noise of a draw is above the constant model, and how far it may be on average."""
    common: dict[str, Any] = {
        "epsilon": table.epsilon,
        "delta": DELTA,
        "row_bound": table.row_bound,
        "adjacency": "add-remove",
        "records": len(table.y),
        "random_state": 1000 * table.seed + draw,
    }
    lengths = np.linalg.norm(table.X, axis=1, keepdims=True)
    rows = table.X * np.minimum(1.0, table.row_bound / np.maximum(lengths, np.finfo(float).tiny))
    noise = calibrate_noise(lambda std: Gaussian(std, 1.0), EpsilonDelta(epsilon=table.epsilon, delta=DELTA))
    noise /= len(table.y)
    if table.kind == "numbers":
        bound = table.target_bound
        made = getattr(consenso, name)(target_bound=bound, **common).fit(table.X, table.y)
        return _judge_numbers(np.clip(table.y, -bound, bound) / bound, made.predict(rows) / bound, noise, name)
    made = getattr(consenso, name)(classes=list(range(table.classes)), **common).fit(table.X, table.y)
    scores = np.asarray(made.decision_function(rows))
    if name == HINGE:
        return _judge_margins(2.0 * table.y - 1.0, scores, noise)
    scores = np.stack([np.zeros(len(scores)), scores], axis=1) if scores.ndim == 1 else scores
    scores = scores - scores.max(axis=1, keepdims=True)
    own = np.take_along_axis(scores, table.y[:, None], axis=1)[:, 0]
    shares = np.bincount(table.y, minlength=table.classes) / len(table.y)
    constant = -float(np.sum(shares * np.log(np.maximum(shares, 1e-12))))
    above = float(np.mean(np.log(np.exp(scores).sum(axis=1)) - own)) - constant
    # Counts with their least share of the budget, or nothing known at all.
    lost = min(table.classes**2 / 2 * noise**2 / 0.02, math.log(table.classes) - constant)
    return above, 0.01 + lost


def list_estimators(table: Table) -> tuple[str, ...]:
    """Names of the estimators that fit a table."""
    if table.kind == "numbers":
        return tuple(REGRESSORS)
    return (CLASSIFIER, HINGE) if table.kind == "binary" else (CLASSIFIER,)


def _judge_margins(signs: Array, scores: Array, noise: float) -> tuple[float, float]:
    """How far margins are above the larger class, and how far they may be; noise: of a mean of counts."""
    apart = abs(float(signs.mean()))
    # Counts with the most of the budget that they get, of which one says which class is the larger.
    lost = 2 * apart * float(ndtr(-apart / (noise * math.sqrt(2 / MOST_COUNTS))))
    return float(np.mean(np.maximum(0.0, 1.0 - signs * scores))) - (1.0 - apart), 0.01 + lost


def _judge_numbers(y: Array, predicted: Array, noise: float, name: str) -> tuple[float, float]:
    """How far a model of numbers is above the constant one, and how far it may be; noise: of a mean of them."""
    # A tenth of the budget finds a mean, and nothing is above the loss of 0 that noise hides.
    square = 0.01 + min(10 * noise**2, float(np.mean(y)) ** 2)
    if REGRESSORS[name] == "squares":
        return float(np.mean((predicted - y) ** 2) - y.var()), square
    apart = y - np.median(y)
    least, off = float(np.mean(np.abs(apart))), math.sqrt(square)
    shifted = max(float(np.mean(np.abs(apart - shift))) for shift in (-off, off))
    return float(np.mean(np.abs(predicted - y))) - least, shifted - least


def main() -> None:
    """Fit the tables of seeds in a row, and list those that fail."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", type=int, default=200)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--largest", type=int, default=LARGEST, help="numbers in a table")
    parser.add_argument("--kinds", default=",".join(KINDS), help="of targets, with commas between them")
    parser.add_argument("--only", help="the name of the estimator to be fitted, where there are several")
    parser.add_argument("--draws", type=int, default=MOST, help="of the noise, at most")
    asked = parser.parse_args()
    failed = fits = clear = 0
    for seed in range(asked.first, asked.first + asked.tables):
        table = make_table(seed, asked.largest)
        for name in list_estimators(table) if table.kind in asked.kinds.split(",") else ():
            if asked.only not in (None, name):
                continue
            try:
                verdict = judge(table, name, few=min(FEW, asked.draws), most=asked.draws)
            except Exception as error:
                told = f"{table.told}, {name}: {type(error).__name__}: {error}"
                verdict = Verdict(told=told, above=math.nan, allowance=0.0)
            fits, failed = fits + 1, failed + (not verdict.holds)
            clear += not verdict.holds and verdict.is_decided
            told = "" if verdict.holds else "FAILED "
            mean = f"{verdict.above:+.4f} +- {verdict.error:.4f} over {verdict.draws}"
            print(f"{told}{verdict.told}: {mean}, at most {verdict.allowance:.4f}", flush=True)
    print(f"{fits - failed} of {fits} fits of {asked.tables} tables hold; {clear} fail by two standard errors.")
    raise SystemExit(failed > 0)


if __name__ == "__main__":
    main()
