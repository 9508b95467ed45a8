"""Numbers as integers modulo 2^64: the form in which they are masked and summed.

The in-process engine adds in this form too where the trust is a secure sum, though it masks nothing: integers give the
same sum in any order, so that a simulation and a deployment of one seed agree to the last bit.

A value is a whole number of steps of a public grid. For a release with discrete noise it is the grid of that noise
(`Sampler.grid`): value and noise share are whole numbers of steps already, so nothing is rounded here and the sum of
what the parties hold is exact. A seeded simulation has no grid: its values are rounded to the finest one on which the
largest possible sum still fits. What a party perturbs itself and then works on lies on no grid either, and no
declaration bounds it: it is written in two words, coarse and fine, which lose nothing that a double has.

A sum beyond 2^63 steps would come out wrong, never leak: what is opened is a function of the exact integer sum. `check`
refuses a plan whose public bounds do not rule it out.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from consenso.arrays import Array
from consenso.errors import PreconditionError, PrivacyError
from consenso.privacy.declarations import Declaration
from consenso.privacy.release import Release
from consenso.privacy.releaser import SumTerm
from consenso.privacy.run_spec import RunSpec, largest_bounds

Words = NDArray[np.uint64]  # integers modulo 2^64

_CAPACITY = 2.0**63  # sums lie strictly between minus and plus this many steps
# Noise beyond this many standard deviations has a probability below 1e-300.
_FARTHEST = 40.0
# What parties perturb themselves is bounded by no declaration; this many times its sensitivity and noise fit.
_HEADROOM = 2.0**24
# The coarse word counts this many fine steps.
_FINE = 2.0**40


@dataclass(frozen=True, kw_only=True)
class GridColumn:
    """A field of a message in a sum: its name, the shape of one party's value, the step of its grid, words a value."""

    name: str
    shape: tuple[int, ...]
    grid: float
    words: Literal[1, 2] = 1

    @property
    def size(self) -> int:
        """How many words it has."""
        return self.words * math.prod(self.shape)


def encode(values: Array, column: GridColumn) -> Words:
    """Values as whole steps modulo 2^64, flat; coarse ones first where a value has two words."""
    flat = np.asarray(values, dtype=np.float64).ravel()
    return _modular(flat, column.grid) if column.words == 1 else encode_rows(flat[None, :], column)[0]


def encode_rows(values: Array, column: GridColumn) -> Words:
    """What `encode` gives for each row of values (parties, ...), as (parties, size)."""
    rows = np.asarray(values, dtype=np.float64).reshape(len(values), math.prod(column.shape))
    if column.words == 1:
        return _modular(rows, column.grid)
    coarse = column.grid * _FINE
    with np.errstate(over="ignore", invalid="ignore"):
        rest = rows - np.rint(rows / coarse) * coarse  # exact: both are multiples of the value's last bit
    return np.concatenate([_modular(rows, coarse), _modular(rest, column.grid)], axis=1)


def decode(words: Words, column: GridColumn) -> Array:
    """Sums (..., size) of a column as numbers; exact below 2^53 steps, rounded once where a value has two words."""
    steps = words.view(np.int64).astype(np.float64)
    if column.words == 1:
        found = steps * column.grid
    else:
        coarse, fine = np.split(steps, 2, axis=-1)
        found = coarse * (column.grid * _FINE) + fine * column.grid
    return found.reshape((*words.shape[:-1], *column.shape))


def _modular(values: Array, step: float) -> Words:
    with np.errstate(over="ignore"):
        steps = values / step
        np.rint(steps, out=steps)
    largest = float(np.abs(steps).max(initial=0.0))
    if not math.isfinite(largest):
        raise PrivacyError("secure sum: a value that is not finite cannot be summed; check the step.")
    if largest < _CAPACITY:
        return steps.astype(np.int64).view(np.uint64)
    # fmod is exact, and the conversion of what is left to a word never overflows.
    steps = np.fmod(steps, 2.0**64)
    negative = steps < 0
    words = np.abs(steps).astype(np.uint64)
    words[negative] = np.uint64(0) - words[negative]
    return words


class Grids:
    """The grids of one round's sums: of contributions, and of what parties perturbed themselves."""

    def __init__(self, spec: RunSpec, declaration: Declaration, round_: int) -> None:
        self._spec, self._round = spec, round_
        self._largest = largest_bounds(spec, declaration, round_)
        # Those of the whole federation: what a cohort declares has the bounds of its own members.
        everyone = spec.representatives().at(round_)
        self._releases = {release.name: release for release in spec.remember(declaration)(everyone)}

    def check(self) -> None:
        """Refuse a round whose sums may not fit into 64 bits."""
        for name, release in self._releases.items():
            if release.at != "sum":
                continue
            if not math.isfinite(_contribution(release)):
                raise PreconditionError(
                    f"secure sum: no public bound on a whole contribution to {name!r} is known, so its sum may not fit "
                    "into 64 bits; clip it."
                )
            # A bound that is named later scales value, noise and grid alike, up to the rounding of the grid to a power
            # of two.
            steps = self.reach(name, 1.0, 1.0, self._spec.parties) / self.contribution(name, 1.0, 1.0)
            if steps * (2 if release.adaptive else 1) >= _CAPACITY:
                raise PreconditionError(
                    f"secure sum: a sum of {name!r} over {self._spec.parties} parties can reach {steps:.3g} steps of "
                    f"the grid of its noise, and {_CAPACITY:.3g} fit into 64 bits; use fewer records or a clip."
                )

    def contribution(self, name: str, bound: float, share: float) -> float:
        """The grid of the contributions to a release, with the bound and the share that they name.

        It is that of the noise shares, or the finest on which the largest sum fits.
        """
        scale, sensitivity = self._share(name, bound, share)
        grid = self._spec.sampler.grid(scale, sensitivity, self._releases[name].size)
        return grid or _finest(self.reach(name, bound, share, self._spec.parties))

    def reach(self, name: str, bound: float, share: float, parties: int) -> float:
        """The largest sum of so many contributions: each at its bound, and noise that nobody will ever see."""
        scale, _ = self._share(name, bound, share)
        return parties * _contribution(self._releases[name]) * bound + _FARTHEST * math.sqrt(parties) * scale

    def own(self) -> float:
        """The fine grid of what parties perturbed themselves and worked on: far below the last bits of its noise.

        A column of it has two words.
        """
        reach = 0.0
        for name in self._releases:
            scale = float(np.max(self._spec.noise_for(name).scale(self._largest[name], self._round)))
            reach += self._largest[name] + scale
        return _finest(self._spec.parties * _HEADROOM * reach) / _FINE

    def column(self, name: str, value: Array, part: SumTerm | None) -> GridColumn:
        """How a field (parties, ...) is summed; `part` where it is a contribution to a release."""
        if part is None:
            return GridColumn(name=name, shape=value.shape[1:], grid=self.own(), words=2)
        grid = self.contribution(part.release.name, part.bound, part.share)
        return GridColumn(name=name, shape=value.shape[1:], grid=grid)

    def _share(self, name: str, bound: float, share: float) -> tuple[float, float]:
        """Scale and sensitivity of a noise share, as the releaser draws it."""
        sensitivity = float(self._largest[name] * bound / np.sqrt(share))
        noise = self._spec.noise_for(name).split(self._spec.shares)
        return float(noise.scale(sensitivity, self._round)), sensitivity


def grids_of(spec: RunSpec, declaration: Declaration, round_: int) -> Grids | None:
    """The grids of a round's sums where they are taken in whole steps; None for another trust.

    None too for a plan whose sums may go over: those who mask refuse it, and in one process it is simulated as it is.
    """
    if not spec.mode.sums_in_steps:
        return None
    grids = Grids(spec, declaration, round_)
    try:
        grids.check()
    except PreconditionError:
        return None
    return grids


def check(spec: RunSpec, declaration: Declaration) -> None:
    """Refuse a plan whose sums may not fit into 64 bits, or whose noise does not come in shares."""
    seen, declaration = set(), spec.remember(declaration)
    for round_ in range(spec.rounds):
        releases = declaration(spec.representatives().at(round_))
        scales = tuple(spec.noise_for(release.name).scale(1.0, round_) for release in releases)
        if (releases, scales) in seen:
            continue
        seen.add((releases, scales))
        Grids(spec, declaration, round_).check()


def _contribution(release: Release) -> float:
    """The largest value of one party, with a bound of 1."""
    analytic = float(np.max(release.bounds.party_add_remove))
    return analytic if release.clip is None else min(analytic, release.clip)


def _finest(reach: float) -> float:
    """The smallest power of two that is more than twice the reach over the capacity."""
    return math.ldexp(1.0, math.frexp(reach * 4.0 / _CAPACITY)[1]) if reach else 1.0
