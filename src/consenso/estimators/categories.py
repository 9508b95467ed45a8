"""Categories that nobody knows beforehand: those that many records or people have, told within a budget.

counts      records by category, of those that occur, with Gaussian noise; rows of a person count 1 together
told        categories whose noisy count passes a level that those of one record, or of one person, alone pass with a
            probability of 1 % of delta (docs/privacy.md#categories)
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from consenso.arrays import Array
from consenso.errors import InputError
from consenso.estimators.bounds import BoundsRequest
from consenso.estimators.count_claims import CountClaims
from consenso.estimators.labels import MOST_LABELS, prepare_terms, telling_count
from consenso.estimators.people import KEPT, People, read_ids, weigh_people
from consenso.estimators.privacy_params import check_terms, terms_of
from consenso.estimators.stages import Stages
from consenso.planning.replan import compare_all
from consenso.privacy.card import Card
from consenso.privacy.earlier import Earlier
from consenso.privacy.guarantee import Guarantee
from consenso.privacy.ledger import Ledger
from consenso.privacy.noise import GaussianNoise
from consenso.problem import Adjacency, Unit

_OWNER = "private_categories"
CATEGORIES = "categories"  # what a card says the algorithm is


@dataclass(frozen=True, kw_only=True)
class PrivateCategories:
    """Released categories by column, in the order of their names, and what they cost.

    level: the noisy number of records, or people, above which a category was told. count_noise: the standard deviation
    of the noise in it.
    """

    categories: Mapping[str, tuple[str, ...]]
    guarantee: Guarantee
    level: float
    count_noise: float
    _claims: CountClaims = field(repr=False)

    @property
    def card(self) -> Card:
        """The privacy card, for every observer; made when it is first looked at."""
        return self._claims.card


def _claim(
    planned: Earlier, columns: int, unit: Unit, adjacency: Adjacency, delta: float, *, simulation: bool
) -> CountClaims:
    """What is promised of categories of so many columns, and above which level one is told.

    A unit that is replaced may be alone with categories of each column in either world: a record with one, a person
    with as many as rows that are kept.
    """
    rows = KEPT if unit == "person" else 1
    level = telling_count(planned.scale(adjacency), planned.tells, 2 * columns * rows)
    return CountClaims(
        algorithm=CATEGORIES,
        why="A unit adds at most one to the categories of each column (docs/privacy.md#categories).",
        planned=planned,
        adjacency=adjacency,
        delta=delta,
        simulation=simulation,
        unit=unit,
        parameters={"tells": planned.tells, "level": level},
        data={"columns": columns},
    )


def differences(card: Card) -> list[str]:
    """Entries of a card of categories that its own parameters do not give; empty when all follow."""
    told: dict[str, Any] = {**card.parameters, **card.data}
    noise = GaussianNoise(multiplier=told["noise"]["multiplier"])
    planned = Earlier(noise=noise, tells=told["tells"], **_count_of(told["columns"]))
    again = _claim(planned, told["columns"], told["unit"], told["adjacency"], card.delta, simulation=card.simulation)
    return compare_all(card, again.card)


def _count_of(columns: int) -> dict[str, Any]:
    """What is counted, and how far a unit moves it."""
    return {
        "name": "numbers of records of categories",
        "add_remove": math.sqrt(columns),
        "replace_one": math.sqrt(2.0 * columns),
        "size": columns * MOST_LABELS,
    }


def private_categories(
    columns: Mapping[str, Any],
    *,
    epsilon: float,
    delta: float | None = None,
    users: Any = None,
    adjacency: Adjacency = "replace-one",
    records: int | None = None,
    ledger: Ledger | str | Path | None = None,
    random_state: Any = None,
) -> PrivateCategories:
    """The categories of columns of texts, by name, that many records have; missing cells are of none.

    users: an id for each row, where a person may have several: the guarantee is then for the person, and a person with
    n rows adds 1/n for each of them. What it costs is spent in addition to what a model spends on the data:
    found.guarantee.compose(model.guarantee_). epsilon, delta, adjacency, records (or people), ledger and random_state
    as for the estimators.
    """
    asked: Any = BoundsRequest(
        epsilon=epsilon, delta=delta, adjacency=adjacency, records=records, ledger=ledger, random_state=random_state
    )
    check_terms(asked, _OWNER)
    if math.isinf(epsilon):
        raise InputError(f"{_OWNER}(epsilon=inf): without privacy, take the categories that occur; give an epsilon.")
    texts = {str(name): _read_texts(str(name), columns[name]) for name in columns}
    lengths = {len(cells) for cells in texts.values()}
    if len(lengths) != 1:
        raise InputError(f"{_OWNER}(columns=...): at least one column, all with one cell for each record, are needed.")
    (rows,) = lengths
    people = None if users is None else weigh_people(read_ids(_OWNER, users, rows), 1)
    terms = prepare_terms(terms_of(asked, _OWNER, rows if people is None else people.count, divides=False))
    if people is not None:
        terms = replace(terms, unit="person", rows_per_unit=KEPT)
    counted = {name: _count(cells, people) for name, cells in texts.items()}
    stages = Stages(terms)
    with stages.reserve(1.0, "categories"):
        planned = stages.plan(1.0, tells=terms.tells, **_count_of(len(counted)))
        exact = np.concatenate([counts for _, counts in counted.values()])
        noisy = stages.release(planned, 0, exact) if exact.size else exact
    assert terms.sampler is not None
    claims = _claim(planned, len(counted), terms.unit, adjacency, terms.delta, simulation=not terms.sampler.private)
    level = float(claims.parameters["level"])
    ends = np.cumsum([len(found) for found, _ in counted.values()])[:-1]
    told = {
        name: tuple(str(text) for text in found[part > level])
        for (name, (found, _)), part in zip(counted.items(), np.split(noisy, ends), strict=True)
    }
    return PrivateCategories(
        categories=told,
        guarantee=claims.prove(),
        level=level,
        count_noise=claims.scale,
        _claims=claims,
    )


def _count(cells: list[str], people: People | None) -> tuple[NDArray[Any], Array]:
    """The categories of a column, and what the records of each count together."""
    texts = np.array(cells) if people is None else np.array(cells)[people.kept]
    own = np.ones(len(texts)) if people is None else people.contributions
    there = texts != ""
    found, place = np.unique(texts[there], return_inverse=True)
    return found, np.bincount(place.reshape(-1), own[there], minlength=len(found)).astype(np.float64)


def _read_texts(name: str, cells: Any) -> list[str]:
    """The cells of a column as texts without blanks around them; empty where one is missing."""
    values = np.asarray(cells, dtype=object)
    if values.ndim != 1:
        raise InputError(f"{_OWNER}(columns=...): column {name!r} is not one cell for each record.")
    return ["" if _is_missing(cell) else str(cell).strip() for cell in values.tolist()]


def _is_missing(cell: Any) -> bool:
    """None, NaN, NaT and NA: what is not equal to itself, or does not say whether it is."""
    same = cell == cell
    return cell is None or not (isinstance(same, bool | np.bool_) and bool(same))
