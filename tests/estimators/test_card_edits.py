"""Whoever changes one field of a card that stands by itself, and seals it anew, is found out by `consenso verify`."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import consenso
from consenso.errors import ConsensoError
from consenso.estimators import categories, histograms, search
from consenso.privacy.card import Card
from consenso.privacy.card.document import digest
from consenso.privacy.verify import first_failure, verify

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
    choices = (("replace-one", "add-remove"), ("record", "person", "party"), ("curator", "local", "secure-sum"))
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


@pytest.mark.parametrize("kind", MADE)
def test_no_field_can_be_changed_by_itself(kind) -> None:
    make, differences = MADE[kind]
    stored = make().to_json()
    assert follows(stored, differences)
    believed = []
    for path, value in list_leaves(stored):
        for other in list_edits(value) if path[0] not in FREE else ():
            changed = copy.deepcopy(stored)
            place = changed
            for name in path[:-1]:
                place = place[name]
            place[path[-1]] = other
            if follows(changed, differences):
                believed.append((path, value, other))
    assert believed == []
