"""Weights of classes: public ones, or "balanced" from noisy numbers of records (docs/privacy.md#weights).

Under privacy a weight multiplies what one record can do, so noise is that of the largest weight. Weights are divided by
their mean over the records, so that a weighted fit has the scale of one without weights, and so are penalties. For
public weights the mean is that of classes which they balance, K / sum of 1/weight: whether they do is private.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from consenso.arrays import Array
from consenso.errors import InputError
from consenso.estimators.privacy_params import PrivacyParams, is_number
from consenso.estimators.stages import Stages
from consenso.shards.cluster import sum_batches
from consenso.shards.stored import Batch, RowBatches

BALANCED = "balanced"
# Of the squared budget: at epsilon 1 and delta 1e-5 the number of records of a class has a standard deviation of 53.
COUNTS_SHARE = 0.01


@dataclass(frozen=True, kw_only=True, eq=False)
class ClassWeights:
    """Weights (classes,), None for "balanced"."""

    weights: Array | None
    classes: int

    def share(self, terms: PrivacyParams) -> float:
        """What finding them costs, of the squared budget."""
        return COUNTS_SHARE if terms.is_private and self.weights is None else 0.0

    def find(self, stages: Stages, records: Batch | RowBatches) -> tuple[Array | None, str]:
        """Weights of classes relative to their mean, (classes,), or None where all are 1.

        `stages.terms` are told their bound and what penalties are divided by.
        """
        weights = self._balance(stages, records) if self.weights is None else self.weights
        mean = len(weights) / float(np.sum(1 / weights)) if self.weights is not None else 1.0
        relative = weights / mean
        bound = float(relative.max())
        stages.terms = replace(stages.terms, weight_bound=bound, mean_weight=mean)
        note = "Classes weigh " + ", ".join(f"{each:.3g}" for each in relative) + " (in the order of classes_)"
        if bound == 1.0:
            return None, f"{note}."
        return relative, f"{note}; one record may count {bound:.3g} times, and so does noise."

    def _balance(self, stages: Stages, records: Batch | RowBatches) -> Array:
        """Records over classes times the records of the class, as in scikit-learn, from noisy numbers."""
        counts = sum_batches(records, partial(_count, classes=self.classes))
        if stages.terms.is_private:
            told = {"name": "numbers of records of each class", "add_remove": 1.0, "replace_one": math.sqrt(2.0)}
            planned = stages.plan(COUNTS_SHARE, size=self.classes, **told)
            noisy = stages.release(planned, 0, counts)
            # A class that cannot be told from none counts as what noise may hide.
            counts = np.maximum(noisy, 2 * planned.scale(stages.terms.adjacency))
        balanced: Array = counts.sum() / (self.classes * counts)
        return balanced


def codes_of(targets: NDArray[Any], classes: int) -> NDArray[Any]:
    """The class of each row, from targets as a loss takes them: -1 and 1 for two classes."""
    return (targets > 0).astype(np.intp) if classes == 2 else targets.astype(np.intp)


def _count(batch: Batch, classes: int) -> Array:
    return np.bincount(codes_of(batch.targets, classes), batch.weights, minlength=classes).astype(np.float64)


def read_class_weights(owner: str, given: Any, classes: NDArray[Any]) -> Array | None:
    """Weights in the order of classes; a class that is not named weighs 1. None for "balanced"."""
    if isinstance(given, str) and given == BALANCED:
        return None
    if not isinstance(given, Mapping):
        raise InputError(
            f"{owner}(class_weight={given!r}): give a dictionary from labels to public weights, or 'balanced' for "
            "weights from noisy numbers of records."
        )
    labels = classes.tolist()
    strange = [label for label in given if label not in labels]
    if strange:
        raise InputError(f"{owner}(class_weight=...): {strange[0]!r} is not among classes={labels}; declare it.")
    for label, weight in given.items():
        if not is_number(weight) or not 0 < weight < math.inf:
            raise InputError(
                f"{owner}(class_weight=...): the weight of {label!r} is {weight!r}, and a weight is a positive finite "
                "number."
            )
    return np.array([float(given.get(label, 1.0)) for label in labels])
