"""Models as the estimators of `consenso.estimators`, with the attributes that a fit would have set.

An estimator that is made from a model can predict, be scored and be put into a pipeline; its parameters say what the
model was trained with, as far as an estimator can say it. `fit` trains anew; a model that has a card can be started
from, and `partial_fit` goes on from it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from consenso.arrays import Array
from consenso.errors import InputError
from consenso.estimators.row_map import RowMap
from consenso.models.model import Model
from consenso.privacy.accountants import epsilon
from consenso.privacy.card import Card
from consenso.privacy.card.entry import Entry
from consenso.privacy.guarantee import Guarantee


def to_estimator(model: Model) -> Any:
    """The estimator that is made from models of this loss (`made_from`), fitted."""
    made = _empty(model)
    intercept = np.zeros(model.outputs) if model.intercept is None else np.array(model.intercept)
    if model.classes is None:
        made.coef_, made.intercept_ = np.array(model.coefficients[:, 0]), float(intercept[0])
    else:
        made.classes_, table, offsets = _sort_classes(model, intercept)
        made.coef_, made.intercept_ = np.ascontiguousarray(table.T), offsets
    made.n_features_in_ = len(model.features)
    made.row_map_, made.row_bound_ = RowMap(row_bound=model.row_bound), model.row_bound
    made.solver_ = "loaded"
    made.solver_reason_ = "The coefficients were read from a model file."
    made.n_iter_ = 0
    if model.card is not None:
        # The card of the training, whatever an estimator's own fit would have promised.
        made._card = model.card
        made.guarantee_ = _guarantee(model.card)
        _keep_for_later_fits(made, model.card)
    return made


def _sort_classes(model: Model, intercept: Array) -> tuple[NDArray[Any], Array, Array]:
    """Classes in the order that a fit has them in, coefficients (features, outputs) and intercepts for that order."""
    named = np.asarray(model.classes)
    order = np.argsort(named)
    if model.outputs > 1:
        return named[order], model.coefficients[:, order], intercept[order]
    sign = 1.0 if order[0] == 0 else -1.0
    return named[order], sign * model.coefficients, sign * intercept


def _keep_for_later_fits(made: Any, card: Card) -> None:
    """What a fit that starts from this model, or `partial_fit`, takes over: public facts of the card."""
    made.target_bound_, made._middle = getattr(made, "target_bound", None), 0.0
    made._records_learnt, made._started = int(sum(card.data["sizes"])), False
    made._delta, made._remarks, made.notes_ = card.delta, {}, ()


def _guarantee(card: Card) -> Guarantee:
    """What the card promises for a record to whoever sees the model only."""
    entry = _find_entry(card)
    theorem = max((theorem for _, _, theorem in entry.kinds()), key=lambda each: epsilon(each.event(), card.delta))
    return Guarantee(
        event=theorem.event(),
        adjacency=card.data["adjacency"],
        unit=theorem.unit,
        observer=entry.observer,
        theorem=type(theorem).__name__,
        assumptions=tuple(assumption.text for assumption in theorem.assumptions()),
        simulation=card.simulation,
    )


def _find_entry(card: Card) -> Entry:
    wanted = ("public", card.data.get("unit", "record"), card.data.get("adjacency", "replace-one"))
    found = [entry for entry in card.entries if (entry.observer, entry.unit, entry.adjacency) == wanted]
    if not found:
        raise InputError(f"Model.estimator: the card states no guarantee for {' / '.join(wanted)}; use predict.")
    return found[0]


def _empty(model: Model) -> Any:
    from consenso import estimators
    from consenso.estimators.linear import PrivateLinearModel

    for name in dir(estimators):
        getattr(estimators, name)  # all of them are loaded, so that they are among the subclasses
    for kind in _subclasses(PrivateLinearModel):
        if isinstance(model.loss, kind.made_from):
            return kind(**kind.read_loss(model.loss), **_options(model))
    raise InputError(
        f"Model.estimator: no estimator has the {model.loss.name} loss; use predict, or to_sklearn for a plain object."
    )


def _subclasses(kind: type[Any]) -> Iterator[type[Any]]:
    for inner in kind.__subclasses__():
        yield inner
        yield from _subclasses(inner)


def _options(model: Model) -> dict[str, Any]:
    options: dict[str, Any] = {
        "row_bound": model.row_bound,
        "fit_intercept": model.intercept is not None,
        "epsilon": math.inf,
    }
    if model.classes is not None:
        options["classes"] = list(model.classes)
    card = model.card
    if card is None:
        return options
    if model.classes is None:
        options["target_bound"] = card.data.get("target_bound")
    if card.data.get("adjacency") == "add-remove":
        options["adjacency"] = "add-remove"
        if card.data.get("capped", True):  # a noisy count is not a number that the owner knew
            options["records"] = int(sum(card.data["sizes"]))
    return {**options, "epsilon": _find_entry(card).epsilon, "delta": card.delta or None}
