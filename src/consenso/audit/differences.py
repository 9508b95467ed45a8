"""What the releases of two worlds differ by: how much of a claim a pair of neighbours uses, whatever the noise does.

Beside each run the attacker computes what the attacked party would have released in either world. Where these exact
values always differ by the same vectors, as they do for linear losses, the noise of every release is known and
independent of the past, so what is learnt by whoever sees each release is their composition, exactly. Where the
differences vary from run to run their largest is what the pair can show at most.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from consenso.arrays import Array
from consenso.audit.neighbours import Neighbours
from consenso.audit.simulate import Watch, follow
from consenso.audit.watchers import Moved
from consenso.errors import InputError
from consenso.planning.plan import Plan
from consenso.privacy import accountants
from consenso.privacy.events import Composed, Event, Nothing
from consenso.privacy.noise import Noise

# Runs of either world along which differences are followed.
RUNS = 8
# Differences that vary by less than this, relative to their size, are one difference.
SAME = 1e-6


@dataclass(frozen=True, kw_only=True)
class Differences:
    """What a pair can show to whoever sees each release: an epsilon, and whether it is exact or at most so much.

    event: the releases with their largest differences. gaps: the noise of each release, and what the worlds differ by
    in its units, where that is always the same.
    """

    epsilon: float
    is_exact: bool
    event: Event
    gaps: tuple[tuple[Noise, Array], ...]


def follow_differences(plan: Plan, pair: Neighbours, watch: Watch, delta: float) -> Differences:
    """Follow a pair along some runs; refuses observers who do not see each release or each sum's own noise."""
    chunks = follow(plan, pair, watch, runs=RUNS)
    if not chunks[0]:
        raise InputError("follow_differences: this observer sees no release by itself, so nothing is followed.")
    # Chunks make the same releases in the same order.
    releases = [replace(same[0], gap=np.concatenate([each.gap for each in same])) for same in zip(*chunks, strict=True)]
    event = Composed(tuple(_event_of(moved) for moved in releases))
    steady = all(_is_steady(moved) for moved in releases)
    gaps = tuple((moved.noise, moved.gap[0]) for moved in releases) if steady else ()
    return Differences(epsilon=accountants.epsilon(event, delta), is_exact=steady, event=event, gaps=gaps)


def _is_steady(moved: Moved) -> bool:
    spread = np.abs(moved.gap - moved.gap[:1]).max(initial=0.0)
    return bool(spread <= SAME * max(float(np.abs(moved.gap).max(initial=0.0)), SAME))


def _event_of(moved: Moved) -> Event:
    """The release with the largest difference that was met."""
    sizes = np.linalg.norm(moved.gap, axis=1)
    most = moved.gap[int(sizes.argmax())]
    if not sizes.max(initial=0.0) > 0:
        return Nothing()
    return moved.noise.event_of_gap(most)
