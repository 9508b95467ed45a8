"""Whoever changes one field of a card that stands by itself, and seals it anew, is found out by `consenso verify`."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import consenso
from consenso.algorithms.preconditioned import PreconditionedFixedPoint
from consenso.errors import ConsensoError
from consenso.estimators import categories, histograms, search
from consenso.planning import replan
from consenso.privacy.card import Card
from consenso.privacy.card.depths import REMARKS, Overview
from consenso.privacy.card.document import digest
from consenso.privacy.card.evaluation import questions
from consenso.privacy.verify import first_failure, verify
from consenso.testing.plans import plan_example

ROWS = np.random.default_rng(0).normal(size=(300, 2))
KNOWN = {"epsilon": 1.0, "delta": 1e-5, "random_state": 1}
MADE = {
    "bounds": (lambda: consenso.private_bounds(ROWS, **KNOWN).card, histograms.differences),
    "scaler": (lambda: consenso.PrivateScaler(adjacency="add-remove", **KNOWN).fit(ROWS).card_, histograms.differences),
    "categories": (
        lambda: consenso.private_categories({"ward": np.where(ROWS[:, 0] > 0, "a", "b")}, **KNOWN).card,
        categories.differences,
    ),
    "search": (lambda: search.SearchPlan.calibrate(1.0, 1e-5, 3.0, simulation=True).card, search.differences),
}
# Which library, and where its noise came from, no plan can know: the digest alone is for them.
FREE = ("digest", "format", "versions", "sampler")


def list_leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any]]:
    if isinstance(value, dict | list):
        for name, inner in value.items() if isinstance(value, dict) else enumerate(value):
            yield from list_leaves(inner, (*path, name))
    else:
        yield path, value


def list_edits(value: Any) -> list[Any]:
    """Other values of the kind, which a reader could believe."""
    choices = (
        ("replace-one", "add-remove"),
        ("record", "person", "party"),
        ("curator", "local", "secure-sum", "tree", "masked-sum"),
    )
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, int | float):
        return [other for other in (2 * value, value / 2, value + 1) if other != value]
    for known in choices:
        if value in known:
            return [other for other in known if other != value]
    return [1.0] if value is None else [f"{value}x"]


def follows(stored: dict[str, Any], differences: Any) -> bool:
    """Whether `consenso verify` finds no fault in a card that was sealed anew."""
    content = {name: value for name, value in stored.items() if name != "digest"}
    sealed = json.loads(json.dumps({**content, "digest": digest(content)}))
    if first_failure(verify(sealed)) is not None:
        return False
    try:
        return differences(Card.from_json(sealed)) == []
    except ConsensoError:
        return False


def list_believed(stored: dict[str, Any], differences: Any, skipped: Any) -> list[tuple[Any, ...]]:
    """Fields that can be changed by themselves, with what they were and what they were changed to."""
    assert follows(stored, differences)
    believed = []
    for path, value in list_leaves(stored):
        for other in () if skipped(path) else list_edits(value):
            changed = copy.deepcopy(stored)
            place = changed
            for name in path[:-1]:
                place = place[name]
            place[path[-1]] = other
            if follows(changed, differences):
                believed.append((path, value, other))
    return believed


@pytest.mark.parametrize("kind", MADE)
def test_no_field_can_be_changed_by_itself(kind) -> None:
    make, differences = MADE[kind]
    assert list_believed(make().to_json(), differences, lambda path: path[0] in FREE) == []


def plan_of_parties(trust: str) -> Card:
    return plan_example(PreconditionedFixedPoint.example(), trust=trust).card(1e-5)


LABELS = ROWS[:, 0] > 0
FITTED = {
    "bounds that are found": lambda: consenso.PrivateLogisticRegression(**KNOWN).fit(ROWS, LABELS).card_,
    "a count": lambda: (
        (
            consenso.PrivateRidge(adjacency="add-remove", row_bound=1.0, target_bound=2.0, **KNOWN).fit(
                ROWS, ROWS[:, 0]
            )
        ).card_
    ),
    "people": lambda: (
        consenso.PrivateLogisticRegression(row_bound=1.0, **KNOWN)
        .fit(ROWS, LABELS, users=np.arange(300) // 3, rows_per_person=1)
        .card_
    ),
    "nobody is trusted": lambda: plan_of_parties("local"),
    "secure sums": lambda: plan_of_parties("secure-sum"),
    "a curator of parties": lambda: plan_of_parties("curator"),
}
# Of a run, what its guarantees do not rest on: how it steps, what it learns, and what is known of noise beforehand.
UNSAID = {"parameters", "loss", "regularizer", "features", "row_bound", "target_bound", "weighting"}


@pytest.mark.parametrize("kind", FITTED)
def test_nothing_that_a_card_of_a_run_promises_can_be_changed_by_itself(kind) -> None:
    def is_silent(path: tuple[Any, ...]) -> bool:
        # Numbers of entries follow from their theorems: tests/privacy/test_card.py.
        is_number = path[0] == "entries" and path[-1] not in ("observer", "unit", "adjacency")
        return is_number or path[0] in FREE or not UNSAID.isdisjoint(path[:2])

    assert list_believed(FITTED[kind]().to_json(), replan.differences, is_silent) == []


TEXTS = np.where(LABELS, "yes", "no")
MODEL = consenso.PrivateLogisticRegression
ASSUMED = {
    "bounds that are found": lambda: MODEL(**KNOWN).fit(ROWS, TEXTS),
    "labels that are called public": lambda: MODEL(classes="public", row_bound=1.0, **KNOWN).fit(ROWS, TEXTS),
    "the same in several calls": lambda: (
        MODEL(classes="public", bounds="public", row_bound=1.0, **KNOWN)
        .partial_fit(ROWS, TEXTS)
        .partial_fit(ROWS, TEXTS)
    ),
    "people": lambda: MODEL(row_bound=1.0, **KNOWN).fit(ROWS, LABELS, users=np.arange(300) // 3),
    "a count": lambda: consenso.PrivateRidge(adjacency="add-remove", **KNOWN).fit(ROWS, ROWS[:, 0]),
    "another solver": lambda: MODEL(solver="dp-sgd", row_bound=1.0, **KNOWN).fit(ROWS, LABELS),
    "a search": lambda: (
        consenso.PrivateSearchCV(MODEL(classes=[False, True]), {"alpha": [0.1, 1.0]}, draws=2, **KNOWN)
        .fit(ROWS, LABELS)
        .best_estimator_
    ),
    "a scaler": lambda: consenso.PrivateScaler(**KNOWN).fit(ROWS),
}


@pytest.mark.parametrize("kind", ASSUMED)
def test_all_that_a_guarantee_assumes_stands_on_the_card_that_is_signed(kind) -> None:
    made = ASSUMED[kind]()
    stored = made.card_.to_json()
    said = "\n".join(value for _, value in list_leaves(stored) if isinstance(value, str))
    assert [each for each in made.guarantee_.assumptions if each not in said] == []
    remarks = [stored["data"][name] for name in REMARKS if name in stored["data"]]
    assert set(remarks) <= set(Overview(card=made.card_).notes)
    if made.card_.algorithm not in ("histograms", "search"):
        assert replan.differences(made.card_) == []


def test_an_evaluation_says_that_labels_were_taken_for_public() -> None:
    told = dict(questions(ASSUMED["labels that are called public"]().card_))
    assert "labels that occur is public" in told["What does the proof assume?"]
