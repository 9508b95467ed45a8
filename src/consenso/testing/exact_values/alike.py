"""Schedules whose coins matter only as far as they are about the attacked party.

Where the other parties contribute nothing, keep nothing and draw no noise of their own that shows, the final model does
not depend on which of them took part. Then the coins of a schedule fall in as many ways as the attacked party can take
part, which can be enumerated. That the others are alike is tried on the plan itself, not declared.
"""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np

from consenso.arrays import Array
from consenso.audit.neighbours import Neighbours
from consenso.planning.plan import Plan
from consenso.schedules import ROUND, FixedSubset, Independent, PoissonSubset, RandomWalk
from consenso.testing.exact_values.observed import observe, record_runs
from consenso.testing.exact_values.scripted import Script, Scripted

# Ways in which the attacked party can take part; whole scripts that are compared with them.
MOST_WAYS, COMPARED = 256, 4
SAME = 1e-9


def own_scripts(plan: Plan, attacked: int) -> list[tuple[float, Script]]:
    """All that the attacked party's coins can be, each with its probability; empty where they are too many."""
    law = plan.schedule.participation(attacked, plan.rounds, plan.parties)
    if not isinstance(law, Independent) or 2**plan.rounds > MOST_WAYS:
        return []
    found, chance = [], law.rate
    for bits in itertools.product((True, False), repeat=plan.rounds):
        likely = float(np.prod([chance if bit else 1 - chance for bit in bits]))
        found.append((likely, {(k, ROUND): _coins(plan, attacked, bit) for k, bit in enumerate(bits)}))
    return found


def others_are_alike(plan: Plan, attacked: int, pair: Neighbours) -> bool:
    """Whether the final model is the same whoever of the others took part, for some scripts and the same noise."""
    rng, recorded = np.random.default_rng(0), record_runs(plan)
    for _ in range(COMPARED):
        bits = rng.random(plan.rounds) < 0.5
        noise = rng.standard_normal(1 << 12)
        models = []
        for shuffled in (None, rng):
            script = {(k, ROUND): _coins(plan, attacked, bool(bit), shuffled) for k, bit in enumerate(bits)}
            models.append(_model(recorded, attacked, pair, script, noise))
        if not np.allclose(models[0], models[1], rtol=SAME, atol=SAME):
            return False
    return True


def _model(plan: Plan, attacked: int, pair: Neighbours, script: Script, noise: Array) -> Array:
    sampler = Scripted(script, attacked)
    sampler.noise = noise
    return observe(replace(plan, sampler=sampler), pair.one).values[-1].value


def _coins(plan: Plan, attacked: int, inside: bool, rng: np.random.Generator | None = None) -> list[float]:
    """Coins of a round by which the attacked party takes part or not, and the others as drawn, or the first of them."""
    schedule, parties = plan.schedule, plan.parties
    others = np.array([party for party in range(parties) if party != attacked])
    if rng is not None:
        others = rng.permutation(others)
    if isinstance(schedule, RandomWalk):
        return [((attacked if inside else others[0]) + 0.5) / parties]
    if isinstance(schedule, FixedSubset):
        chosen = others[: schedule.size - inside]
    else:
        assert isinstance(schedule, PoissonSubset)
        chosen = others if rng is None else others[rng.random(len(others)) < schedule.rate]
    there = {*chosen.tolist(), *([attacked] if inside else [])}
    return [0.0 if party in there else 1.0 for party in range(parties)]
