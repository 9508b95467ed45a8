"""The [model] section: loss, regularizer, intercept."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from consenso import registry
from consenso.errors import InputError
from consenso.losses import Loss
from consenso.regularizers import Regularizer
from consenso.study.from_table import spell
from consenso.study.keys import Keys

#: Which targets each loss fits, in the words of the catalogue.
TASKS = {"sign": "binary", "class": "multiclass", "real": "regression"}


@dataclass(frozen=True, kw_only=True)
class ModelSection:
    """What is learnt. `intercept` adds a constant feature, which the regularizer leaves alone unless told."""

    loss: Loss
    regularizer: Regularizer | None  # None: the usual one, in the units of the rows (consenso.solvers.penalties)
    intercept: bool = False
    penalize_intercept: bool = False


def read_model(
    keys: Keys, classes: tuple[str, ...] | None, *, intercept: bool, usual_penalty: str
) -> ModelSection | None:
    """The section; `classes` are those of the data, `intercept` is what the schema says.

    usual_penalty: the regularizer where none is stated.
    """
    loss = _loss(keys, classes)
    said = keys.raw("regularizer", usual_penalty)
    regularizer = None if said == "auto" else _read_kind(keys, "regularizer", "regularizers", said)
    constant = keys.flag("intercept", intercept)
    penalize = keys.flag("penalize_intercept", False)
    if penalize and not constant:
        keys.wrong("penalize_intercept", "there is no intercept to penalize; set intercept = true, or remove it")
    keys.finish()
    if loss is None or (regularizer is None and said != "auto"):
        return None
    return ModelSection(loss=loss, regularizer=regularizer, intercept=constant, penalize_intercept=penalize)


def _loss(keys: Keys, classes: tuple[str, ...] | None) -> Loss | None:
    value = keys.raw("loss")
    if value is None:
        keys.wrong("loss", f"say what is minimized: one of {', '.join(registry.short_names('losses'))}")
        return None
    if classes is not None:
        value = _with_classes(value, len(classes))
    loss: Loss | None = _read_kind(keys, "loss", "losses", value)
    return loss


def _with_classes(value: Any, classes: int) -> Any:
    """The classes are those of the data; a number beside them could only disagree."""
    table = value if isinstance(value, Mapping) else {"kind": value}
    try:
        kind = registry.spell(str(table.get("kind")), ("losses",))
    except InputError:
        return value  # refused where it is read
    return {"classes": classes, **table} if "classes" in {each.name for each in fields(kind)} else value


def _read_kind(keys: Keys, name: str, family: str, value: Any) -> Any:
    try:
        return spell(value, family)
    except InputError as error:
        keys.wrong(name, str(error))
        return None
