"""A problem is a loss, a regularizer and the public facts about the data: everything here may be printed.

The objective is F(x) = mean over parties of f_i(x) + r(x), where f_i(x) = scales[i] * sum over the records of party i
of phi(<row, x>, target). The rows themselves live in `consenso.shards`.
"""

from __future__ import annotations

import math
import numbers
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from consenso.arrays import Array, IntArray
from consenso.conventions import Adjacency as Adjacency
from consenso.conventions import Unit as Unit
from consenso.errors import InputError
from consenso.losses import Loss
from consenso.regularizers import Regularizer

Weighting = Literal["record", "party"]

# Within these, shortening a row to its bound neither underflows nor overflows; with its constant column a row may be
# twice as long.
LEAST_ROW_BOUND, MOST_ROW_BOUND = 1e-9, 1e9
# The most rows of a table whose number is known as a noisy count only: their rounding is part of every bound.
LARGEST_COUNTED = 2**22
# Stands for "no bound" in a fit without privacy; its square is still a number.
NO_BOUND = 1e150


@dataclass(frozen=True, kw_only=True, eq=False)
class Problem:
    """What is minimized and what is public about the data.

    sizes: records of each party, (parties,). Under add-remove these are public upper bounds: a party may hold fewer,
        and the weights do not change.
    row_bound: every row is scaled to this 2-norm if it is longer, the constant column of an intercept included.
    target_bound: regression targets are clipped to [-target_bound, target_bound]; losses of labels have none.
    unit: what one guarantee protects: a record, all records of a person ("person") or all records of a party ("party").
        With persons `sizes` are numbers of persons, and rows have weights that are at most 1 together for a person.
    adjacency: which data sets are neighbours.
    capped: whether no party holds more records than its size. False for a size that is a noisy count, which bounds
        nothing (docs/privacy.md#noisy-count): one party, records, add-remove.
    weight_bound: the most that the weights of one unit's rows are together; rows without weights weigh 1.
    rows_per_unit: the most rows that a unit has.
    weighting: "record" makes the objective the mean over all records, "party" the mean over parties of their means.
    """

    loss: Loss
    regularizer: Regularizer
    features: int
    sizes: IntArray
    row_bound: float
    target_bound: float | None = None
    unit: Unit = "record"
    adjacency: Adjacency = "replace-one"
    weighting: Weighting = "record"
    capped: bool = True
    weight_bound: float = 1.0
    rows_per_unit: int = 1

    def __post_init__(self) -> None:
        if not _is_whole(self.features) or self.features < 1:
            raise InputError(f"Problem(features={self.features!r}): features is a whole number of columns, at least 1.")
        object.__setattr__(self, "features", int(self.features))
        object.__setattr__(self, "sizes", _check_sizes(self.sizes))
        object.__setattr__(self, "row_bound", _check_bound("row_bound", self.row_bound, "a bound on the norm of rows"))
        if not (LEAST_ROW_BOUND <= self.row_bound <= 2 * MOST_ROW_BOUND or self.row_bound >= NO_BOUND):
            raise InputError(
                f"Problem(row_bound={self.row_bound!r}): a bound on the norm of rows lies between {LEAST_ROW_BOUND:g} "
                f"and {MOST_ROW_BOUND:g}; change the units of the columns."
            )
        self._check_target_bound()
        for name, choices in (("unit", Unit), ("adjacency", Adjacency), ("weighting", Weighting)):
            given = getattr(self, name)
            if given not in get_args(choices):
                allowed = " or ".join(repr(choice) for choice in get_args(choices))
                raise InputError(f"Problem({name}={given!r}): {name} is {allowed}.")

        if not self.capped and (self.parties, self.unit == "party", self.adjacency) != (1, False, "add-remove"):
            raise InputError(
                "Problem(capped=False): a size that bounds nothing goes with one party, unit='record' or 'person' and "
                "adjacency='add-remove'; declare sizes that no party exceeds."
            )
        if not 0 < self.weight_bound < math.inf or not _is_whole(self.rows_per_unit) or self.rows_per_unit < 1:
            raise InputError(
                f"Problem(weight_bound={self.weight_bound!r}, rows_per_unit={self.rows_per_unit!r}): weights have a "
                "positive finite bound, and a unit has a whole number of rows."
            )

    def _check_target_bound(self) -> None:
        if self.loss.targets != "real":
            if self.target_bound is not None:
                raise InputError(
                    f"Problem(target_bound={self.target_bound}): the {self.loss.name} loss has labels, which need no "
                    "bound; leave target_bound out."
                )
            return
        if self.target_bound is None:
            raise InputError(
                f"Problem(target_bound=None): the {self.loss.name} loss has real targets, so a public bound on their "
                "size is needed; pass target_bound=, the largest size that a target may have."
            )
        bound = _check_bound("target_bound", self.target_bound, "a bound on the size of targets")
        object.__setattr__(self, "target_bound", bound)

    @property
    def parties(self) -> int:
        """How many parties the federation has."""
        return len(self.sizes)

    @property
    def is_weighted(self) -> bool:
        """Whether rows have weights."""
        return self.unit == "person" or self.weight_bound != 1

    @property
    def units(self) -> tuple[Unit, ...]:
        """Units that something can be proved for."""
        return ("person",) if self.unit == "person" else ("record", "party")

    @property
    def stated_units(self) -> tuple[Unit, ...]:
        """Units of which a card speaks. All data of the only party are the whole table: nobody asks to hide that."""
        return self.units if self.parties > 1 or self.unit == "party" else self.units[:1]

    @property
    def outputs(self) -> int:
        """Scores per record: the number of classes of softmax, otherwise 1."""
        return self.loss.outputs

    @property
    def dim(self) -> int:
        """Length of a model vector."""
        return self.features * self.outputs

    @cached_property
    def records(self) -> int:
        """Public number of records of all parties together."""
        return int(self.sizes.sum())

    @cached_property
    def most(self) -> Array:
        """The most records that each party may hold, (parties,); infinite where no bound is public."""
        return _frozen(self.sizes.astype(np.float64) if self.capped else np.full(self.parties, np.inf))

    @cached_property
    def row_caps(self) -> IntArray:
        """Public bounds on the rows that each party's sums are rounded over, (parties,).

        Behind a noisy count it is the largest table for which such a count is taken (docs/privacy.md#noisy-count).
        """
        return self.unit_caps * self.rows_per_unit

    @cached_property
    def unit_caps(self) -> IntArray:
        """Public bounds on the records, or persons, that each party's sums are over, (parties,)."""
        return self.sizes if self.capped else np.full(self.parties, LARGEST_COUNTED, dtype=np.int64)

    @cached_property
    def row_cap(self) -> int:
        """The same for all parties together."""
        return int(self.row_caps.sum())

    @cached_property
    def scales(self) -> Array:
        """Weight of one record's loss in its party's objective, (parties,)."""
        if self.weighting == "party":
            return _frozen(1.0 / self.sizes)
        return _frozen(np.full(self.parties, self.parties / self.records))

    @cached_property
    def record_lipschitz(self) -> Array:
        """Lipschitz constant of one record's part in each party's objective, (parties,)."""
        return _frozen(self.scales * self.loss.lipschitz(self.row_bound))

    @cached_property
    def lipschitz(self) -> Array:
        """Lipschitz constants of the parties' objectives, (parties,)."""
        return _frozen(self.most * self.record_lipschitz)

    @cached_property
    def smoothness(self) -> Array:
        """Smoothness constants of the parties' objectives, (parties,); infinite where the loss has kinks."""
        return _frozen(self.scales * self.most * self.loss.smoothness(self.row_bound))

    def _public(self) -> tuple[Any, ...]:
        return (
            *(self.loss, self.regularizer, self.features, self.sizes.tobytes(), self.row_bound),
            *(self.target_bound, self.unit, self.adjacency, self.weighting, self.capped),
            *(self.weight_bound, self.rows_per_unit),
        )

    def __eq__(self, other: object) -> bool:
        return self._public() == other._public() if isinstance(other, Problem) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._public())


def _is_whole(number: Any) -> bool:
    return isinstance(number, numbers.Integral) and not isinstance(number, bool)


def _check_sizes(given: Any) -> IntArray:
    try:
        sizes = np.asarray(given)
    except ValueError:
        sizes = np.empty((0, 0))
    if sizes.ndim != 1 or sizes.size == 0 or sizes.dtype.kind not in "iu":
        raise InputError(
            f"Problem(sizes=...): sizes is a list of whole numbers, the records of each party, but an array of shape "
            f"{sizes.shape} and type {sizes.dtype} was given."
        )
    bad = np.flatnonzero(sizes < 1)
    if bad.size:
        raise InputError(
            f"Problem(sizes=...): every party has at least one record, but party {bad[0]} has size {sizes[bad[0]]}; "
            "leave empty parties out."
        )
    return _frozen(sizes.astype(np.int64))


def _check_bound(name: str, given: Any, meaning: str) -> float:
    if not isinstance(given, int | float | np.integer | np.floating) or not 0 < given < math.inf:
        raise InputError(f"Problem({name}={given!r}): {name} is {meaning}, a positive finite number.")
    return float(given)


def _frozen(array: NDArray[Any]) -> NDArray[Any]:
    array.setflags(write=False)
    return array
