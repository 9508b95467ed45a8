"""The runs that are attacked are the library's own: trial by trial, whatever they are run beside."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tests.selection import IN_FULL, few_settings

from consenso.algorithms import discover
from consenso.algorithms.dp_cd import DPCD
from consenso.audit.copies import Copied, Stacking
from consenso.audit.followers import Shadow, differs
from consenso.audit.neighbours import linear, unkind
from consenso.audit.simulate import Watch, chunk_length, simulate, stacking_of
from consenso.audit.trials import Trials
from consenso.privacy.observers import Eavesdropper
from consenso.privacy.run_spec import PrivacyQuery
from consenso.testing import laws
from consenso.testing.plans import shards_of

SLOW = {"DualAveraging", "GeneralADMM", "ObjectivePerturbation", "PreconditionedFixedPoint"}


class OneHub(DPCD):
    """A definition whose hub takes no other axis in front of its numbers."""

    def combine(self, facts, hub, total):
        assert hub.u.shape == (facts.dim,)
        return super().combine(facts, hub, total)


EXAMPLES = {name: definition.example() for name, definition in discover().items()}
HUBS_ONE_BY_ONE = {"one hub": replace(EXAMPLES["DPCD"], algorithm=OneHub(**vars(EXAMPLES["DPCD"].algorithm)))}
EXAMPLES |= HUBS_ONE_BY_ONE


def played(run: Trials):
    for _ in run.rounds():
        pass
    return run.models()


def plans_of(example, in_full: bool):
    return [made for each in ([example] if in_full else few_settings(example)) for made in laws.settings_of(each)]


@IN_FULL
@pytest.mark.parametrize("name", EXAMPLES)
def test_trial_0_is_the_run_of_the_engine(name: str, in_full: bool) -> None:
    """Every schedule and trust, every way of taking trials together."""
    example = EXAMPLES[name]
    shards = shards_of(example)
    for made in plans_of(example, in_full):
        expected, _ = laws.execute(made, shards)
        alone = played(Trials(made, shards, count=1, seed=7, stacking=Stacking.NOTHING))
        np.testing.assert_array_equal(alone[0], expected)
        stacking = stacking_of(made, shards)
        models = (
            played(Trials(made, shards, count=4, seed=7, stacking=stacking))
            if stacking is not Stacking.NOTHING
            else alone
        )
        np.testing.assert_allclose(models[0], expected, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("name", sorted(set(EXAMPLES) - SLOW))
def test_trials_do_not_depend_on_what_they_are_run_beside(name: str) -> None:
    example = EXAMPLES[name]
    shards, made = shards_of(example), laws.plan_example(example)
    stacking = stacking_of(made, shards)
    assert stacking is (Stacking.PARTIES if name in HUBS_ONE_BY_ONE else Stacking.HUBS)
    together = played(Trials(made, shards, count=6, seed=3, stacking=stacking))
    late = played(Trials(made, shards, count=2, first=4, seed=3, stacking=stacking))
    np.testing.assert_allclose(together[4:], late, rtol=1e-9, atol=1e-10)
    assert np.abs(np.diff(together, axis=0)).max(axis=1).min() > 0 or name == "DistributedADMM"


@pytest.mark.parametrize("name", sorted(SLOW))
def test_definitions_that_take_one_trial_at_a_time(name: str) -> None:
    example = EXAMPLES[name]
    assert stacking_of(laws.plan_example(example), shards_of(example)) is Stacking.NOTHING


@IN_FULL
@pytest.mark.parametrize("name", EXAMPLES)
def test_a_follower_of_the_true_world_computes_what_the_party_did(name: str, in_full: bool) -> None:
    """And whoever follows the other world sends the same message, given the same answers: law 3 again."""
    example = EXAMPLES[name]
    for made in plans_of(replace(example, problem=linear(example.problem)), in_full):
        party = 0
        pair = next(iter(unkind(made.problem, "party", "replace-one", party)))
        stacking = stacking_of(made, pair.one)
        run = Trials(made, pair.one, count=1 if stacking is Stacking.NOTHING else 6, seed=5, stacking=stacking)
        shadows = Shadow(run, pair.zero, party), Shadow(run, pair.one, party)
        moved = 0.0
        for scene in run.rounds():
            place = scene.place_of(party, run.parties)
            trials = np.flatnonzero(place >= 0)
            if not len(trials):
                continue
            steps = [shadow.step(scene, trials, coins_of(scene, run, place[trials])) for shadow in shadows]
            for run_call, zero, one in zip(scene.calls, steps[0].calls, steps[1].calls, strict=True):
                if not run_call.release.perturbs_objective:
                    np.testing.assert_allclose(one.exact, run_call.exact[place[trials]], rtol=1e-7, atol=1e-8)
                    np.testing.assert_array_equal(one.scale, run_call.scale[place[trials]])
                moved = max(moved, float(np.abs(one.exact - zero.exact).max(initial=0.0)))
            for shadow, step in zip(shadows, steps, strict=True):
                assert not differs(step.up, scene.up, place[trials]).any()
                shadow.keep(step)
                shadow.hear(scene)
        assert moved > 1e-3


def coins_of(scene, run, places):
    """The coins that the run drew for the party's own rows."""
    sizes = np.diff(run.offsets)[scene.rows]
    starts = np.cumsum(sizes) - sizes

    def coins(name, toss, counts):
        own = [scene.coins[name][toss][starts[place] : starts[place] + sizes[place]] for place in places]
        return np.concatenate(own)

    return coins


def test_scores_do_not_depend_on_chunks_or_threads(monkeypatch) -> None:
    example = discover()["ConsensusADMM"].example()
    made = laws.plan_example(example)
    pair = next(iter(unkind(made.problem, "party", "replace-one", 0)))
    query = PrivacyQuery(observer=Eavesdropper(), unit="party", adjacency="replace-one", party=0)
    watch = [Watch(query=query, kind="ratio"), Watch(query=query, kind="model")]
    whole = simulate(made, pair, watch, trials=30, seed=1)
    monkeypatch.setattr("consenso.audit.simulate.CHUNK_NUMBERS", 7 * 90)
    assert chunk_length(made, pair.zero, Stacking.HUBS, 30) == 7
    pieces = simulate(made, pair, watch, trials=30, seed=1, workers=2)
    for one, other in zip(whole, pieces, strict=True):
        for first, second in zip(one, other, strict=True):
            np.testing.assert_allclose(first, second, rtol=1e-8, atol=1e-8)


def test_sums_over_trials() -> None:
    rng = np.random.default_rng(0)
    full = Copied(3, np.repeat(np.arange(3), 4))
    values = rng.normal(size=(12, 2))
    np.testing.assert_allclose(full.sums(values), values.reshape(3, 4, 2).sum(axis=1))
    ragged = Copied(4, np.array([0, 0, 2, 3, 3, 3]))
    sums = ragged.sums(values[:6])
    np.testing.assert_allclose(sums[[0, 2, 3]], [values[:2].sum(axis=0), values[2], values[3:6].sum(axis=0)])
    assert not sums[1].any()
    np.testing.assert_array_equal(ragged.repeat_per_row(np.arange(4.0)), [0, 0, 2, 3, 3, 3])
