"""The development sets: real tables and made-up ones that strain a rule, split 80 to 20 by a fixed order.

Files of real tables are looked for where `consenso.datasets` looks (CONSENSO_DATA): phishing, diamonds, flights,
randhie and california_housing as .csv.gz, packages.tsv.gz (section, then a short description), and Adult's two files.
"""

from __future__ import annotations

import csv
import gzip
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from scipy.special import expit, log_softmax

from consenso.datasets.files import search_folders

MOST_CATEGORIES = 40


@dataclass(frozen=True, kw_only=True, eq=False)
class Development:
    """A table with its public facts; rows of the test part are within the bound, as rivals are scored.

    X_raw: the same rows of the test part at their own lengths.
    """

    X: Any
    y: Any
    X_test: Any
    y_test: Any
    X_raw: Any
    kind: str = "binary"  # or "classes", "regression"
    row_bound: float = 1.0
    classes: int = 2
    target_bound: float = 1.0

    def split_again(self, seed: int) -> Development:
        """The same records, as many of them for the fit, in another order; rows keep their lengths."""
        stack = sparse.vstack if sparse.issparse(self.X) else np.vstack
        X, y = stack([self.X, self.X_raw]), np.concatenate([self.y, self.y_test])
        X = X.tocsr() if sparse.issparse(X) else X
        order = np.random.default_rng([seed, 1]).permutation(len(y))
        train, test = order[: len(self.y)], order[len(self.y) :]
        return replace(self, X=X[train], y=y[train], X_test=X[test], y_test=y[test], X_raw=X[test])

    def loss(self, scores: Any) -> float:
        """On the test part: log loss, or mean squared error in units of the squared target bound."""
        scores, y = np.asarray(scores, dtype=np.float64), np.asarray(self.y_test)
        if self.kind == "regression":
            most = self.target_bound
            return float(np.mean((scores - np.clip(y, -most, most)) ** 2)) / most**2
        if self.kind == "classes":
            return -float(np.mean(log_softmax(scores, axis=1)[np.arange(len(y)), y]))
        return float(np.mean(np.logaddexp(0.0, -(2 * y - 1) * scores)))


def find(name: str) -> Path:
    """A file of a real table."""
    for folder in search_folders():
        if (folder / name).exists():
            return folder / name
    raise SystemExit(f"{name} is not there: put it into a folder and set CONSENSO_DATA to that.")


def _at_most_one(X: Any) -> Any:
    return X / np.maximum(1.0, np.linalg.norm(X, axis=1, keepdims=True))


def scale_to_range(X: Any) -> Any:
    X = np.asarray(X, dtype=np.float64)
    low, high = X.min(axis=0), X.max(axis=0)
    return (X - low) / np.maximum(high - low, 1e-12)


def _typical(X: Any) -> float:
    return float(np.quantile(np.linalg.norm(X, axis=1), 0.95))


def _split(X: Any, y: Any, *, first: int | None = None, row_bound: float = 1.0, **facts: Any) -> Development:
    order = np.random.default_rng(0).permutation(len(y))
    there = int(0.8 * len(y))
    train, test = order[:there][:first], order[there:]
    rows = X[test]
    if sparse.issparse(rows):
        lengths = np.sqrt(np.asarray(rows.multiply(rows).sum(axis=1))).ravel()
        rows = sparse.csr_matrix(sparse.diags(np.minimum(1.0, row_bound / np.maximum(lengths, 1e-300))) @ rows)
    else:
        lengths = np.linalg.norm(rows, axis=1, keepdims=True)
        rows = rows * np.minimum(1.0, row_bound / np.maximum(lengths, 1e-300))
    return Development(X=X[train], y=y[train], X_test=rows, y_test=y[test], X_raw=X[test], row_bound=row_bound, **facts)


def bound_rows(X: Any, y: Any, **facts: Any) -> Development:
    """Split, with the length below which 95 % of the rows are as their bound."""
    return _split(X, y, row_bound=_typical(X), **facts)


def _frame(name: str, target: str) -> tuple[Any, Any]:
    """Numbers scaled to their ranges, the most frequent categories as indicators."""
    with gzip.open(find(f"{name}.csv.gz"), "rt") as lines:
        header, *rows = csv.reader(lines)
    rows = [row for row in rows if all(row)]
    columns = []
    for j, column in enumerate(header):
        cells = [row[j] for row in rows]
        if column == target:
            continue
        try:
            columns.append(scale_to_range(np.array(cells, dtype=np.float64)[:, None]))
        except ValueError:
            values, counts = np.unique(cells, return_counts=True)
            frequent = values[np.argsort(-counts)][:MOST_CATEGORIES]
            columns.append((np.array(cells)[:, None] == frequent[None]).astype(np.float64))
    return _at_most_one(np.hstack(columns)), np.array([float(row[header.index(target)]) for row in rows])


def _adult() -> tuple[Any, Any]:
    rows = []
    for name in ("adult.data.gz", "adult.test.gz"):
        with gzip.open(find(name), "rt") as lines:
            cells = [[cell.strip() for cell in row] for row in csv.reader(lines)]
        rows += [row for row in cells if len(row) == 15 and "?" not in row]
    columns = []
    for j in range(14):
        values = [row[j] for row in rows]
        if j in (0, 2, 4, 10, 11, 12):
            columns.append(scale_to_range(np.array(values, dtype=np.float64)[:, None]))
        else:
            columns.append((np.array(values)[:, None] == np.unique(values)[None]).astype(np.float64))
    return _at_most_one(np.hstack(columns)), np.array([row[14].startswith(">50K") for row in rows]).astype(int)


def _rare(X: Any, y: Any, share: float) -> tuple[Any, Any]:
    rng = np.random.default_rng(5)
    others, ones = np.flatnonzero(y == 0), np.flatnonzero(y == 1)
    kept = rng.permutation(ones)[: int(share / (1 - share) * len(others))]
    order = rng.permutation(np.concatenate([others, kept]))
    return X[order], y[order]


def _words(columns: int, *, labels: tuple[str, ...] = (), classes: int = 0) -> tuple[Any, Any]:
    """Words of short descriptions of software packages; their sections are the labels."""
    from sklearn.feature_extraction.text import CountVectorizer

    with gzip.open(find("packages.tsv.gz"), "rt") as file:
        lines = [line.split("\t", 1) for line in file.read().strip("\n").split("\n")]
    lines = [lines[i] for i in np.random.default_rng(0).permutation(len(lines))]
    counter = CountVectorizer(max_features=columns, binary=True, token_pattern=r"[a-z][a-z]+")
    X = counter.fit_transform([text for _, text in lines]).astype(float)
    lengths = np.sqrt(np.asarray(X.sum(axis=1)).ravel())
    X = sparse.csr_matrix(sparse.diags(1 / np.maximum(lengths, 1)) @ X)
    sections = [section for section, _ in lines]
    if labels:
        return X, np.array([section in labels for section in sections]).astype(int)
    values, counts = np.unique(sections, return_counts=True)
    frequent = values[np.argsort(-counts)][:classes].tolist()
    kept = np.array([i for i, section in enumerate(sections) if section in frequent])
    return X[kept], np.array([frequent.index(sections[i]) for i in kept])


def _made(
    records: int,
    features: int,
    *,
    scales: Any = None,
    correlation: float = 0.0,
    tail: float | None = None,
    noise: float | None = None,
    used: int | None = None,
) -> tuple[Any, Any]:
    """Labels of a planted model, or its scores with noise."""
    rng = np.random.default_rng(11)
    shape = (records, features)
    X = rng.normal(size=shape) if tail is None else rng.standard_t(tail, size=shape)
    if correlation:
        X = np.sqrt(1 - correlation) * X + np.sqrt(correlation) * rng.normal(size=(records, 1))
    model = rng.normal(size=features)
    model[used:] = model[used:] if used is None else 0.0
    scores = X @ model
    scores = 3 * scores / scores.std()
    if scales is not None:
        X = X * scales
    if noise is None:
        return X, (rng.random(records) < expit(scores)).astype(int)
    return X, scores / 3 + noise * rng.normal(size=records)


def _clusters(records: int, features: int, classes: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(12)
    centres, y = rng.normal(size=(classes, features)), rng.integers(classes, size=records)
    return _at_most_one((centres[y] + 0.8 * rng.normal(size=(records, features))) / np.sqrt(2 * features)), y


def _load(name: str) -> tuple[Any, Any]:
    from sklearn import datasets

    X, y = getattr(datasets, f"load_{name}")(return_X_y=True)
    return X, y


def _both_signs(name: str) -> tuple[Any, Any]:
    X, y = _load(name)
    return 2 * scale_to_range(X) - 1, y


def _prices(first: int | None = None) -> Development:
    return _split(*_frame("diamonds", "price"), first=first, kind="regression", target_bound=20_000.0)


def _phishing() -> Development:
    X, y = _frame("phishing", "is_phishing")
    return _split(X, y.astype(int))


def _digits() -> Development:
    X, y = _load("digits")
    return bound_rows(X / 16, y, kind="classes", classes=10)


def _offset() -> Development:
    X, y = _made(20_000, 12, noise=0.5)
    return bound_rows(X, 4 * y + 80, kind="regression", target_bound=100.0)


def _heavy_targets() -> Development:
    X, y = _made(20_000, 12, noise=0.0)
    y = y + 0.5 * np.random.default_rng(3).standard_t(1.5, len(y))
    return bound_rows(X, y, kind="regression", target_bound=50.0)


SETS: dict[str, Callable[[], Development]] = {
    "adult": lambda: _split(*_adult()),
    "adult500": lambda: _split(*_adult(), first=500),
    "adult200": lambda: _split(*_adult(), first=200),
    "adult1pct": lambda: _split(*_rare(*_adult(), 0.01)),
    "phishing": _phishing,
    "breast": lambda: bound_rows(*_both_signs("breast_cancer")),
    "heavy": lambda: bound_rows(*_made(30_000, 20, tail=1.5)),
    "corr": lambda: bound_rows(*_made(30_000, 40, correlation=0.98)),
    "scaled": lambda: bound_rows(*_made(30_000, 20, scales=10.0 ** np.linspace(-3, 3, 20))),
    "words1000": lambda: _split(*_words(1000, labels=("devel", "libdevel"))),
    "words2000": lambda: _split(*_words(2000, labels=("devel", "libdevel"))),
    "words10000": lambda: _split(*_words(10_000, labels=("devel", "libdevel"))),
    "digits": _digits,
    "words40": lambda: _split(*_words(300, classes=40), kind="classes", classes=40),
    "many100": lambda: _split(*_clusters(40_000, 50, 100), kind="classes", classes=100),
    "many10small": lambda: _split(*_clusters(2500, 20, 10), kind="classes", classes=10),
    "diamonds": _prices,
    "diamonds500": lambda: _prices(500),
    "flights": lambda: _split(*_frame("flights", "arr_delay"), kind="regression", target_bound=300.0),
    "randhie": lambda: _split(*_frame("randhie", "mdvis"), kind="regression", target_bound=80.0),
    "housing": lambda: _split(
        *_frame("california_housing", "median_house_value"), kind="regression", target_bound=500_001.0
    ),
    "diabetes": lambda: bound_rows(*_both_signs("diabetes"), kind="regression", target_bound=350.0),
    "offset": _offset,
    "heavytarget": _heavy_targets,
    "corrreg": lambda: bound_rows(*_made(20_000, 40, correlation=0.98, noise=0.3), kind="regression", target_bound=5.0),
    "sparse200": lambda: bound_rows(*_made(20_000, 200, noise=0.5, used=8), kind="regression", target_bound=4.0),
}
