"""People with several rows: what each of them may add, and the weights that keep to it (docs/privacy.md#people).

    n_i   rows of person i, of which k_i = min(n_i, KEPT * cap) are kept, evenly spaced in their order
    w_i   weight of each kept row, min(n_i, cap) / (cap k_i), rounded down: at most 1 together

With cap = 1, the default, every person counts the same. A larger cap lets people with more rows count more, up to the
cap, and those with fewer count less. All rows are used, with less weight, where dropping would leave `cap` of them: the
expected sum is the same and its noise over the draw of rows is smaller, at the same bound.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from consenso.arrays import Array, IntArray
from consenso.errors import InputError

# Rows of a person that are kept, for each row of the cap: more add cost and rounding, and say little that is new.
KEPT = 64
# Weights are multiples of this: sums of them are exact, and those of a person are never above 1.
GRID = 2.0**-30


@dataclass(frozen=True, kw_only=True, eq=False)
class RowWeights:
    """Weights of rows: those of one unit are at most the problem's weight_bound together.

    values: (rows,). contributions: the same before classes or records were given weights, at most 1 together for a
    unit; None where every row is a unit of its own. units: how many there are, which is private under add-remove.
    """

    values: Array
    contributions: Array | None
    units: int


@dataclass(frozen=True, kw_only=True, eq=False)
class People:
    """Which rows are kept, the weight of each of those, and how many people there are."""

    kept: IntArray
    contributions: Array
    count: int

    def weights(self) -> RowWeights:
        """Of the rows that are kept."""
        return RowWeights(values=self.contributions, contributions=self.contributions, units=self.count)

    def spread(self, rows: int) -> Array:
        """Weights of all rows, (rows,): 0 for those that are not kept."""
        weights = np.zeros(rows)
        weights[self.kept] = self.contributions
        return weights


def read_people(owner: str, users: Any, rows: int, cap: int) -> People:
    """People from one id a row: whole numbers or texts. No id leaves, not even in an error."""
    if isinstance(cap, bool) or not isinstance(cap, int | np.integer) or cap < 1:
        raise InputError(f"{owner}.fit(rows_per_person={cap!r}): a public cap on rows is a whole number above 0.")
    ids = users.to_numpy() if hasattr(users, "to_numpy") else np.asarray(users)
    if ids.shape != (rows,):
        raise InputError(
            f"{owner}.fit(users=...): one id for each of the {rows} rows is needed, along one axis, and the shape is "
            f"{ids.shape}."
        )
    if ids.dtype.kind not in "iuOUST":
        raise InputError(
            f"{owner}.fit(users=...): ids are whole numbers or texts, and these are {ids.dtype}; a column with missing "
            "ids is read as floating-point numbers: drop these rows or give them ids."
        )
    for place, one in enumerate(ids.tolist()):
        if not isinstance(one, int | str) or isinstance(one, bool) or one == "":
            raise InputError(
                f"{owner}.fit(users=...): row {place} has no id; every id is a whole number or a text that is not "
                "empty, so drop such rows or give each its own id."
            )
    _, person = np.unique(ids.astype(str) if ids.dtype.kind == "O" else ids, return_inverse=True)
    return _weigh(person.reshape(-1), int(cap))


def _weigh(person: IntArray, cap: int) -> People:
    many = np.bincount(person)
    order = np.argsort(person, kind="stable")
    starts = np.cumsum(many) - many
    most = KEPT * cap
    # Row j of n is kept if another multiple of n/most begins in it: evenly spaced, and all where n is small.
    place = np.arange(len(person)) - np.repeat(starts, many)
    of = np.repeat(many, many)
    kept = (place * most) // of != ((place - 1) * most) // of
    chosen = np.sort(order[kept])
    own = many[person[chosen]]
    weights = np.minimum(own, cap) / (cap * np.minimum(own, most))
    # A billionth less, for the rounding of what is multiplied with it.
    return People(kept=chosen, contributions=np.floor(weights * (1 - GRID) / GRID) * GRID, count=len(many))
