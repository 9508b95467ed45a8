"""What people's tables cost: people with several rows, weights of a rare class, a search.

Every figure is at epsilon 1 and delta 1e-5 under replace-one, with simulated noise. Bounds that are found have a
command of their own, `python -m benchmarks.utility.found_bounds`.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.metrics import balanced_accuracy_score

from benchmarks.measure import Figure
from consenso.estimators import PrivateLogisticRegression
from consenso.estimators.search import PrivateSearchCV

SEEDS = range(6)
BUDGET: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-5}


@dataclass(frozen=True, kw_only=True, eq=False)
class Table:
    """Rows and labels, the first four fifths to learn from."""

    X: Any
    y: Any

    @property
    def split(self) -> int:
        """Where the test part begins."""
        return len(self.y) * 4 // 5

    def fit(self, seed: int | None, **given: Any) -> Any:
        """A model of the training part; without a seed the exact one."""
        budget = {"epsilon": math.inf} if seed is None else BUDGET | {"random_state": seed}
        return PrivateLogisticRegression(**budget, **given).fit(self.X[: self.split], self.y[: self.split])

    def risk(self, model: Any) -> float:
        """Mean loss on the test part."""
        X, y = self.X[self.split :], self.y[self.split :]
        return float(-np.mean(model.predict_log_proba(X)[np.arange(len(y)), y.astype(int)]))


def run() -> Iterator[Figure]:
    """Ratios of excess risk, and accuracies."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield from _compare_people()
        yield from _compare_weights()
        yield from _compare_searches()


def _compare_people() -> Iterator[Figure]:
    """Patients with 1 to 30 stays: all of one protected, against one stay only."""
    rng, people = np.random.default_rng(0), 6000
    stays = rng.geometric(0.2, size=people)
    ids = np.repeat(np.arange(people), stays)
    X = rng.normal(size=(people, 5))[ids] + rng.normal(size=(len(ids), 5))
    y = rng.random(len(ids)) < 1 / (1 + np.exp(-X @ [1.0, -1.0, 0.5, 0.0, 0.3]))
    train = ids < 5000
    table = Table(X=X[np.argsort(~train, kind="stable")], y=y[np.argsort(~train, kind="stable")])

    def excess(**people: Any) -> float:
        found = []
        for seed in SEEDS:
            model = PrivateLogisticRegression(**BUDGET, row_bound=5.0, classes=[False, True], random_state=seed)
            found.append(table.risk(model.fit(X[train], y[train], **people)))
        exact = PrivateLogisticRegression(epsilon=math.inf).fit(X[train], y[train])
        return float(np.mean(found)) - table.risk(exact)

    rows, chosen = excess(), excess(users=ids[train])
    yield Figure("people over rows, excess", chosen / rows, note=f"{chosen:.2g} against {rows:.2g}")
    for cap in (1, 4, 16):
        other = excess(users=ids[train], rows_per_person=cap)
        yield Figure(f"a cap that is chosen over {cap} rows a person, excess", chosen / other, note=f"{other:.2g}")


def _compare_weights() -> Iterator[Figure]:
    """One positive in a hundred."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(40_000, 5))
    y = rng.random(40_000) < 1 / (1 + np.exp(-(X @ [1.5, -1.0, 0.5, 0.0, 0.0] - 6.2)))
    rates = f"{y.mean():.1%} positive"
    cases: dict[str, dict[str, Any]] = {
        "no weights": {},
        "weights 1 and 50": {"class_weight": {False: 1, True: 50}},
        "balanced": {"class_weight": "balanced"},
        "a threshold for a recall of 0.7": {"target_recall": 0.7},
    }
    for name, given in cases.items():
        found = []
        for seed in SEEDS:
            options = {"row_bound": 4.0, "classes": [False, True], "random_state": seed, **given}
            model = PrivateLogisticRegression(**BUDGET, **options).fit(X[:30_000], y[:30_000])
            found.append(balanced_accuracy_score(y[30_000:], model.predict(X[30_000:])))
        yield Figure(f"balanced accuracy, {name}", float(np.mean(found)), note=f"{rates}; worst {min(found):.3f}")


def _compare_searches() -> Iterator[Figure]:
    """Three penalties, of which one is far too large: searched, for free, and the default."""
    table, grid = _made(8000, 20), [1e-3, 1e-1, 10.0]
    X, y = table.X[: table.split], table.y[: table.split]
    known: dict[str, Any] = {"row_bound": 6.0, "classes": [False, True]}

    def score(model: Any) -> float:
        return float(np.mean(model.predict(table.X[table.split :]) == table.y[table.split :]))

    def mean(make: Callable[[int], Any]) -> float:
        return float(np.mean([score(make(seed)) for seed in SEEDS]))

    free = max(mean(lambda seed, a=a: table.fit(seed, alpha=a, **known)) for a in grid)
    plain = mean(lambda seed: table.fit(seed, **known))
    searched = mean(
        lambda seed: PrivateSearchCV(
            PrivateLogisticRegression(**known), {"alpha": grid}, **BUDGET, draws=5, random_state=seed
        ).fit(X, y)
    )
    yield Figure("accuracy, tuned for free", free)
    yield Figure("accuracy, private search", searched)
    yield Figure("accuracy, nothing tuned", plain, limit=free - 0.01, at_most=False)


def _made(records: int, columns: int, *, tail: float | None = None, common: float = 0.0, scales: Any = 1.0) -> Table:
    """Independent columns, with heavy tails, with a part in common, or on other scales."""
    rng = np.random.default_rng(11)
    X = rng.normal(size=(records, columns)) if tail is None else rng.standard_t(tail, size=(records, columns))
    X = math.sqrt(1 - common) * X + math.sqrt(common) * rng.normal(size=(records, 1))
    scores = X @ rng.normal(size=columns)
    return Table(X=X * scales, y=rng.random(records) < 1 / (1 + np.exp(-3 * scores / scores.std())))
