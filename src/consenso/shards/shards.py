"""The private rows of the parties, checked and bounded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from consenso.arrays import Array, IntArray
from consenso.errors import InputError
from consenso.problem import Problem
from consenso.rows import Layout, Rows
from consenso.shards.cohort import Cohort
from consenso.shards.intake import bound_rows, bound_targets, check_matrix, check_offsets
from consenso.splits import Split, by_party


@dataclass(frozen=True, eq=False, repr=False)
class Shards:
    """Rows and targets of parties of a problem, stacked party after party.

    Rows longer than the problem's row_bound are scaled to it and targets beyond its target_bound are clipped. The table
    is not copied unless it must be, so do not write to it afterwards. Data of one class only are not refused: whether
    they are is private.
    """

    problem: Problem
    parties: IntArray  # the parties of the problem whose rows are here, ascending
    _rows: Rows
    _targets: NDArray[Any]
    _squared_norms: Array
    _scaled_rows: int
    _clipped_targets: int
    _weights: Array | None = None

    @classmethod
    def build(
        cls,
        problem: Problem,
        X: Any,
        targets: ArrayLike,
        offsets: ArrayLike,
        *,
        parties: ArrayLike | None = None,
        weights: Array | None = None,
    ) -> Shards:
        """Shards of a table in which rows offsets[k]:offsets[k + 1] belong to the k-th of `parties`.

        parties: ascending indices into the problem's parties; all of them if left out. A deployed party passes its own.
        weights: of the rows, (rows,), where the problem has weights; those of one unit are at most its weight_bound.
        """
        owner = "Shards.build"
        names = _check_parties(problem, parties, owner)
        matrix = check_matrix(X, problem.features, owner)
        offsets = check_offsets(offsets, matrix.shape[0], names, owner)
        if problem.unit != "person":
            _check_sizes(problem, names, np.diff(offsets), owner)
        _check_weights(problem, weights, matrix.shape[0], owner)
        values, clipped = bound_targets(targets, problem, matrix.shape[0], owner)
        matrix, squared, scaled = bound_rows(matrix, problem.row_bound, owner)
        rows = Rows(matrix, Layout(offsets), problem.outputs)
        return cls(problem, names, rows, values, squared, scaled, clipped, weights)

    @classmethod
    def from_parties(
        cls,
        problem: Problem,
        parts: Sequence[tuple[Any, ArrayLike]],
        *,
        parties: ArrayLike | None = None,
        weights: Array | None = None,
    ) -> Shards:
        """Shards of one table and one list of targets per party; a single table is not copied.

        weights: of all rows in this order, as for `build`.
        """
        names = _check_parties(problem, parties, "Shards.from_parties")
        if len(parts) != len(names):
            raise InputError(
                f"Shards.from_parties(parts=...): one pair of table and targets per party is needed, {len(names)}, but "
                f"{len(parts)} were given."
            )
        tables = [check_matrix(X, problem.features, _party(name)) for name, (X, _) in zip(names, parts, strict=True)]
        targets = [np.asarray(given) for _, given in parts]
        for name, table, given in zip(names, tables, targets, strict=True):
            if given.shape != table.shape[:1]:
                raise InputError(
                    f"{_party(name)}: there is one target per row, {table.shape[0]}, but targets have the shape "
                    f"{given.shape}."
                )
        offsets = np.concatenate(([0], np.cumsum([table.shape[0] for table in tables])))
        if len(tables) == 1:
            return cls.build(problem, tables[0], targets[0], offsets, parties=names, weights=weights)
        compressed = {bool(sparse.issparse(table)) for table in tables}
        if len(compressed) > 1:
            raise InputError(
                "Shards.from_parties(parts=...): tables are all dense or all sparse, but both were given; convert the "
                "dense ones with scipy.sparse.csr_array."
            )
        stacked = sparse.vstack(tables, format="csr") if compressed.pop() else np.concatenate(tables)
        return cls.build(problem, stacked, np.concatenate(targets), offsets, parties=names, weights=weights)

    @classmethod
    def from_table(cls, problem: Problem, X: Any, targets: ArrayLike, party_of_row: ArrayLike | Split) -> Shards:
        """Shards of one table and a party number per row, or a `Split`; rows in the order of parties are not copied."""
        owner = "Shards.from_table"
        split = party_of_row if isinstance(party_of_row, Split) else by_party(party_of_row, problem.parties)
        matrix = check_matrix(X, problem.features, owner)
        given = np.asarray(targets)
        if matrix.shape[0] != split.rows or given.shape != (split.rows,):
            raise InputError(
                f"{owner}: the split has {split.rows} rows, X has {matrix.shape[0]} and targets have the shape "
                f"{given.shape}, but all three have one entry per record."
            )
        if not np.array_equal(split.order, np.arange(split.rows)):
            matrix, given = matrix[split.order], given[split.order]
        return cls.build(problem, matrix, given, split.offsets)

    def __repr__(self) -> str:
        kind = "sparse" if self._rows.is_sparse else "dense"
        return (
            f"Shards({len(self.parties)} of {self.problem.parties} parties, {self.problem.features} features, {kind} "
            f"{self._rows.matrix.dtype})"
        )

    def cohort(self, parties: int | ArrayLike | None = None) -> Cohort:
        """The objectives of some parties, by their indices in the problem; of all that are here if left out.

        Rows that lie side by side are shared, others copied. A party alone gives the same bits wherever it comes from.
        """
        if parties is None:
            return self._everyone
        chosen = np.atleast_1d(np.asarray(parties))
        if chosen.ndim != 1 or chosen.size == 0 or chosen.dtype.kind not in "iu":
            raise InputError("cohort(parties=...): parties are indices, at least one.")
        chosen = chosen.astype(np.int64)
        found = np.minimum(np.searchsorted(self.parties, chosen), len(self.parties) - 1)
        missing = np.flatnonzero(self.parties[found] != chosen)
        if missing.size:
            raise InputError(f"cohort(parties=...): party {chosen[missing[0]]} has no rows here.")
        if np.array_equal(found, np.arange(len(self.parties))):
            return self._everyone
        place = self._rows.layout.place(found)
        weights = None if self._weights is None else self._weights[place]
        rows = self._rows.take(found)
        return Cohort(self.problem, chosen, self._squared_norms[place], rows, self._targets[place], weights)

    @cached_property
    def _everyone(self) -> Cohort:
        return Cohort(self.problem, self.parties, self._squared_norms, self._rows, self._targets, self._weights)

    @property
    def offsets(self) -> IntArray:
        """Where each party's rows begin; private under add-remove."""
        return self._rows.layout.offsets

    def scaled_rows(self) -> int:
        """PRIVATE: how many rows were longer than row_bound; a data holder may look at it, nobody may release it."""
        return self._scaled_rows

    def clipped_targets(self) -> int:
        """PRIVATE: how many targets were beyond target_bound; a data holder may look at it, nobody may release it."""
        return self._clipped_targets


def _party(name: int) -> str:
    return f"Shards.from_parties, party {name}"


def _check_parties(problem: Problem, parties: ArrayLike | None, owner: str) -> IntArray:
    if parties is None:
        return np.arange(problem.parties, dtype=np.int64)
    given = np.asarray(parties)
    fits = given.ndim == 1 and given.size > 0 and given.dtype.kind in "iu"
    if not fits or given[0] < 0 or given[-1] >= problem.parties or np.any(np.diff(given.astype(np.int64)) < 1):
        raise InputError(
            f"{owner}(parties=...): parties are ascending indices in 0..{problem.parties - 1}, each at most once; "
            "leave the argument out for all of them."
        )
    return given.astype(np.int64)


def _check_weights(problem: Problem, weights: Array | None, rows: int, owner: str) -> None:
    if (weights is not None) != problem.is_weighted:
        raise InputError(f"{owner}(weights=...): rows have weights where the problem says so, and only there.")
    if weights is None:
        return
    bound = problem.weight_bound
    if weights.shape != (rows,) or not ((weights >= 0) & (weights <= bound)).all():
        raise InputError(f"{owner}(weights=...): every row has a weight between 0 and {bound:g}, and one has not.")
    # Of one record each row is its own; who has which rows is known to whoever made the weights.
    most = float(problem.sizes.sum()) * bound
    if problem.unit == "person" and problem.capped and (rows > problem.row_cap or weights.sum() > most * (1 + 1e-9)):
        raise InputError(f"{owner}(weights=...): there are more rows or weights than the declared persons can have.")


def _check_sizes(problem: Problem, names: IntArray, sizes: IntArray, owner: str) -> None:
    # Under add-remove the declared sizes are constants that the data need not meet, but may not exceed: what a user can
    # contribute, and the smoothness of a party's objective, are bounded with them.
    many = np.flatnonzero(sizes > problem.sizes[names])
    if problem.adjacency == "add-remove" and problem.capped and many.size:
        name = names[many[0]]
        raise InputError(
            f"{owner}: under add-remove the declared sizes are public upper bounds, but party {name} has more rows "
            f"than the {problem.sizes[name]} declared; declare a larger public size."
        )
    wrong = np.flatnonzero(sizes != problem.sizes[names])
    if problem.adjacency == "replace-one" and wrong.size:
        name = names[wrong[0]]
        raise InputError(
            f"{owner}: under replace-one sizes are public and exact, but party {name} was declared with "
            f"{problem.sizes[name]} rows and has {sizes[wrong[0]]}; declare the sizes that the data have, or use "
            "adjacency='add-remove'."
        )
