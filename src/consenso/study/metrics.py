"""How a model does on PUBLIC records: computed from the released model and public data, so it costs nothing."""

from __future__ import annotations

from typing import Any

import numpy as np

from consenso.arrays import Array, IntArray
from consenso.models import Model
from consenso.study.folder import finite
from consenso.study.sources import Records


def compute_metrics(model: Model, records: Records) -> dict[str, Any]:
    """Figures by name, beside those of a prediction that ignores the features."""
    scores = model.scores(records.X)
    if model.classes is None:
        return _regression(scores[:, 0], np.asarray(records.y, dtype=np.float64))
    return _classification(model, scores, np.asarray(records.y))


def _classification(model: Model, scores: Array, y: Any) -> dict[str, Any]:
    assert model.classes is not None
    places = ((y + 1) / 2).astype(np.int64) if model.outputs == 1 else y.astype(np.int64)
    chosen = (scores[:, 0] > 0).astype(np.int64) if model.outputs == 1 else np.argmax(scores, axis=1)
    share = np.bincount(places, minlength=len(model.classes)) / len(places)
    raw = scores[:, 0] if model.outputs == 1 else scores
    return {
        "task": "classification",
        "records": len(places),
        "accuracy": float(np.mean(chosen == places)),
        "majority": float(share.max()),
        "loss": finite(float(np.mean(model.loss.value(raw, y)))),
        "loss of zero": finite(float(np.mean(model.loss.value(np.zeros_like(raw), y)))),
        "recall": {
            name: float(np.mean(chosen[places == place] == place)) if share[place] else None
            for place, name in enumerate(model.classes)
        },
        "precision": {
            name: float(np.mean(places[chosen == place] == place)) if (chosen == place).any() else None
            for place, name in enumerate(model.classes)
        },
        "confusion": _confusion(places, chosen, len(model.classes)),
        "auc": _auc(scores[:, 0], places) if model.outputs == 1 else None,
        "calibration error": _calibration_error(model, scores, places),
    }


def _confusion(places: IntArray, chosen: IntArray, classes: int) -> list[list[int]]:
    """Records by their class, a row each, and by the class that was predicted."""
    found = np.zeros((classes, classes), dtype=np.int64)
    np.add.at(found, (places, chosen), 1)
    return [[int(many) for many in row] for row in found]


def _auc(scores: Array, places: IntArray) -> float | None:
    """How often a record of the second class has the higher score than one of the first; ties count half."""
    positive, negative = scores[places == 1], np.sort(scores[places == 0])
    if not len(positive) or not len(negative):
        return None
    below = np.searchsorted(negative, positive, "left") + np.searchsorted(negative, positive, "right")
    return float(below.sum() / (2 * len(positive) * len(negative)))


def _calibration_error(model: Model, scores: Array, places: IntArray) -> float | None:
    """How far stated probabilities of the predicted class are from how often it is right, over tenths."""
    if not model.has_probabilities:
        return None
    chances = model.probabilities(scores)
    chosen = chances.argmax(axis=1)
    stated, right = chances.max(axis=1), chosen == places
    tenth = np.minimum((stated * 10).astype(np.int64), 9)
    gaps = np.bincount(tenth, stated - right, minlength=10)
    return float(np.abs(gaps).sum() / len(places))


def _regression(predicted: Array, y: Array) -> dict[str, Any]:
    error = predicted - y
    spread = float(np.mean((y - y.mean()) ** 2))
    return {
        "task": "regression",
        "records": len(y),
        "rmse": finite(float(np.sqrt(np.mean(error**2)))),
        "mae": finite(float(np.mean(np.abs(error)))),
        "r2": finite(1.0 - float(np.mean(error**2)) / spread) if spread else None,
        "rmse of the mean": finite(float(np.sqrt(spread))),
    }
