"""What people's tables cost: bounds that are found, people, weights of a rare class, a search; excess over exact fits.

Every figure is at epsilon 1 and delta 1e-5 under replace-one, with simulated noise. "Best public bound" is the best of
four bounds on the rows as they are, chosen on the test part, as nobody could who keeps a budget.
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
from consenso.estimators import PrivateLogisticRegression, PrivateRidge
from consenso.estimators.search import PrivateSearchCV

SEEDS = range(6)
BUDGET: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-5}
QUANTILES = (0.5, 0.8, 0.95, 1.0)


@dataclass(frozen=True, kw_only=True, eq=False)
class Table:
    """Rows and targets, the first four fifths to learn from. target_bound: of a regression."""

    X: Any
    y: Any
    target_bound: float | None = None

    @property
    def split(self) -> int:
        """Where the test part begins."""
        return len(self.y) * 4 // 5

    def fit(self, seed: int | None, **given: Any) -> Any:
        """A model of the training part; without a seed the exact one."""
        budget = {"epsilon": math.inf} if seed is None else BUDGET | {"random_state": seed}
        kind: Any = PrivateRidge if self.target_bound is not None else PrivateLogisticRegression
        return kind(**budget, **given).fit(self.X[: self.split], self.y[: self.split])

    def risk(self, model: Any) -> float:
        """Mean loss on the test part."""
        X, y = self.X[self.split :], self.y[self.split :]
        if self.target_bound is not None:
            return float(np.mean((model.predict(X) - y) ** 2))
        return float(-np.mean(model.predict_log_proba(X)[np.arange(len(y)), y.astype(int)]))


def run() -> Iterator[Figure]:
    """Ratios of excess risk, and accuracies."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, make in TABLES.items():
            yield _compare_bounds(name, make())
        yield from _compare_people()
        yield from _compare_weights()
        yield from _compare_searches()


def _compare_bounds(name: str, table: Table) -> Figure:
    exact = table.risk(table.fit(None))
    lengths = np.linalg.norm(table.X[: table.split], axis=1)
    known = {"bounds": "public"} | ({"target_bound": table.target_bound} if table.target_bound is not None else {})
    known |= {} if table.target_bound is not None else {"classes": [False, True]}
    best = min(
        float(np.mean([table.risk(table.fit(seed, row_bound=float(bound), **known)) for seed in SEEDS])) - exact
        for bound in np.quantile(lengths, QUANTILES)
    )
    found = np.array([table.risk(table.fit(seed)) for seed in SEEDS]) - exact
    error = found.std() / math.sqrt(len(found))
    note = f"excess {found.mean():.3g} +- {error:.1g}, worst {found.max():.3g}, against {best:.3g}"
    return Figure(f"bounds by default over the best public bound, {name}", found.mean() / best, limit=1.1, note=note)


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


def _breast() -> Table:
    from sklearn.datasets import load_breast_cancer

    X, y = load_breast_cancer(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(y))
    return Table(X=(2 * (X - X.min(axis=0)) / np.ptp(X, axis=0) - 1)[order], y=y[order] == 1)


def _diabetes() -> Table:
    from sklearn.datasets import load_diabetes

    X, y = load_diabetes(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(y))
    return Table(X=(2 * (X - X.min(axis=0)) / np.ptp(X, axis=0) - 1)[order], y=y[order], target_bound=350.0)


def _offset() -> Table:
    rng = np.random.default_rng(12)
    X = rng.normal(size=(20_000, 12))
    scores = X @ rng.normal(size=12)
    return Table(X=X, y=80 + 4 * (scores / scores.std() + 0.5 * rng.normal(size=20_000)), target_bound=100.0)


TABLES: dict[str, Callable[[], Table]] = {
    "breast cancer, 455 x 30": _breast,
    "diabetes, 353 x 10": _diabetes,
    "heavy tails, 24000 x 20": lambda: _made(30_000, 20, tail=1.5),
    "correlated, 24000 x 40": lambda: _made(30_000, 40, common=0.98),
    "scales from 1e-3 to 1e3, 24000 x 20": lambda: _made(30_000, 20, scales=np.logspace(-3, 3, 20)),
    "targets far from 0, 16000 x 12": _offset,
}
