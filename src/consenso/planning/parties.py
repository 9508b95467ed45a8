"""Which parties stand for the others, so that a guarantee is proved for few and holds for all."""

from __future__ import annotations

import numpy as np

from consenso.arrays import IntArray
from consenso.privacy.declarations import Declaration
from consenso.privacy.run_spec import RunSpec, stretches
from consenso.schedules import Cyclic, RandomStopping, is_fair


def find_representatives(spec: RunSpec, declaration: Declaration) -> IntArray:
    """Parties such that whatever holds for all of these holds for everybody."""
    schedule = spec.schedule
    if spec.mode.has_open_tree:
        return spec.facts.cohort  # how many hide a node depends on its place in the tree
    if isinstance(schedule, Cyclic | RandomStopping):
        return _find_in_turn(spec, declaration)
    return spec.facts.classes() if is_fair(schedule) else spec.facts.cohort


def _find_in_turn(spec: RunSpec, declaration: Declaration) -> IntArray:
    """A fixed order tells equal parties apart.

    Parties that are alike and have the same number of turns have them one after the other, so that whatever grows
    or falls with the round (the cost of a turn, the iterations after it) is largest for the first or for the last
    of them. Where the cost does neither, everybody counts.
    """
    facts, rounds = spec.facts, spec.rounds
    if not _costs_are_monotone(spec, declaration):
        return facts.cohort
    chosen = set(facts.classes().tolist())
    once_more = np.arange(facts.parties) < rounds % facts.parties
    for first in facts.classes():
        alike = np.isin(facts.cohort, find_alike(spec, int(first)))
        for group in (alike & once_more, alike & ~once_more):
            chosen.update(np.flatnonzero(group)[[0, -1]].tolist() if group.any() else [])
    return np.array(sorted(chosen), dtype=np.int64)


def _costs_are_monotone(spec: RunSpec, declaration: Declaration) -> bool:
    """Whether all rounds make the same releases, and all noises fall, or all rise, or stay."""
    found = stretches(spec, 0, declaration)
    if len({stretch.releases for stretch in found}) > 1:
        return False
    steps = np.diff(np.array([stretch.multipliers for stretch in found]), axis=0)
    return bool((steps >= 0).all() or (steps <= 0).all())


def find_alike(spec: RunSpec, party: int) -> IntArray:
    """The parties that no public fact tells from this one."""
    facts = spec.facts
    columns = [facts.sizes.astype(float), facts.scales]
    if facts.degrees is not None:
        columns.append(facts.degrees.astype(float))
    table = np.stack(columns, axis=1)
    return np.flatnonzero((table == table[party]).all(axis=1))


def find_outsider(spec: RunSpec, party: int, insiders: frozenset[int]) -> int | None:
    """A party of the same kind that does not look on."""
    if party not in insiders:
        return party
    others = [int(other) for other in find_alike(spec, party) if int(other) not in insiders]
    return others[0] if others else None
