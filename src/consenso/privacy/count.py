"""A noisy number of records, for whom the number itself is private (docs/privacy.md#noisy-count).

    n~    = n + N(0, s^2)                 one record more or less moves n by 1, another in its place moves it by 0
    n_low = max(n~ - 2 s, 1)              what rules and normalisers use in place of n

It is released before anything else. The whole budget is one mu, fixed before n~ is drawn; the count has a share of it,
and what follows keeps to the rest whatever n~ is. What is promised is that whole mu, which holds for every n~. n_low is
no bound on n, in either direction.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy import special

from consenso.errors import InputError
from consenso.privacy.calibrate import Mu, calibrate_noise
from consenso.privacy.events import Event, Gaussian, Unbounded
from consenso.privacy.noise import GaussianNoise
from consenso.privacy.release import Bounds, Release
from consenso.privacy.releaser import Record, release_alone
from consenso.privacy.samplers import Sampler
from consenso.problem import LARGEST_COUNTED, Adjacency, Unit

# Of the squared budget: at epsilon 1 and delta 1e-5 the count then has a standard deviation of 37 records.
SHARE = 0.01
# Simulated noise is keyed by the round: no run has so many, so that no release of the fit has the noise of the count.
_ROUND = 2**31
_RELEASE = Release(
    name="count",
    size=1,
    bounds=Bounds(record_add_remove=1.0, record_replace_one=0.0),
    why="a record adds one to the number of records (docs/privacy.md#noisy-count)",
)


@dataclass(frozen=True, kw_only=True)
class Count:
    """A number of records that was released with noise.

    mu: what the count and all that follows it cost together under add-remove. excess: by how much their samplers may
    miss their laws in all.
    """

    noise: GaussianNoise
    noisy: float
    mu: float
    excess: float

    def __post_init__(self) -> None:
        if not math.isfinite(self.noisy):
            raise InputError(f"Count(noisy={self.noisy!r}): a noisy count is a finite number.")
        if not 0 < self.mu < math.inf or not 0 <= self.excess < 1:
            raise InputError(
                f"Count(mu={self.mu}, excess={self.excess}): a budget is positive and finite, an excess lies in [0, 1)."
            )

    @property
    def rest(self) -> float:
        """The mu that is left for what follows; a little less, for the rounding of sums of squares."""
        return math.sqrt(1 - SHARE) * self.mu * (1 - 1e-9)

    @property
    def std(self) -> float:
        """Standard deviation of the noise, in records."""
        return float(self.noise.scale(1.0, _ROUND))

    @property
    def low(self) -> int:
        """What rules use in place of the number of records: two standard deviations below the count, at least 1."""
        return max(math.floor(self.noisy - 2 * self.std), 1)

    @property
    def high(self) -> float:
        """A number that the records exceed with a probability of at most half of the excess."""
        return self.noisy - self.std * float(special.ndtri(self.excess / 2))

    def event(self, sampler: Sampler) -> Event:
        """What one record that is added or removed went through in the count."""
        return _event(self.noise, sampler)

    def promise(self, unit: Unit, adjacency: Adjacency) -> Event:
        """What the count and all that follows promise, whatever the count is.

        Replacing a record is removing one and adding another: two steps, and twice mu. Of a party nothing is promised,
        because nothing bounds by how many records a party moves their number.
        """
        if unit == "party":
            return Unbounded("nothing bounds by how many records a party moves their number")
        return Gaussian(1 / self.mu, 1.0 if adjacency == "add-remove" else 2.0, self.excess)


def noise_of_count(mu: float, sampler: Sampler) -> GaussianNoise:
    """The least noise on a count that costs its share of a budget of mu-GDP."""
    target = Mu(mu=math.sqrt(SHARE) * mu)
    found = calibrate_noise(lambda multiplier: _event(GaussianNoise(multiplier=multiplier), sampler), target)
    return GaussianNoise(multiplier=found)


def release_count(rows: int, mu: float, excess: float, sampler: Sampler, record: Record) -> Count:
    """Release a number of rows within its share of a budget."""
    noise = noise_of_count(mu, sampler)
    noisy = release_alone(_RELEASE, np.array([[float(rows)]]), noise, 1.0, _ROUND, sampler, record)
    count = Count(noise=noise, noisy=float(noisy[0, 0]), mu=mu, excess=excess)
    if count.high > LARGEST_COUNTED:
        raise InputError(
            f"records=None: sums over a table whose number of records is private are bounded up to {LARGEST_COUNTED} "
            "records, and the noisy count says that there may be more; pass records=, a public upper bound."
        )
    return count


def _event(noise: GaussianNoise, sampler: Sampler) -> Event:
    return noise.event(1.0, 1.0, _ROUND, sampler, _RELEASE.size)
