"""Categories that nobody knows beforehand: those that many records or people have, told within a budget.

counts      records by category, of those that occur, with Gaussian noise; rows of a person count 1 together
told        categories whose noisy count passes a level that those of one record, or of one person, alone pass with a
            probability of 1 % of delta (docs/privacy.md#categories)
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from consenso.arrays import Array
from consenso.errors import InputError
from consenso.estimators.bounds import BoundsRequest
from consenso.estimators.labels import MOST_LABELS, prepare_terms, telling_count
from consenso.estimators.people import KEPT, People, read_ids, weigh_people
from consenso.estimators.privacy_params import check_terms, terms_of
from consenso.estimators.stages import open_stages, prove_release
from consenso.planning.replan import compare
from consenso.privacy.card import Card
from consenso.privacy.earlier import Earlier
from consenso.privacy.guarantee import Guarantee
from consenso.privacy.ledger import Ledger
from consenso.privacy.noise import GaussianNoise
from consenso.privacy.observers import Eavesdropper, Observer, Public
from consenso.privacy.relations import Relation, bounds_of, check_claim, claims_of
from consenso.privacy.samplers import Safe, Sampler, Seeded
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
    _claims: CategoryClaims = field(repr=False)

    @property
    def card(self) -> Card:
        """The privacy card, for every observer; made when it is first looked at."""
        return self._claims.card


@dataclass(frozen=True, kw_only=True)
class CategoryClaims:
    """What is promised of categories of so many columns, from public facts."""

    planned: Earlier
    columns: int
    unit: Unit
    adjacency: Adjacency
    delta: float
    simulation: bool

    @property
    def sampler(self) -> Sampler:
        """The kind of noise, without its seed."""
        return Seeded(0) if self.simulation else Safe()

    @property
    def level(self) -> float:
        """The noisy count above which a category is told.

        A unit that is replaced may be alone with categories of each column in either world: a record with one, a person
        with as many as rows that are kept.
        """
        rows = KEPT if self.unit == "person" else 1
        return telling_count(self.planned.scale(self.adjacency), self.planned.tells, 2 * self.columns * rows)

    def prove(self, observer: Observer, adjacency: Relation) -> Guarantee:
        """What an observer can learn of a unit."""
        check_claim(self.adjacency, self.unit, adjacency)
        return prove_release(
            self.planned.event(self.sampler, self.adjacency, self.unit, bounds_of(adjacency)),
            why="A unit adds at most one to the categories of each column (docs/privacy.md#categories).",
            observer=observer,
            adjacency=adjacency,
            unit=self.unit,
            simulation=self.simulation,
        )

    @cached_property
    def card(self) -> Card:
        """The privacy card."""
        return Card.build(
            algorithm=CATEGORIES,
            parameters={"noise": self.planned.noise, "tells": self.planned.tells, "level": self.level},
            data={"columns": self.columns, "unit": self.unit, "adjacency": self.adjacency},
            trust="curator",
            sampler=self.sampler,
            delta=self.delta,
            promises=[
                self.prove(observer, adjacency)
                for observer in (Eavesdropper(), Public())
                for adjacency in claims_of(self.adjacency, self.unit)
            ],
        )


def differences(card: Card) -> list[str]:
    """Entries of a card of categories that its own parameters do not give; empty when all follow."""
    told: dict[str, Any] = {**card.parameters, **card.data}
    noise = GaussianNoise(multiplier=told["noise"]["multiplier"])
    again = CategoryClaims(
        planned=Earlier(noise=noise, tells=told["tells"], **_count_of(told["columns"])),
        columns=told["columns"],
        unit=told["unit"],
        adjacency=told["adjacency"],
        delta=card.delta,
        simulation=card.simulation,
    )
    level = [] if told["level"] == again.level else [f"parameters.level: {told['level']}, not {again.level}"]
    return [*level, *compare(card, again.card)]


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
    with open_stages(terms, 1.0, "categories") as stages:
        planned = stages.plan(1.0, tells=terms.tells, **_count_of(len(counted)))
        exact = np.concatenate([counts for _, counts in counted.values()])
        noisy = stages.release(planned, 0, exact) if exact.size else exact
    assert terms.sampler is not None
    claims = CategoryClaims(
        planned=planned,
        columns=len(counted),
        unit=terms.unit,
        adjacency=adjacency,
        delta=terms.delta,
        simulation=not terms.sampler.private,
    )
    ends = np.cumsum([len(found) for found, _ in counted.values()])[:-1]
    told = {
        name: tuple(str(text) for text in found[part > claims.level])
        for (name, (found, _)), part in zip(counted.items(), np.split(noisy, ends), strict=True)
    }
    return PrivateCategories(
        categories=told,
        guarantee=claims.prove(Public(), adjacency),
        level=claims.level,
        count_noise=planned.scale(adjacency),
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
