"""Law 8: what is drawn has the law that its event states."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from scipy import stats

from consenso.algorithms.shape import Example
from consenso.arrays import Array
from consenso.privacy.door import Sealed, Vault, open_door, open_sum
from consenso.privacy.noise import GaussianNoise, LaplaceNoise, Noise, NoNoise
from consenso.privacy.samplers import Seeded
from consenso.privacy.setting import largest_bounds
from consenso.runtime.plan import Plan
from consenso.testing.plans import planned, silent


def noise_has_its_law(example: Example, *, runs: int = 40) -> None:
    """Law 8: answers to silenced releases, over their stated scales, follow the stated law (false alarms 1e-5)."""
    for trust in example.trusts:
        standard: dict[str, list[Array]] = {}
        laws: dict[str, Any] = {}
        for seed in range(runs):
            made = planned(example, trust=trust)
            made = replace(
                made,
                setting=replace(
                    made.setting, doorway=replace(made.setting.doorway, sampler=Seeded(seed), probe=silent)
                ),
            )
            for name, noise, drawn, scale in _answers(made, example):
                if isinstance(noise, NoNoise):
                    assert not drawn.any(), f"release {name!r} has no noise and was answered with some"
                    continue
                laws[name] = noise
                standard.setdefault(name, []).append((drawn / scale).ravel())
        for name, pieces in standard.items():
            law = "norm" if isinstance(laws[name], GaussianNoise) else "laplace"
            if isinstance(laws[name], GaussianNoise | LaplaceNoise):
                assert stats.kstest(np.concatenate(pieces), law).pvalue > 1e-5, f"noise of {name!r} under {trust}"


def _answers(made: Plan, example: Example) -> Iterator[tuple[str, Noise, Array, Array]]:
    """What the door answers to zeros in the first round, with the scale that the ledger recorded."""
    setting, facts = made.setting, made.setting.facts.at(0)
    largest = largest_bounds(setting, made.algorithm.releases, 0)
    entries: list[Any] = []
    vault = Vault()
    door, _ = open_door(
        setting.doorway, facts, made.algorithm.releases(facts), largest=largest, vault=vault, record=entries.append
    )
    for release in made.algorithm.releases(facts):
        if release.perturbs_objective:
            drawn: Any = door.perturb(release.name, lambda noise: noise)
        else:
            drawn = door(release.name, np.zeros((len(facts.cohort), release.size)))
        if isinstance(drawn, Sealed):
            shares = vault.take(drawn)
            drawn = open_sum(setting.doorway, facts, shares, largest=largest, record=entries.append)[None, :]
            if setting.doorway.trust == "secure-sum":
                # n shares of V/(n - c - 1) each make up a little more than the recorded V.
                drawn = drawn * np.sqrt(setting.doorway.shares / setting.parties)
        scale = np.broadcast_to(entries[-1].scale, (len(drawn),))[:, None]
        yield release.name, setting.doorway.noise_for(release.name), drawn, scale
