"""What may leave a party: releases, declared as public data before anything runs.

The plan, the accounting and the releaser (`consenso.privacy.releaser`) all read the same declaration.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from consenso.arrays import Array
from consenso.errors import InputError
from consenso.problem import Adjacency, Unit

Amount: TypeAlias = float | Array

NOISE_STREAM, COIN_STREAM = 0, 1
HUB = 2**62  # the hub draws as a party that no federation has, the same however many parties there are


_SCOPES = ("record_add_remove", "record_replace_one", "party_add_remove", "party_replace_one")


@dataclass(frozen=True, kw_only=True)
class Bounds:
    """How far a released value can move, by unit and adjacency; one number, or one per party of the cohort.

    Infinite means that no bound is known for that pair, and a guarantee for it is refused.
    """

    record_add_remove: Amount = np.inf
    record_replace_one: Amount = np.inf
    party_add_remove: Amount = np.inf
    party_replace_one: Amount = np.inf

    def __post_init__(self) -> None:
        # Equal parties share one number, so that equal declarations compare and hash equal.
        for name in _SCOPES:
            value = getattr(self, name)
            if isinstance(value, np.ndarray) and value.size and (value == value.flat[0]).all():
                value = float(value.flat[0])
            if not (value >= 0 if isinstance(value, float | int) else (value >= 0).all()):
                raise InputError(f"Bounds({name}=...): a bound is a number from 0 to infinity.")
            object.__setattr__(self, name, value)

    @classmethod
    def of_contributions(
        cls, *, record: Amount = np.inf, party: Amount = np.inf, rounding: float = 0.0, opposed: bool = True
    ) -> Bounds:
        """Bounds of a sum in which one record (one party) contributes a vector of at most this length.

        Adding or removing moves the sum by one contribution, replacing by two, or where no two contributions are
        `opposed` (their inner products are not negative) by sqrt 2; `rounding` is what the rounding errors of the sum
        in two neighbouring worlds add.
        """
        apart = 2.0 if opposed else math.sqrt(2)
        return cls(
            record_add_remove=record + rounding,
            record_replace_one=apart * record + rounding,
            party_add_remove=party + rounding,
            party_replace_one=apart * party + rounding,
        )

    def at(self, unit: Unit, adjacency: Adjacency) -> Amount:
        """The bound for a unit and an adjacency. A party's bound always covers each of its records."""
        party = self.party_add_remove if adjacency == "add-remove" else self.party_replace_one
        if unit == "party":
            return party
        record = self.record_add_remove if adjacency == "add-remove" else self.record_replace_one
        # Replacing one record of a party is one way of replacing the party's data. Removing one record is not removing
        # the party, so a party's add-remove bound says nothing of a record's.
        return np.minimum(record, party) if adjacency == "replace-one" else record

    def scale(self, factor: float) -> Bounds:
        """Bounds of the value times `factor`."""
        return Bounds(
            record_add_remove=self.record_add_remove * factor,
            record_replace_one=self.record_replace_one * factor,
            party_add_remove=self.party_add_remove * factor,
            party_replace_one=self.party_replace_one * factor,
        )


def sum_rounding(rows: int, lengths: float) -> float:
    """How much further the floating-point sum of so many rows can move than the exact one, in the 2-norm.

    rows: a public upper bound on their number, over all parties. lengths: one on the sum of their 2-norms. The sum may
    be taken in any order; a row is a product that is rounded, is weighted, and has a coefficient that may be 16 units
    of rounding too long (docs/privacy.md#floating-point-sums).
    """
    errors = (rows + 18) * 2.0**-53
    return 2 * errors / (1 - errors) * lengths


@dataclass(frozen=True, kw_only=True)
class Release:
    """A named value that leaves its trust boundary, with the bound on what one unit can do to it.

    `at` is where its noise belongs: on each party's own value ("party"), or once on the sum over parties ("sum").
    `clip` is enforced by the releaser on each party's value; without it the bound is analytic and `why` is its proof.
    An `adaptive` release names its bound when it is made, as a function of earlier releases; `bounds` and `clip` are
    then multiples of it, so the noise is a fixed multiple and the cost is known beforehand. `parts` releases split
    one cost: each names its share, and all shares of a run add up to at most one.
    """

    name: str
    bounds: Bounds
    why: str
    size: int  # entries of one party's value
    norm: Literal[1, 2] = 2
    clip: float | None = None
    times: int = 1
    at: Literal["party", "sum"] = "party"
    rate: float = 1.0  # Poisson sampling of the records that enter, hidden
    adaptive: bool = False
    parts: bool = False
    perturbs_objective: bool = False

    def __post_init__(self) -> None:
        if not 0 < self.rate <= 1:
            raise InputError(
                f"Release({self.name!r}, rate={self.rate}): a rate lies in (0, 1]; use 1 for every record."
            )
        if self.clip is not None and not self.clip > 0:
            raise InputError(f"Release({self.name!r}, clip={self.clip}): a clip is positive.")
        if self.parts and self.times > 1:
            raise InputError(f"Release({self.name!r}, parts=True, times={self.times}): one part is made in a round.")
        if self.times < 1 or self.size < 1:
            raise InputError(f"Release({self.name!r}, times={self.times}, size={self.size}): both are at least 1.")
