"""Weights of records within a public bound, and of classes: public ones, or "balanced" from noisy numbers of records.

Under privacy a weight multiplies what one record can do, so noise is that of the largest weight. Weights are divided by
their mean over the records, so that a weighted fit has the scale of one without weights, and so are penalties. For
public weights the mean is that of classes which they balance, K / sum of 1/weight: whether they do is private. Weights
of records are private, and so is their mean: they are taken as they are (docs/privacy.md#weights).
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
from consenso.errors import InputError, name_row
from consenso.estimators.privacy_params import PrivacyParams, is_number
from consenso.estimators.reading import say_more
from consenso.estimators.stages import Stages
from consenso.shards.cluster import sum_batches
from consenso.shards.stored import RowBatch, RowBatches

BALANCED = "balanced"
# Of the squared budget: at epsilon 1 and delta 1e-5 the number of records of a class has a standard deviation of 53.
COUNTS_SHARE = 0.01


# A bound of 1 would say that there are no weights.
_ABOVE_ONE = math.nextafter(1.0, 2.0)


@dataclass(frozen=True, kw_only=True, eq=False)
class ClassWeights:
    """Weights (classes,), None for "balanced"."""

    weights: Array | None

    def share(self, terms: PrivacyParams) -> float:
        """What finding them costs, of the squared budget."""
        return COUNTS_SHARE if terms.is_private and self.weights is None else 0.0

    def find(self, stages: Stages, records: RowBatch | RowBatches, classes: int) -> tuple[Array | None, str]:
        """Weights of classes relative to their mean, (classes,), or None where they change nothing.

        `stages.terms` are told their bound and what penalties are divided by.
        """
        weights = self._balance(stages, records, classes) if self.weights is None else self.weights
        mean = len(weights) / float(np.sum(1 / weights)) if self.weights is not None else 1.0
        relative = weights / mean
        largest, bound = float(relative.max()), float(relative.max()) * stages.terms.weight_bound
        changes = not (largest == 1.0 and bound in (1.0, _ABOVE_ONE))
        bound = _ABOVE_ONE if changes and bound == 1.0 else bound
        stages.terms = replace(stages.terms, weight_bound=bound, mean_weight=mean)
        note = "Classes weigh " + ", ".join(f"{each:.3g}" for each in relative) + " (in the order of classes_)"
        if not changes:
            return None, f"{note}."
        return relative, f"{note}; one record may count {bound:.3g} times, and so does noise."

    def _balance(self, stages: Stages, records: RowBatch | RowBatches, classes: int) -> Array:
        """Records over classes times the records of the class, as in scikit-learn, from noisy numbers.

        Weights of records count in an exact fit, as in scikit-learn; under privacy every unit counts once.
        """
        counts = sum_batches(records, partial(_count, classes=classes))
        if stages.terms.is_private:
            told = {"name": "numbers of records of each class", "add_remove": 1.0, "replace_one": math.sqrt(2.0)}
            planned = stages.plan(COUNTS_SHARE, size=classes, **told)
            noisy = stages.release(planned, 0, counts)
            # A class that cannot be told from none counts as what noise may hide.
            counts = np.maximum(noisy, 2 * planned.scale(stages.terms.adjacency))
        balanced: Array = counts.sum() / (classes * counts)
        return balanced


def codes_of(targets: NDArray[Any], classes: int) -> NDArray[Any]:
    """The class of each row, from targets as a loss takes them: -1 and 1 for two classes."""
    return (targets > 0).astype(np.intp) if classes == 2 else targets.astype(np.intp)


def _count(batch: RowBatch, classes: int) -> Array:
    return np.bincount(codes_of(batch.targets, classes), batch.weights, minlength=classes).astype(np.float64)


def read_weights(
    owner: str, given: Any, weight_bound: float, terms: PrivacyParams, count: int
) -> tuple[PrivacyParams, Array]:
    """Weights of records, each within the public bound, and terms that know it; an exact fit has no bound to keep."""
    if not is_number(weight_bound) or not 0 < weight_bound < math.inf:
        raise InputError(
            f"{owner}.fit(weight_bound={weight_bound!r}): weights have a public bound, a positive finite number."
        )
    found = _read_weights(owner, given, count)
    # As an empty table is, for which it stands: guarantees are for tables that have a record.
    if not found.any():
        raise InputError(f"{owner}.fit(sample_weight=...): every weight is zero, and nothing is left to learn from.")
    bound = float(weight_bound) if terms.is_private else float(found.max())
    long = np.flatnonzero(found > bound)
    if len(long):
        raise InputError(
            f"{owner}.fit(sample_weight=...): {name_row(long[0])}{say_more(len(long))} has a weight above "
            f"weight_bound={weight_bound:g}; "
            "declare the largest weight that there can be, from public knowledge, or divide the weights."
        )
    return replace(terms, weight_bound=_ABOVE_ONE if bound == 1.0 else bound), found


def _read_weights(owner: str, given: Any, count: int) -> Array:
    where = f"{owner}.fit(sample_weight=...)"
    try:
        values = np.array(given)
        if np.iscomplexobj(values):
            raise TypeError
        found = values.astype(np.float64)
    except (TypeError, ValueError):
        raise InputError(f"{where}: weights are numbers, one for each row, and some are not.") from None
    if found.shape != (count,):
        raise InputError(
            f"{where}: one weight for each of the {count} rows is needed, along one axis, and the shape is "
            f"{found.shape}."
        )
    wrong = np.flatnonzero(~((found >= 0) & np.isfinite(found)))
    if len(wrong):
        raise InputError(
            f"{where}: {name_row(wrong[0])}{say_more(len(wrong))} has no weight that is finite and at least 0; give it "
            "one, or drop it."
        )
    return found


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
