"""Ways to hand the rows of one table to parties, for simulation; a deployed party brings its own table."""

from __future__ import annotations

import numbers
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from consenso.arrays import IntArray
from consenso.errors import InputError


@dataclass(frozen=True, eq=False)
class Split:
    """Rows order[offsets[i]:offsets[i + 1]] belong to party i; no party is empty and every row belongs to one."""

    order: IntArray
    offsets: IntArray

    @property
    def parties(self) -> int:
        """How many parties there are."""
        return len(self.offsets) - 1

    @property
    def rows(self) -> int:
        """How many rows the table has."""
        return len(self.order)

    @cached_property
    def sizes(self) -> IntArray:
        """Rows of each party, (parties,)."""
        return np.diff(self.offsets)

    @cached_property
    def party_of_row(self) -> IntArray:
        """The party that holds each row of the table, (rows,)."""
        party = np.empty(self.rows, dtype=np.int64)
        party[self.order] = np.repeat(np.arange(self.parties, dtype=np.int64), self.sizes)
        return party


def by_party(party_of_row: ArrayLike, parties: int | None = None) -> Split:
    """The split that a party number per row describes; rows of a party keep their order."""
    party = np.asarray(party_of_row)
    if party.ndim != 1 or party.size == 0 or party.dtype.kind not in "iu":
        raise InputError(
            f"by_party(party_of_row=...): one whole number per row is needed, but an array of shape {party.shape} and "
            f"type {party.dtype} was given."
        )
    count = int(party.max()) + 1 if parties is None else parties
    if party.min() < 0 or party.max() >= count:
        raise InputError(
            f"by_party(parties={count}): the number of a party lies in 0..{count - 1}, but a row has another."
        )
    sizes = np.bincount(party, minlength=count)
    empty = np.flatnonzero(sizes == 0)
    if empty.size:
        raise InputError(
            f"by_party(parties={count}): every party holds at least one row, but party {empty[0]} holds none; number "
            "the parties without gaps."
        )
    order = np.argsort(party, kind="stable").astype(np.int64)
    return Split(order, _offsets(sizes))


def equal(rows: int, parties: int, rng: np.random.Generator | None = None) -> Split:
    """Sizes that differ by at most one; consecutive rows, or a random assignment if a generator is given."""
    _require_enough("equal", rows, parties)
    order = np.arange(rows, dtype=np.int64) if rng is None else rng.permutation(rows).astype(np.int64)
    return Split(order, np.arange(parties + 1, dtype=np.int64) * rows // parties)


def one_per_record(rows: int) -> Split:
    """Every row is a party of its own."""
    _require_enough("one_per_record", rows, 1)
    return Split(np.arange(rows, dtype=np.int64), np.arange(rows + 1, dtype=np.int64))


def by_column(ids: ArrayLike) -> Split:
    """One party per distinct value of a column (a user, a site), in the order of the sorted values."""
    column = np.asarray(ids)
    if column.ndim != 1 or column.size == 0:
        raise InputError(
            f"by_column(ids=...): one value per row is needed, but an array of shape {column.shape} was given."
        )
    return by_party(np.unique(column, return_inverse=True)[1])


def by_group(ids: ArrayLike, parties: int, rng: np.random.Generator | None = None) -> Split:
    """Groups of rows (people) dealt to parties, none of them torn: groups of a party differ by one at most.

    Groups go in the order of their first rows, or at random if a generator is given.
    """
    column = np.asarray(ids)
    if column.ndim != 1 or column.size == 0:
        raise InputError(
            f"by_group(ids=...): one value per row is needed, but an array of shape {column.shape} was given."
        )
    _, first, group = np.unique(column, return_index=True, return_inverse=True)
    dealt = equal(len(first), parties, rng)
    place = np.empty(len(first), dtype=np.int64)
    place[np.argsort(first, kind="stable")] = dealt.party_of_row
    return by_party(place[group.reshape(-1)], parties)


def dirichlet(labels: ArrayLike, parties: int, concentration: float, rng: np.random.Generator) -> Split:
    """Label skew: the rows of each class go to the parties in proportions drawn from a Dirichlet law.

    A small concentration gives parties of few classes and very different sizes. A party that the draw leaves empty
    gets one random row of a party that has several.
    """
    if not 0 < concentration < np.inf:
        raise InputError(f"dirichlet(concentration={concentration}): concentration is a positive finite number.")
    classes = np.unique(np.asarray(labels), return_inverse=True)[1]
    _require_enough("dirichlet", classes.size, parties)
    party = np.empty(classes.size, dtype=np.int64)
    for label in range(int(classes.max()) + 1):
        of_class = np.flatnonzero(classes == label)
        shares = rng.dirichlet(np.full(parties, float(concentration)))
        counts = rng.multinomial(of_class.size, shares / shares.sum())
        party[rng.permutation(of_class)] = np.repeat(np.arange(parties, dtype=np.int64), counts)
    return by_party(_without_empty(party, parties, rng), parties)


def _without_empty(party: IntArray, parties: int, rng: np.random.Generator) -> IntArray:
    empty = np.setdiff1d(np.arange(parties), party)
    # One row of each party that has any stays where it is, so that giving the others away empties nobody.
    shuffled = rng.permutation(party.size)
    kept = shuffled[np.unique(party[shuffled], return_index=True)[1]]
    free = np.setdiff1d(shuffled, kept)
    party[rng.choice(free, size=empty.size, replace=False)] = empty
    return party


def _offsets(sizes: Any) -> IntArray:
    return np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)


def _require_enough(function: str, rows: Any, parties: Any) -> None:
    for name, value in (("rows", rows), ("parties", parties)):
        if not isinstance(value, numbers.Integral) or value < 1:
            raise InputError(f"{function}({name}={value!r}): {name} is a whole number, at least 1.")
    if rows < parties:
        raise InputError(f"{function}(parties={parties}): every party gets a row, but there are only {rows} rows.")
