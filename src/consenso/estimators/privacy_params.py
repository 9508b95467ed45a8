"""The privacy terms of a fit: what was asked for, checked before data are looked at, and completed by public rules."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal, Protocol, get_args

import numpy as np

from consenso.conventions import LARGEST_DELTA, default_delta
from consenso.errors import InputError, PrivacyError
from consenso.privacy.calibrate import EpsilonDelta, Mu, calibrate_noise
from consenso.privacy.count import Count
from consenso.privacy.earlier import Earlier
from consenso.privacy.events import Gaussian, Told, compose
from consenso.privacy.ledger import Ledger
from consenso.privacy.samplers import Safe, Sampler, Seeded
from consenso.problem import Adjacency

# Of delta, for how far samplers may miss their laws in a fit whose budget is one mu; and the least total variation that
# is set aside, which those of a whole fit keep to with room to spare (about 1e-213 by OpenDP's).
EXCESS_SHARE, LEAST_EXCESS = 1e-9, 1e-190


@dataclass(frozen=True, kw_only=True)
class PrivacyParams:
    """What a fit may cost and how it is noised. `records` is the public number that rules divide by.

    counts: no number of records is public, so that a noisy count is released before the fit. `count` is that count;
    until it is there, `records` is 1. seed: of a simulation, None for noise that protects. row_bound, target_bound: as
    declared, or as they were released before the fit; None where there is none. share: of the squared budget, what the
    releases before the fit have; `earlier` are those. unit: of what a guarantee speaks; `records` are numbers of them.
    rows_per_unit, weight_bound: as in Problem. mean_weight: what weights, and penalties with them, were divided by.
    tells: of delta, what is set aside for telling by name what one unit alone has.
    """

    owner: str
    epsilon: float
    delta: float
    adjacency: Adjacency
    records: int
    seed: int | None
    ledger: Ledger | None
    counts: bool = False
    count: Count | None = None
    row_bound: float | None = None
    target_bound: float | None = None
    share: float = 0.0
    earlier: tuple[Earlier, ...] = ()
    unit: Literal["record", "person"] = "record"
    rows_per_unit: int = 1
    weight_bound: float = 1.0
    mean_weight: float = 1.0
    tells: float = 0.0

    @property
    def is_private(self) -> bool:
        """Whether there is a budget at all."""
        return math.isfinite(self.epsilon)

    @property
    def target(self) -> EpsilonDelta | Mu:
        """The budget of the fit; after a count what the count leaves, one mu, whatever the count is."""
        if self.counts:
            return Mu(mu=self.mu if self.count is None else self.count.rest)
        if self.share:
            return Mu(mu=self.mu)
        return EpsilonDelta(epsilon=self.epsilon, delta=self.delta)

    @property
    def mu(self) -> float:
        """The budget of the fit and of a count of its records as one mu; less a little, for the rounding of squares."""
        return self.whole_mu * (math.sqrt(1 - self.share) * (1 - 1e-9) if self.share else 1.0)

    @property
    def whole_mu(self) -> float:
        """The whole budget as one mu."""
        return _mu_of(self.epsilon, self.delta, self.excess, self.tells)

    @property
    def excess(self) -> float:
        """How far the samplers of a fit and its count may miss their laws in all.

        It costs 1 + exp(epsilon) times as much of delta: a fixed part of delta would let no budget grow beyond 20.
        """
        return max(EXCESS_SHARE * self.delta / (1 + math.exp(min(self.epsilon, 700.0))), LEAST_EXCESS)

    @property
    def sampler(self) -> Sampler | None:
        """Where the noise comes from; None where there is none."""
        return None if not self.is_private else Safe() if self.seed is None else Seeded(self.seed)

    def noise_level(self) -> float:
        """The noise that a single mean over all records would need, per unit of what one record can contribute."""
        worlds = 1.0 if self.adjacency == "add-remove" else 2.0
        return calibrate_noise(lambda multiplier: Gaussian(multiplier, worlds), self.target) / self.records


@lru_cache(maxsize=256)
def _mu_of(epsilon: float, delta: float, excess: float, tells: float) -> float:
    """A budget as one mu."""
    asked = EpsilonDelta(epsilon=epsilon, delta=delta)
    return 1 / calibrate_noise(lambda multiplier: compose(Gaussian(multiplier, 1.0, excess), Told(tells)), asked)


class Asked(Protocol):
    """The parameters of an estimator, or of a function, that are about privacy."""

    epsilon: float
    delta: float | None
    adjacency: Adjacency
    records: int | None
    ledger: Ledger | str | Path | None
    random_state: Any


def check_terms(asked: Asked, owner: str) -> None:
    """Refuse an epsilon, delta, adjacency, ledger or seed that cannot be, before any data are looked at."""
    epsilon, delta = asked.epsilon, asked.delta
    if not is_number(epsilon) or not epsilon > 0:
        raise InputError(
            f"{owner}(epsilon={epsilon!r}): epsilon is a number above 0; use float('inf') for a fit without privacy."
        )
    if delta is not None and not (is_number(delta) and 0 < delta < 1):
        raise InputError(
            f"{owner}(delta={delta!r}): a delta lies in (0, 1), far below 1 / records; leave it out for "
            f"min({LARGEST_DELTA:g}, 0.1 / records)."
        )
    if asked.adjacency not in get_args(Adjacency):
        choices = " or ".join(map(repr, get_args(Adjacency)))
        raise InputError(f"{owner}(adjacency={asked.adjacency!r}): neighbouring data sets differ by {choices}.")
    records = asked.records
    if records is not None and not (isinstance(records, int | np.integer) and is_number(records) and records >= 1):
        raise InputError(f"{owner}(records={records!r}): a public number of records is a whole number above 0.")
    if math.isfinite(epsilon) and getattr(asked, "_seed_is_foreign", False):
        raise PrivacyError(
            f"{owner}(random_state=...): the seed was set on an estimator that its owner made without one, as "
            "ensembles and searches of scikit-learn do with their clones, and noise that can be drawn again protects "
            "nobody; give random_state when you make the estimator if this is a simulation, else use what sets no "
            "seed."
        )
    if asked.ledger is None:
        return
    if math.isinf(epsilon):
        raise InputError(
            f"{owner}(epsilon=inf, ledger=...): a fit without privacy cannot be paid for; leave the ledger out."
        )
    if asked.random_state is not None:
        raise PrivacyError(
            f"{owner}(random_state=..., ledger=...): noise that can be drawn again protects nobody, so nothing is "
            "charged for it; leave random_state out, or simulate without a ledger."
        )


def terms_of(asked: Asked, owner: str, rows: int, *, divides: bool = True) -> PrivacyParams:
    """The terms of a fit to so many rows, which are public under replace-one and private under add-remove.

    divides: whether anything but the default delta depends on the number of records.
    """
    private = math.isfinite(asked.epsilon)
    unknown = private and asked.adjacency == "add-remove" and asked.records is None
    records = 1 if unknown else _public_records(asked, owner, rows) if private else rows
    return PrivacyParams(
        owner=owner,
        epsilon=float(asked.epsilon),
        delta=float(default_delta(records) if asked.delta is None else asked.delta),
        adjacency=asked.adjacency,
        records=records,
        seed=read_seed(asked.random_state) if private else None,
        ledger=open_ledger(asked.ledger),
        counts=unknown and divides,
        row_bound=_bound(asked, "row_bound") if private else None,
        target_bound=_bound(asked, "target_bound") if private else None,
    )


def read_seed(random_state: Any) -> int | None:
    """The seed of a simulation; None for noise that protects."""
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(np.iinfo(np.int32).max))
    return None if random_state is None else Seeded(random_state).seed


def open_ledger(ledger: Ledger | str | Path | None) -> Ledger | None:
    """The ledger itself, or that of a path."""
    return Ledger.open(ledger) if isinstance(ledger, str | Path) else ledger


def _public_records(asked: Asked, owner: str, rows: int) -> int:
    declared = asked.records
    if asked.adjacency == "replace-one":
        if declared is not None and declared != rows:
            raise InputError(
                f"{owner}(records={declared}): under replace-one the number of records is public and is that of X, "
                f"{rows}; leave records out, or use adjacency='add-remove'."
            )
        return rows
    if declared is not None and rows > declared:
        raise InputError(
            f"{owner}(records={declared}): under add-remove this is a public upper bound, and X has more rows; "
            "declare a larger number, or leave records out for a noisy count."
        )
    return rows if declared is None else int(declared)


def _bound(asked: Asked, name: str) -> float | None:
    given = getattr(asked, name, None)
    return None if given is None else float(given)


def is_number(value: object) -> bool:
    """Whether a parameter is a number, NaN included."""
    return isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
