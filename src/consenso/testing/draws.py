"""Law 8: what is drawn has the law that its event states."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from scipy import stats

from consenso.algorithms.shape import Example
from consenso.arrays import Array
from consenso.planning.plan import Plan
from consenso.privacy.noise import GaussianNoise, LaplaceNoise, Noise, NoNoise
from consenso.privacy.releaser import SumTerm, open_releaser, open_sum
from consenso.privacy.run_spec import largest_bounds
from consenso.privacy.samplers import Seeded
from consenso.testing.plans import plan_example, silent


def noise_has_its_law(example: Example, *, runs: int = 40) -> None:
    """Law 8: answers to silenced releases, over their stated scales, follow the stated law (false alarms 1e-5)."""
    for trust in example.trusts:
        standard: dict[str, list[Array]] = {}
        laws: dict[str, Any] = {}
        planned = plan_example(example, trust=trust)
        for seed in range(runs):
            for name, noise, drawn, scale in _answers(replace(planned, sampler=Seeded(seed), probe=silent)):
                if isinstance(noise, NoNoise):
                    assert not drawn.any(), f"release {name!r} has no noise and was answered with some"
                    continue
                laws[name] = noise
                standard.setdefault(name, []).append((drawn / scale).ravel())
        for name, pieces in standard.items():
            law = "norm" if isinstance(laws[name], GaussianNoise) else "laplace"
            if isinstance(laws[name], GaussianNoise | LaplaceNoise):
                assert stats.kstest(np.concatenate(pieces), law).pvalue > 1e-5, f"noise of {name!r} under {trust}"


def _answers(made: Plan) -> Iterator[tuple[str, Noise, Array, Array]]:
    """What the releaser answers to zeros in the first round, with the scale that the ledger recorded."""
    facts = made.facts.at(0)
    largest = largest_bounds(made, made.algorithm.releases, 0)
    entries: list[Any] = []
    releaser, _ = open_releaser(made, facts, made.algorithm.releases(facts), largest=largest, record=entries.append)
    for release in made.algorithm.releases(facts):
        if release.perturbs_objective:
            drawn: Any = releaser.perturb(release.name, lambda noise: noise)
        else:
            drawn = releaser(release.name, np.zeros((len(facts.cohort), release.size)))
        if isinstance(drawn, SumTerm):
            drawn = open_sum(made, facts, drawn, largest=largest, record=entries.append)[None, :]
            if made.mode.sums_in_steps:
                # n shares of V/(n - c - 1) each make up a little more than the recorded V.
                drawn = drawn * np.sqrt(made.shares / made.parties)
        scale = np.broadcast_to(entries[-1].scale, (len(drawn),))[:, None]
        yield release.name, made.noise_for(release.name), drawn, scale
