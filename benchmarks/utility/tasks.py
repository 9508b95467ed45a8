"""The data sets of the comparison: rows of norm at most 1 with a constant column, by public facts only."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from consenso.losses import Logistic, Softmax, Squared
from consenso.problem import Problem
from consenso.regularizers import L1, L2

Kind = Literal["binary", "multiclass", "regression"]
EPSILONS = (0.1, 0.5, 1.0, 3.0)
DELTA = 1e-5


@dataclass(frozen=True, kw_only=True, eq=False)
class Task:
    """One data set with its public facts.

    y: -1 and +1, class indices, or numbers within target_bound.
    alpha: strength of the penalty; l1: whether it is the 1-norm.
    """

    name: str
    kind: Kind
    X: Any = field(repr=False)
    y: Any = field(repr=False)
    X_test: Any = field(repr=False)
    y_test: Any = field(repr=False)
    classes: int = 2
    target_bound: float | None = None
    alpha: float = 1e-6
    l1: bool = False
    row_bound: float = 1.0

    @property
    def metric(self) -> str:
        """What is measured on the test part."""
        return "RMSE" if self.kind == "regression" else "accuracy, %"

    def problem(self) -> Problem:
        """The problem that every solver of ours is given."""
        loss = {"binary": Logistic, "multiclass": lambda: Softmax(classes=self.classes), "regression": Squared}[
            self.kind
        ]()
        return Problem(
            loss=loss,
            regularizer=L1(strength=self.alpha) if self.l1 else L2(strength=self.alpha),
            features=self.X.shape[1],
            sizes=np.array([len(self.y)]),
            row_bound=self.row_bound,
            target_bound=self.target_bound,
            adjacency="add-remove",
        )

    def score(self, model: Any) -> float:
        """The metric on the test part of a model of shape (features, outputs)."""
        scores = self.X_test @ model
        if self.kind == "regression":
            return float(np.sqrt(np.mean((scores[:, 0] - self.y_test) ** 2)))
        if self.kind == "binary":
            return float(100 * np.mean((scores[:, 0] > 0) == (self.y_test > 0)))
        return float(100 * np.mean(scores.argmax(axis=1) == self.y_test))

    def risk(self, model: Any) -> float:
        """The objective on the training part."""
        problem = self.problem()
        scores = self.X @ model
        values = problem.loss.value(scores if problem.outputs > 1 else scores[:, 0], self.y)
        return float(np.mean(values) + problem.regularizer.value(model.ravel()))


def adult() -> Task:
    """Income above 50,000 dollars; the standard split."""
    from consenso.datasets import load_adult

    data = load_adult(preprocessing="public", intercept=True)
    return Task(name="Adult", kind="binary", X=data.X, y=data.y, X_test=data.X_test, y_test=data.y_test)


def _pixels(images: Any) -> Any:
    """A constant column, and rows divided by a public number: no image is longer than sqrt(784)."""
    rows = np.hstack([np.asarray(images, dtype=np.float64), np.full((len(images), 1), 10.0)])
    return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1.0)


def mnist_parity() -> Task:
    """Even against odd digits."""
    from consenso.datasets import load_mnist

    data = load_mnist()
    labels, test = (np.where(part % 2 == 0, 1.0, -1.0) for part in (data.y, data.y_test))
    return Task(
        name="MNIST, even or odd", kind="binary", X=_pixels(data.X), y=labels, X_test=_pixels(data.X_test), y_test=test
    )


def mnist() -> Task:
    """Ten digits, one joint softmax."""
    from consenso.datasets import load_mnist

    data = load_mnist()
    return Task(
        name="MNIST, ten digits",
        kind="multiclass",
        classes=10,
        X=_pixels(data.X),
        y=data.y,
        X_test=_pixels(data.X_test),
        y_test=data.y_test,
    )


def housing() -> Task:
    """Median house values in units of 100,000 dollars, centred by a public number."""
    from consenso.datasets import load_california_housing

    data = load_california_housing()
    rows = np.hstack([data.X, np.ones((len(data.y), 1))])
    rows /= np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1.0)
    order = np.random.default_rng(0).permutation(len(rows))
    train, test = order[: len(order) * 4 // 5], order[len(order) * 4 // 5 :]
    y = np.asarray(data.y) - 2.5
    return Task(
        name="California housing",
        kind="regression",
        X=rows[train],
        y=y[train],
        X_test=rows[test],
        y_test=y[test],
        target_bound=2.51,
    )


def synthetic(
    *, records: int, features: int, condition: float, sparse: int | None = None, kind: Kind = "binary"
) -> Task:
    """Gaussian rows whose scales fall geometrically by `condition`, and a planted model."""
    rng = np.random.default_rng([records, features, int(condition), sparse or 0])
    scales = np.geomspace(1.0, 1.0 / condition, features)
    rows = rng.normal(size=(records + 5000, features)) * rng.permutation(scales)
    rows /= np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1.0)
    truth = rng.normal(size=features)
    if sparse is not None:
        truth[rng.permutation(features)[sparse:]] = 0.0
    scores = rows @ truth
    scores *= 3.0 / scores.std()
    if kind == "binary":
        y = np.where(rng.random(len(rows)) < 1 / (1 + np.exp(-scores)), 1.0, -1.0)
    else:
        y = np.clip(scores / 3 + 0.3 * rng.normal(size=len(rows)), -3.0, 3.0)
    told = "" if sparse is None else f", {sparse} of them used"
    return Task(
        name=f"synthetic, {records:,} x {features}{told}, condition {condition:g}",
        kind=kind,
        X=rows[:records],
        y=y[:records],
        X_test=rows[records:],
        y_test=y[records:],
        target_bound=None if kind == "binary" else 3.0,
        alpha=1e-3 if sparse is not None and kind == "regression" else 1e-6,
        l1=sparse is not None and kind == "regression",
    )


TASKS: dict[str, Callable[[], Task]] = {
    "adult": adult,
    "mnist-parity": mnist_parity,
    "mnist": mnist,
    "housing": housing,
    "small": lambda: synthetic(records=1000, features=10, condition=1.0),
    "stiff": lambda: synthetic(records=20_000, features=50, condition=100.0),
    "large": lambda: synthetic(records=300_000, features=50, condition=10.0),
    "lasso": lambda: synthetic(records=20_000, features=100, condition=1.0, sparse=8, kind="regression"),
}
