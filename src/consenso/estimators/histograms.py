"""Histograms that are released by themselves, for `private_bounds` and `PrivateScaler`.

A record has k numbers (columns, or its length and the size of its target), and adds one to one bin of each of k
histograms: adding or removing it moves the counts by sqrt(k) in the 2-norm, replacing it by sqrt(2k), because no more
than one count of each histogram falls and one rises. The counts leave through the releaser with Gaussian noise.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from consenso.arrays import Array
from consenso.estimators.count_claims import CountClaims
from consenso.estimators.fitting import bare_card, bare_guarantee
from consenso.estimators.privacy_params import PrivacyParams
from consenso.estimators.quantiles import SIGNED_EDGES, count_exactly, search
from consenso.estimators.stages import Stages
from consenso.planning.replan import compare_all
from consenso.privacy.card import Card
from consenso.privacy.earlier import Earlier
from consenso.privacy.guarantee import Guarantee
from consenso.privacy.noise import GaussianNoise
from consenso.problem import Adjacency

HISTOGRAMS = "histograms"  # what a card says the algorithm is
# Replacing a record moves counts by so much more than adding one: a count of each histogram falls, and another rises.
REPLACED = math.sqrt(2.0)


@dataclass(frozen=True, kw_only=True)
class Ranges:
    """Quantiles (low, high) of several numbers of each record, each (quantities,); claims: None without noise."""

    low: Array
    high: Array
    claims: CountClaims | None
    adjacency: Adjacency
    delta: float

    @property
    def guarantee(self) -> Guarantee:
        """For whoever sees them."""
        return bare_guarantee(self.adjacency) if self.claims is None else self.claims.prove()

    @property
    def count_noise(self) -> float:
        """Standard deviation of the noise on every count."""
        return 0.0 if self.claims is None else self.claims.scale

    @cached_property
    def card(self) -> Card:
        if self.claims is not None:
            return self.claims.card
        return bare_card(HISTOGRAMS, {"adjacency": self.adjacency}, self.delta)


def find_ranges(
    values: Array, tails: tuple[float, float], terms: PrivacyParams, *, ranges: Array | None, positive: bool
) -> Ranges:
    """Noisy quantiles of each column of values (records, quantities); the quantiles themselves without a budget.

    ranges: public (quantities, 2), within which values are clipped; None searches powers of two. positive: values are
    at least 0, and so is every low.
    """
    if not terms.is_private:
        low, high = np.quantile(np.asarray(values, dtype=np.float64), tails, axis=0)
        return Ranges(low=low, high=high, claims=None, adjacency=terms.adjacency, delta=terms.delta)
    assert terms.sampler is not None
    quantities, times = values.shape[1], 2 if ranges is None else 1
    stages = Stages(terms)
    what = f"histograms of {quantities} numbers, {times} stages"
    with stages.reserve(1.0, what, replaced=REPLACED):
        planned = stages.plan(1.0, **_count_of(quantities, times))
        found = search(
            lambda stage, edges: stages.release(planned, stage, count_exactly(values, edges)),
            planned.scale(terms.adjacency),
            quantities,
            tails,
            ranges=ranges,
            positive=positive,
        )
    claims = _claim(planned, quantities, terms.adjacency, terms.delta, simulation=not terms.sampler.private)
    return Ranges(low=found.low, high=found.high, claims=claims, adjacency=terms.adjacency, delta=terms.delta)


def differences(card: Card) -> list[str]:
    """Entries of a card of histograms that its own parameters do not give; empty when all follow."""
    told: dict[str, Any] = {**card.parameters, **card.data}
    noise = GaussianNoise(multiplier=told["noise"]["multiplier"])
    planned = Earlier(noise=noise, **_count_of(told["quantities"], told["stages"]))
    again = _claim(planned, told["quantities"], told["adjacency"], card.delta, simulation=card.simulation)
    return compare_all(card, again.card)


def _claim(planned: Earlier, quantities: int, adjacency: Adjacency, delta: float, *, simulation: bool) -> CountClaims:
    return CountClaims(
        algorithm=HISTOGRAMS,
        why="A record adds one to one bin of each histogram (docs/estimators.md#private-bounds).",
        planned=planned,
        adjacency=adjacency,
        delta=delta,
        simulation=simulation,
        parameters={"stages": planned.times},
        data={"quantities": quantities},
    )


def _count_of(quantities: int, times: int) -> dict[str, Any]:
    """What is counted, and how far a record moves it."""
    return {
        "name": "counts",
        "add_remove": math.sqrt(quantities),
        "replace_one": REPLACED * math.sqrt(quantities),
        "size": quantities * (len(SIGNED_EDGES) + 1),
        "times": times,
    }
