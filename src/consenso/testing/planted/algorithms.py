"""Faulty algorithms that a law catches without an attack."""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from typing import Any, ClassVar, cast

import numpy as np

from consenso.algorithms.consensus import ConsensusADMM, Hub, State, Up
from consenso.algorithms.dp_sgd import DPSGD
from consenso.algorithms.dp_sgd import Up as GradientUp
from consenso.algorithms.dual_consensus import DualConsensusADMM
from consenso.algorithms.dual_consensus import Up as DualUp
from consenso.algorithms.shape import Example
from consenso.arrays import Array
from consenso.errors import MessageError
from consenso.schedules import Everyone
from consenso.subproblems import certify


def small(cls: Any, **changes: Any) -> Example:
    """The example of a faulty consensus method, in one setting so that it fails quickly."""
    example = ConsensusADMM.example()
    return replace(example, algorithm=cls(step=0.5), schedules=(Everyone(),), trusts=("local",), **changes)


def prox(algorithm: Any, down: Any, state: Any, f: Any) -> Any:
    """The step that the faulty methods take like the sound one."""
    solved = f.prox(2 * down.z - state.u, algorithm.step, algorithm.tolerance)
    return certify(solved, algorithm.tolerance, "a faulty algorithm")


class DrawsNoiseAndForgetsIt(ConsensusADMM):
    """Its releases are in order, and what it sends is something else."""

    def local(self, facts: Any, down: Any, state: Any, f: Any, releaser: Any) -> Any:
        residual = prox(self, down, state, f) - down.z
        releaser("residual", residual)
        increment = 2 * self.relaxation * residual
        return State(u=state.u + increment), Up(increment=increment)


class ForgetsNoiseOnce(ConsensusADMM):
    """One round of many goes without noise."""

    def local(self, facts: Any, down: Any, state: Any, f: Any, releaser: Any) -> Any:
        residual = prox(self, down, state, f) - down.z
        noisy = releaser("residual", residual)
        increment = 2 * self.relaxation * (residual if facts.round == 2 else noisy)
        return State(u=state.u + increment), Up(increment=increment)


class BalancesResiduals(ConsensusADMM):
    """A parameter follows an exact residual."""

    def local(self, facts: Any, down: Any, state: Any, f: Any, releaser: Any) -> Any:
        residual = prox(self, down, state, f) - down.z
        long = np.linalg.norm(residual, axis=1, keepdims=True) > 0.2
        relaxation = np.where(long, self.relaxation / 2, self.relaxation)
        increment = 2 * relaxation * releaser("residual", residual)
        return State(u=state.u + increment), Up(increment=increment)


class PenaltyFromItsCount(ConsensusADMM):
    """The penalty follows the number of records, which is private under add-remove."""

    def local(self, facts: Any, down: Any, state: Any, f: Any, releaser: Any) -> Any:
        residual = prox(self, down, state, f) - down.z
        increment = 2 * self.relaxation / f.sizes[:, None] * releaser("residual", residual)
        return State(u=state.u + increment), Up(increment=increment)


class LogsItsData(ConsensusADMM):
    """A line of the log tells the objective."""

    def local(self, facts: Any, down: Any, state: Any, f: Any, releaser: Any) -> Any:
        logging.getLogger("consenso").info("objective %s", f.value(down.z).sum())
        return super().local(facts, down, state, f, releaser)


@dataclass(frozen=True)
class ChattyUp:
    """A message with a number too many."""

    increment: Any
    objective: Any


class SendsOneNumberMore(ConsensusADMM):
    """The objective travels with the release."""

    def local(self, facts: Any, down: Any, state: Any, f: Any, releaser: Any) -> Any:
        after, up = super().local(facts, down, state, f, releaser)
        return after, ChattyUp(increment=up.increment, objective=f.value(down.z)[:, None])


class OneNoiseForTwo(ConsensusADMM):
    """The noise of the residual hides the objective too: the difference of the two is exact."""

    def local(self, facts: Any, down: Any, state: Any, f: Any, releaser: Any) -> Any:
        residual = prox(self, down, state, f) - down.z
        noisy = releaser("residual", residual)
        increment = 2 * self.relaxation * noisy
        second = f.value(down.z)[:, None] + (np.asarray(noisy) - residual)[:, :1]
        return State(u=state.u + increment), ChattyUp(increment=increment, objective=second)


class HalvesItsSensitivity(ConsensusADMM):
    """A record moves the release by more than is declared."""

    def releases(self, facts: Any) -> Any:
        (release,) = super().releases(facts)
        return (replace(release, bounds=release.bounds.scale(0.4)),)


class ClipsAfterTheSum(DPSGD):
    """The sum of the records is clipped to what clipped records could add up to, the records are not."""

    def local(self, facts: Any, down: Any, state: Any, f: Any, release: Any) -> Any:
        sums = f.rmatvec(f.slopes(f.linear_predictor(down.u)))
        longest = (self.clip or 1.0) * f.sizes
        lengths = np.linalg.norm(sums, axis=1)
        shortened = sums * np.minimum(1.0, longest / np.maximum(lengths, 1e-300))[:, None]
        return state, GradientUp(gradient=release("gradient", shortened * facts.scales[:, None]))


def clips_after_the_sum() -> Example:
    """The example of the method that clips too late."""
    example = DPSGD.example()
    return replace(
        example, algorithm=ClipsAfterTheSum(clip=0.2, rate=1.0), schedules=(Everyone(),), trusts=("local",), variants=()
    )


class PrintedRecursion(ConsensusADMM):
    """The paper's zhat <- z + mean of the increments, which forgets what the regularizer did."""

    def combine(self, facts: Any, hub: Any, total: Any) -> Any:
        mean = hub.z + total.increment / facts.parties
        return Hub(mean=mean, z=facts.problem.regularizer.prox(mean, self.step))


class KeepsItsDual(ConsensusADMM):
    """What a party kept of one run is where the next one starts."""

    kept: ClassVar[dict[int, Array]] = {}

    def enroll(self, facts: Any, f: Any) -> Any:
        state = super().enroll(facts, f)
        fresh = [self.kept.get(party, row) for party, row in zip(f.parties, state.u, strict=True)]
        return State(u=np.array(fresh))

    def local(self, facts: Any, down: Any, state: Any, f: Any, releaser: Any) -> Any:
        after, up = super().local(facts, down, state, f, releaser)
        self.kept.update(zip(f.parties.tolist(), np.asarray(after.u), strict=True))
        return after, up


@dataclass(frozen=True)
class CountedUp:
    """A message that tells who is in it."""

    dual: Any
    count: Any


class DividesByTheSample(DualConsensusADMM):
    """|S| as a normaliser: how many took part, which only the parties' own messages could tell the hub."""

    def local(self, facts: Any, down: Any, state: Any, f: Any, releaser: Any) -> Any:
        after, up = super().local(facts, down, state, f, releaser)
        return after, CountedUp(dual=up.dual, count=np.ones((len(facts.cohort), 1)))

    def combine(self, facts: Any, hub: Any, total: Any) -> Any:
        scaled = total.dual * facts.expected_parties / max(1.0, float(total.count[0]))
        return super().combine(facts, hub, DualUp(dual=scaled))


class ReleasesOnceMore(ConsensusADMM):
    """A release more than was declared and accounted for."""

    def local(self, facts: Any, down: Any, state: Any, f: Any, releaser: Any) -> Any:
        releaser("residual", np.zeros((len(facts.cohort), facts.dim)))
        return super().local(facts, down, state, f, releaser)


class ReleasesWhenItLikes(ConsensusADMM):
    """A release that was declared and is not made: whether it is would tell something."""

    def local(self, facts: Any, down: Any, state: Any, f: Any, releaser: Any) -> Any:
        zero: Any = np.zeros((len(facts.cohort), facts.dim))
        return state, Up(increment=zero)


class RefusesByItsRows(DPSGD):
    """Whether a message is refused depends on private rows."""

    def local(self, facts: Any, down: Any, state: Any, f: Any, release: Any) -> Any:
        if np.abs(f.linear_predictor(down.u)).max() > 1e3:
            raise MessageError("the scores are too large.")
        return super().local(facts, down, state, f, release)


class MovesWithTheNumbersOfTheHub(DPSGD):
    """Its bound holds for models that an honest hub sends, and for no others."""

    def local(self, facts: Any, down: Any, state: Any, f: Any, release: Any) -> Any:
        stretched = f.rmatvec(f.linear_predictor(down.u)) * facts.scales[:, None] * 1e-2

        def release_moved(name: str, value: Any, **rest: Any) -> Any:
            return release(name, value + stretched, **rest)

        return super().local(facts, down, state, f, cast(Any, release_moved))


def believes_its_hub(cls: Any, **changes: Any) -> Example:
    """The example of a faulty gradient method, as a party of its own."""
    example = DPSGD.example()
    parameters = {**vars(example.algorithm), **changes}
    return replace(example, algorithm=cls(**parameters), schedules=(Everyone(),), trusts=("local",))
