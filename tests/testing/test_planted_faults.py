"""The laws have teeth: each planted fault is caught by the law that should catch it."""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace

import numpy as np
import pytest

from consenso.algorithms.consensus import ConsensusADMM, Hub, State, Up
from consenso.algorithms.dual_consensus import DualConsensusADMM
from consenso.algorithms.dual_consensus import Up as DualUp
from consenso.errors import UndeclaredReleaseError
from consenso.privacy.release import Bounds
from consenso.schedules import Everyone, PoissonSubset
from consenso.subproblems import certify
from consenso.testing import laws


def small(cls, **changes):
    """The example of a faulty algorithm, in one setting so that it fails quickly."""
    example = ConsensusADMM.example()
    return replace(example, algorithm=cls(step=0.5), schedules=(Everyone(),), trusts=("local",), **changes)


def prox(algorithm, down, state, f):
    solved = f.prox(2 * down.z - state.u, algorithm.step, algorithm.tolerance)
    return certify(solved, algorithm.tolerance, "a faulty algorithm")


class CompilesAnotherRelaxation(ConsensusADMM):
    def compile_rounds(self, facts, records):
        return replace(self, relaxation=0.9 * self.relaxation).parent_rounds(facts, records)

    def parent_rounds(self, facts, records):
        return ConsensusADMM.compile_rounds(self, facts, records)


class DrawsNoiseAndForgetsIt(ConsensusADMM):
    def local(self, facts, down, state, f, releaser):
        residual = prox(self, down, state, f) - down.z
        releaser("residual", residual)
        increment = 2 * self.relaxation * residual
        return State(u=state.u + increment), Up(increment=increment)


class BalancesResiduals(ConsensusADMM):
    def local(self, facts, down, state, f, releaser):
        residual = prox(self, down, state, f) - down.z
        long = np.linalg.norm(residual, axis=1, keepdims=True) > 0.2
        relaxation = np.where(long, self.relaxation / 2, self.relaxation)
        increment = 2 * relaxation * releaser("residual", residual)
        return State(u=state.u + increment), Up(increment=increment)


class LogsItsData(ConsensusADMM):
    def local(self, facts, down, state, f, releaser):
        logging.getLogger("consenso").info("objective %s", f.value(down.z).sum())
        return super().local(facts, down, state, f, releaser)


@dataclass(frozen=True)
class ChattyUp:
    increment: np.ndarray
    objective: np.ndarray


class SendsOneNumberMore(ConsensusADMM):
    def local(self, facts, down, state, f, releaser):
        after, up = super().local(facts, down, state, f, releaser)
        return after, ChattyUp(increment=up.increment, objective=f.value(down.z)[:, None])


FAULTS = (DrawsNoiseAndForgetsIt, BalancesResiduals, LogsItsData, SendsOneNumberMore)


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__)
def test_what_leaves_beside_the_door_breaks_non_interference(fault) -> None:
    with pytest.raises(AssertionError, match="depends on the data"):
        laws.non_interference(small(fault))


def test_the_sound_algorithm_passes_where_the_faults_fail() -> None:
    laws.non_interference(small(ConsensusADMM))


class ReadsItsScaleFromTheData(ConsensusADMM):
    """Paper 003, equation 20: the noise follows a norm measured on the records."""

    measured = 0.0

    def local(self, facts, down, state, f, releaser):
        type(self).measured = float(np.abs(f.gradient(down.z)).max())
        return super().local(facts, down, state, f, releaser)

    def releases(self, facts):
        (release,) = super().releases(facts)
        scale = type(self).measured or 1.0
        return (replace(release, bounds=Bounds(party_replace_one=scale, record_replace_one=scale)),)


def test_a_scale_read_from_the_data_breaks_non_interference() -> None:
    with pytest.raises(AssertionError, match="depends on the data"):
        laws.non_interference(small(ReadsItsScaleFromTheData))


class HalvesItsSensitivity(ConsensusADMM):
    def releases(self, facts):
        (release,) = super().releases(facts)
        return (replace(release, bounds=release.bounds.scale(0.4)),)


def test_a_sensitivity_that_is_too_small_is_measured() -> None:
    with pytest.raises(AssertionError, match="moved by"):
        laws.check_sensitivity(small(HalvesItsSensitivity))


class PrintedRecursion(ConsensusADMM):
    """The paper's zhat <- z + mean of the increments, which forgets what the regularizer did."""

    def combine(self, facts, hub, total):
        mean = hub.z + total.increment / facts.parties
        return Hub(mean=mean, z=facts.problem.regularizer.prox(mean, self.step))


def test_the_printed_recursion_misses_the_optimum() -> None:
    with pytest.raises(AssertionError, match="optimum"):
        laws.reaches_optimum(small(PrintedRecursion, exact=PrintedRecursion(step=8.0), regularizers=()))


class DividesByTheSample(DualConsensusADMM):
    """|S| as a normaliser: how many took part, which only the parties' own messages could tell the hub."""

    def local(self, facts, down, state, f, releaser):
        after, up = super().local(facts, down, state, f, releaser)
        return after, CountedUp(dual=up.dual, count=np.ones((len(facts.cohort), 1)))

    def combine(self, facts, hub, total):
        scaled = total.dual * facts.expected_parties / max(1.0, float(total.count[0]))
        return super().combine(facts, hub, DualUp(dual=scaled))


@dataclass(frozen=True)
class CountedUp:
    dual: np.ndarray
    count: np.ndarray


def test_a_count_of_the_sample_is_seen_in_the_messages() -> None:
    example = replace(
        DualConsensusADMM.example(),
        algorithm=DividesByTheSample(level="party", step=0.5),
        schedules=(PoissonSubset(0.5),),
        trusts=("curator",),
    )
    with pytest.raises(AssertionError, match="is not a release"):
        laws.messages_are_releases(example)


class ReleasesOnceMore(ConsensusADMM):
    def local(self, facts, down, state, f, releaser):
        releaser("residual", np.zeros((len(facts.cohort), facts.dim)))
        return super().local(facts, down, state, f, releaser)


class ReleasesWhenItLikes(ConsensusADMM):
    def local(self, facts, down, state, f, releaser):
        zero = np.zeros((len(facts.cohort), facts.dim))
        return state, Up(increment=zero)


@pytest.mark.parametrize(("fault", "message"), [(ReleasesOnceMore, "one more"), (ReleasesWhenItLikes, "made 0 time")])
def test_extra_and_missing_releases_raise(fault, message: str) -> None:
    with pytest.raises(UndeclaredReleaseError, match=message):
        laws.engines_agree(small(fault))


class TwiceTheNoiseThatItStates(ConsensusADMM):
    def releases(self, facts):
        (release,) = super().releases(facts)
        return (replace(release, bounds=release.bounds.scale(2.0 if type(self).drawing else 1.0)),)

    drawing = False

    def local(self, facts, down, state, f, releaser):
        type(self).drawing = not type(self).drawing
        return super().local(facts, down, state, f, releaser)


def test_a_ledger_that_differs_from_the_plan_is_seen() -> None:
    with pytest.raises(AssertionError, match="scale of"):
        laws.ledger_equals_plan(small(TwiceTheNoiseThatItStates))


def test_compiled_rounds_that_are_not_the_plain_ones() -> None:
    laws.compiled_rounds_agree(small(ConsensusADMM))
    with pytest.raises(AssertionError, match=r"hub\."):
        laws.compiled_rounds_agree(small(CompilesAnotherRelaxation))
