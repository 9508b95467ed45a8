"""Categories that nobody knows beforehand: those that many records have, told within a budget.

counts      records by category, of those that occur, with Gaussian noise
told        categories whose noisy count passes a level that a category of one record alone passes with a
            probability of 1 % of delta (docs/privacy.md#categories)
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from consenso.errors import InputError
from consenso.estimators.bounds import BoundsRequest
from consenso.estimators.labels import prepare_terms, telling_count
from consenso.estimators.privacy_params import check_terms, terms_of
from consenso.estimators.stages import open_stages
from consenso.privacy.guarantee import Guarantee
from consenso.privacy.ledger import Ledger
from consenso.privacy.observers import Public
from consenso.privacy.theorems import Composition
from consenso.problem import Adjacency

_OWNER = "private_categories"
# Different texts of a column that are looked at; a column with more is one of names or remarks.
MOST_CATEGORIES = 10_000


@dataclass(frozen=True, kw_only=True)
class PrivateCategories:
    """Released categories by column, in the order of their names, and what they cost.

    level: the noisy number of records above which a category was told. count_noise: the standard deviation of the noise
    in it.
    """

    categories: Mapping[str, tuple[str, ...]]
    guarantee: Guarantee
    level: float
    count_noise: float


def private_categories(
    columns: Mapping[str, Any],
    *,
    epsilon: float,
    delta: float | None = None,
    adjacency: Adjacency = "replace-one",
    records: int | None = None,
    ledger: Ledger | str | Path | None = None,
    random_state: Any = None,
) -> PrivateCategories:
    """The categories of columns of texts, by name, that many records have; missing cells are of none.

    What it costs is spent in addition to what a model spends on the data: found.guarantee.compose(model.guarantee_).
    epsilon, delta, adjacency, records, ledger and random_state as for the estimators.
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
    terms = prepare_terms(terms_of(asked, _OWNER, lengths.pop(), divides=False))
    counted = {name: np.unique([cell for cell in cells if cell], return_counts=True) for name, cells in texts.items()}
    for name, (found, _) in counted.items():
        if len(found) > MOST_CATEGORIES:
            raise InputError(
                f"{_OWNER}(columns=...): column {name!r} has more than {MOST_CATEGORIES:,} different texts, which are "
                "no categories; leave it out."
            )
    many = len(counted)
    with open_stages(terms, 1.0, "categories") as stages:
        planned = stages.plan(
            1.0,
            name="numbers of records of categories",
            add_remove=math.sqrt(many),
            replace_one=math.sqrt(2.0 * many),
            size=many * MOST_CATEGORIES,
            tells=terms.tells,
        )
        exact = np.concatenate([counts for _, counts in counted.values()]).astype(np.float64)
        noisy = stages.release(planned, 0, exact) if exact.size else exact
    scale = planned.scale(adjacency)
    # A replaced record may be alone with a category of each column in either world.
    level = telling_count(scale, terms.tells, 2 * many)
    ends = np.cumsum([len(found) for found, _ in counted.values()])[:-1]
    told = {
        name: tuple(str(text) for text in found[part > level])
        for (name, (found, _)), part in zip(counted.items(), np.split(noisy, ends), strict=True)
    }
    assert terms.sampler is not None
    event = planned.event(terms.sampler, adjacency, "record", adjacency)
    guarantee = Guarantee(
        event=event,
        adjacency=adjacency,
        unit="record",
        observer=Public().key,
        theorem=Composition.__name__,
        simulation=not terms.sampler.private,
    )
    return PrivateCategories(categories=told, guarantee=guarantee, level=level, count_noise=scale)


def _read_texts(name: str, cells: Any) -> list[str]:
    """The cells of a column as texts without blanks around them; empty where one is missing."""
    values = np.asarray(cells, dtype=object)
    if values.ndim != 1:
        raise InputError(f"{_OWNER}(columns=...): column {name!r} is not one cell for each record.")
    return ["" if cell is None or cell != cell else str(cell).strip() for cell in values.tolist()]
