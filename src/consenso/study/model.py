"""The [model] section: loss, regularizer, intercept."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from consenso import losses, regularizers
from consenso.errors import InputError
from consenso.losses import Loss
from consenso.regularizers import NoPenalty, Regularizer
from consenso.shards.constant import constant_for
from consenso.study.from_table import plain_name, spell
from consenso.study.keys import Keys

LOSSES: dict[str, type[Any]] = {
    "logistic": losses.Logistic,
    "softmax": losses.Softmax,
    "squared": losses.Squared,
    "huber": losses.Huber,
    "absolute": losses.Absolute,
    "epsilon-insensitive": losses.EpsilonInsensitive,
    "hinge": losses.Hinge,
    "smoothed-hinge": losses.SmoothedHinge,
}
REGULARIZERS: dict[str, type[Any]] = {
    "none": regularizers.NoPenalty,
    "l1": regularizers.L1,
    "l2": regularizers.L2,
    "elastic-net": regularizers.ElasticNet,
    "group-l1": regularizers.GroupL1,
    "ball": regularizers.Ball,
    "box": regularizers.Box,
    "simplex": regularizers.Simplex,
}
#: Which targets each loss fits, in the words of the catalogue.
TASKS = {"sign": "binary", "class": "multiclass", "real": "regression"}


@dataclass(frozen=True, kw_only=True)
class ModelSection:
    """What is learnt. `intercept` adds a constant feature, which the regularizer leaves alone unless told."""

    loss: Loss
    regularizer: Regularizer
    intercept: bool = False
    penalize_intercept: bool = False

    def constant(self, row_bound: float) -> float:
        """The value of the constant feature: a public rule that wastes little noise on it."""
        return constant_for(row_bound)


def read_model(keys: Keys, classes: tuple[str, ...] | None, *, intercept: bool) -> ModelSection | None:
    """The section; `classes` are those of the data, `intercept` is what the schema says."""
    loss = _loss(keys, classes)
    regularizer = _read_kind(keys, "regularizer", NoPenalty(), REGULARIZERS)
    constant = keys.flag("intercept", intercept)
    penalize = keys.flag("penalize_intercept", False)
    if penalize and not constant:
        keys.wrong("penalize_intercept", "there is no intercept to penalize; set intercept = true, or remove it")
    keys.finish()
    if loss is None or regularizer is None:
        return None
    return ModelSection(loss=loss, regularizer=regularizer, intercept=constant, penalize_intercept=penalize)


def _loss(keys: Keys, classes: tuple[str, ...] | None) -> Loss | None:
    value = keys.raw("loss")
    if value is None:
        keys.wrong("loss", f"say what is minimized: one of {', '.join(LOSSES)}")
        return None
    name = value.get("kind") if isinstance(value, dict) else value
    if isinstance(name, str) and plain_name(name) == "softmax" and classes is not None:
        # The classes are those of the data; a number beside them could only disagree.
        value = {"kind": "softmax", "classes": len(classes)} | (value if isinstance(value, dict) else {})
    loss: Loss | None = _read_kind(keys, "loss", None, LOSSES, value)
    return loss


def _read_kind(keys: Keys, name: str, default: Any, kinds: dict[str, type[Any]], value: Any = None) -> Any:
    value = keys.raw(name) if value is None else value
    if value is None:
        return default
    try:
        return spell(value, kinds)
    except InputError as error:
        keys.wrong(name, str(error))
        return None
