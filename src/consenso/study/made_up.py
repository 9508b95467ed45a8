"""Made-up records of the shape of a study: what its schema and its problem say, and nothing of its data.

Features are drawn evenly from what the schema allows; the target follows a linear model that is drawn as well, with a
signal that a good model could use. How strong the signal of the real data is nobody knows before a run: a public file
says more.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from consenso.arrays import Array
from consenso.schema import Binary, Category, Numeric
from consenso.study.data import DataSection
from consenso.study.sources import Records

SIGNAL = 3.0  # standard deviation of the scores that classes are drawn from: nine in ten can be told
NOISE = 0.5  # of a regression's targets, over the standard deviation of what a model can explain


def make_records(data: DataSection, weights: Array, rows: int, rng: np.random.Generator) -> Records:
    """Records whose targets follow weights (features, outputs)."""
    X = _rows(data, rows, rng)
    scores = X @ weights
    scores = (scores - scores.mean(axis=0)) / np.maximum(scores.std(axis=0), 1e-12)
    return Records(X, _targets(data, scores, rng), None)


def draw_weights(data: DataSection, rng: np.random.Generator) -> Array:
    """A linear model to be learnt, (features, outputs)."""
    classes = data.classes
    outputs = len(classes) if classes is not None and len(classes) > 2 else 1
    return rng.normal(size=(data.features, outputs))


def _rows(data: DataSection, rows: int, rng: np.random.Generator) -> Array:
    if data.schema is None:
        return _within_bound(data, rows, rng)
    low = 0.0 if data.schema.scale == "unit" else -1.0
    blocks: list[Array] = []
    for column in data.schema.feature_columns:
        width = len(column.feature_names)
        if isinstance(column, Category):
            blocks.append(np.eye(width)[rng.integers(0, len(column.categories), size=rows)])
        elif isinstance(column, Binary):
            blocks.append(rng.choice([low, 1.0], size=(rows, 1)))
        elif isinstance(column, Numeric):
            blocks.append(rng.uniform(low, 1.0, size=(rows, 1)))
        else:
            blocks.append(rng.uniform(low, 1.0, size=(rows, width)) / np.sqrt(width))
    return np.concatenate(blocks, axis=1)


def _within_bound(data: DataSection, rows: int, rng: np.random.Generator) -> Array:
    """Rows of a set without a schema: up to the bound, the variance of the j-th direction falling like 1/j."""
    found = rng.normal(size=(rows, data.features)) / np.sqrt(np.arange(1, data.features + 1))
    lengths = data.bound * rng.uniform(0.3, 1.0, size=(rows, 1))
    scaled: Array = found / np.linalg.norm(found, axis=1, keepdims=True) * lengths
    return scaled


def _targets(data: DataSection, scores: Array, rng: np.random.Generator) -> NDArray[Any]:
    if data.task == "regression":
        bound = float(data.bound_of_targets or 1.0)
        mixed = (scores[:, 0] + NOISE * rng.normal(size=len(scores))) / (3 * np.hypot(1.0, NOISE))
        return np.asarray(np.clip(bound * mixed, -bound, bound))
    chances = SIGNAL * scores
    if scores.shape[1] == 1:
        told = rng.random(len(scores)) < 1 / (1 + np.exp(-chances[:, 0]))
        return np.where(told, 1.0, -1.0)
    drawn: NDArray[Any] = np.argmax(chances + rng.gumbel(size=chances.shape), axis=1)
    return drawn
