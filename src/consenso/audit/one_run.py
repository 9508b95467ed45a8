"""Auditing a real training run, once, with many canaries.

Each of m canaries is a record of which one of two versions is in the data, by a fair coin of its own. After one run the
attacker guesses some of the coins and passes on the others. If the run is (epsilon, delta) private, the number of right
guesses among r is hardly more than that of r tosses of a coin with chance exp(epsilon) / (1 + exp(epsilon)) (Steinke,
Nasr and Jagielski 2023):

    P[right >= v] <= P[B >= v] + 2 m delta max over i of P[v > B >= v - i] / i,     B ~ Binomial(r, that chance).

That holds for any mechanism. Guesses prove more about a claim whose shape is taken for granted: see
`consenso.audit.guesses`. Each of the bounds holds with the stated confidence.

One run replaces thousands, at a price: canaries hide each other, so the bound is far below the truth when they are many
and the model is small. It is for plans that are too costly to run often; its score sees the model of every round.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from consenso.algorithms.shape import HubAlgorithm
from consenso.arrays import Array, IntArray
from consenso.audit.guesses import bound_pair, bound_within, plan_guesses
from consenso.audit.neighbours import LONGEST, extremes, make_shards, silence
from consenso.conventions import LARGEST_DELTA
from consenso.engine.in_process import InProcessRun
from consenso.errors import InputError
from consenso.planning.plan import Plan
from consenso.privacy.accountants import gaussian
from consenso.privacy.events import Event
from consenso.privacy.observers import Public
from consenso.privacy.samplers import Seeded
from consenso.problem import Problem
from consenso.shards import Shards

# Shares of the canaries that are guessed; the error probability is divided among them.
GUESSED = (0.1, 0.25, 0.5, 1.0)
LARGEST_EPSILON = 100.0


@dataclass(frozen=True, eq=False, kw_only=True)
class Canaries:
    """Records of which one of two versions is in the data: rows and targets of version zero and of version one.

    Under add-remove version zero is a row of zeros, which contributes nothing.
    """

    parties: IntArray  # whose record each canary is
    zero: tuple[Array, Any]
    one: tuple[Array, Any]

    def __len__(self) -> int:
        return len(self.parties)


@dataclass(frozen=True, kw_only=True)
class OneRun:
    """What one run with canaries proves."""

    canaries: int
    guesses: int
    right: int
    delta: float
    confidence: float  # that each bound holds
    lower: float  # bound on epsilon, of any mechanism
    within: float  # bound on epsilon, of the same mechanism with less noise
    pair: float  # bound on epsilon if scores are independent and normal, which refutes nothing
    view: Literal["model", "rounds"]

    def refutes(self, epsilon: float) -> bool:
        """Whether one of the bounds that need no independence lies above a claim."""
        return max(self.lower, self.within) > epsilon


def canaries(problem: Problem, count: int, *, seed: int | None, constant: float = 0.0) -> Canaries:
    """Canaries of the longest rows that are allowed, spread over the parties.

    Each along an axis of its own, in a random order, where there are axes enough: then none hides another. Otherwise in
    random directions. Under replace-one the two versions have opposite targets. constant: value of the last column of
    every record, 0 where it is none.
    """
    if not 0 < count <= problem.records:
        raise InputError(
            f"canaries(count={count}): they take the place of records, of which there are {problem.records}."
        )
    if int(np.ceil(count / problem.parties)) > int(problem.sizes.min()):
        raise InputError(f"canaries(count={count}): the smallest party has no room for its share; ask for fewer.")
    rng = np.random.default_rng(seed)
    free = problem.features - (constant != 0)
    rows, length = np.zeros((count, problem.features)), math.sqrt(problem.row_bound**2 - constant**2) * LONGEST
    if count <= free:
        rows[np.arange(count), rng.permutation(free)[:count]] = length
    else:
        drawn = rng.normal(size=(count, free))
        rows[:, :free] = drawn * (length / np.linalg.norm(drawn, axis=1, keepdims=True))
    rows[:, free:] = constant
    high, low = extremes(problem)
    kind = np.int64 if problem.loss.targets == "class" else np.float64
    first = np.full(count, high, dtype=kind)
    absent = problem.adjacency == "add-remove"
    zero = (np.zeros_like(rows), first) if absent else (rows, np.full(count, low, dtype=kind))
    parties = np.arange(count, dtype=np.int64) % problem.parties
    return Canaries(parties=parties, zero=zero, one=(rows, first))


def one_run(
    plan: Plan,
    data: list[tuple[Array, Any]],
    chosen: Canaries,
    *,
    delta: float = LARGEST_DELTA,
    confidence: float = 0.95,
    seed: int = 0,
    view: Literal["model", "rounds"] = "rounds",
    claim: Event | None = None,
) -> OneRun:
    """Train once on `data`, rows and targets of each party, with the first records of each replaced by canaries.

    view: "model" scores the final model only, "rounds" what the model does in every round. The noise is simulated.
    claim: whose shape `within` takes for granted; left out, that of a Gaussian mechanism.
    """
    rng = np.random.default_rng(seed)
    coins = rng.integers(2, size=len(chosen)).astype(bool)
    shards = make_shards(plan.problem, _plant(data, chosen, coins))
    scores = _scores(plan, shards, chosen, seed=seed, every_round=view == "rounds")
    scores = _centre(plan.problem, scores)
    return weigh(scores, coins, delta=delta, confidence=confidence, view=view, claim=claim)


def guess_from_model(
    plan: Plan, model: Array, chosen: Canaries, coins: Array, *, delta: float, confidence: float
) -> tuple[float, OneRun]:
    """What the final model of a run with canaries proves, beside what is claimed of whoever sees it."""
    claim = plan.guarantee(Public(), delta)
    scores = _centre(plan.problem, _pull(plan.problem, chosen, model, -model))
    return claim.epsilon(delta), weigh(scores, coins, delta=delta, confidence=confidence, claim=claim.event)


def _centre(problem: Problem, scores: Array) -> Array:
    """Under add-remove an absent canary scores about nothing, not minus what a present one does."""
    return scores - np.median(scores) if problem.adjacency == "add-remove" else scores


def weigh(
    scores: Array,
    coins: Array,
    *,
    delta: float,
    confidence: float = 0.95,
    view: Literal["model", "rounds"] = "model",
    claim: Event | None = None,
) -> OneRun:
    """What scores, positive where version one is believed in, prove about the run that they come from."""
    count, order = len(coins), np.argsort(-np.abs(scores))
    hits = np.cumsum((scores[order] > 0) == coins[order])
    each, lower = 1 - (1 - confidence) / len(GUESSED), 0.0
    for share in GUESSED:
        some = max(1, int(share * count))
        lower = max(lower, lower_bound(count, some, int(hits[some - 1]), delta=delta, confidence=each))
    guesses = plan_guesses(claim, count, delta=delta, confidence=confidence)
    right = int(hits[guesses - 1])
    return OneRun(
        canaries=count,
        guesses=guesses,
        right=right,
        delta=delta,
        confidence=confidence,
        lower=lower,
        within=bound_within(claim, count, guesses, right, delta=delta, confidence=confidence),
        pair=gaussian.epsilon(bound_pair(scores, coins.astype(np.bool_), confidence=confidence), delta),
        view=view,
    )


def audit_once(
    plan: Plan, count: int, *, delta: float = LARGEST_DELTA, confidence: float = 0.95, seed: int = 0
) -> list[tuple[str, float, OneRun]]:
    """One run of a plan on canaries alone: observer, claimed epsilon and what the run proves.

    Whoever sees the model of every round is compared with the strongest claim against such an observer, whoever sees
    the final model with the public one.
    """
    data = [silence(plan.problem, int(size)) for size in plan.problem.sizes]
    chosen = canaries(plan.problem, count, seed=seed)
    found = []
    for view, observers in (("rounds", [each for each in plan.observers() if each != Public()]), ("model", [Public()])):
        claims = [plan.guarantee(each, delta) for each in observers]
        strongest = min(claims, key=lambda claim: claim.epsilon(delta))
        run = one_run(
            plan,
            data,
            chosen,
            delta=delta,
            confidence=confidence,
            seed=seed,
            view=view,  # type: ignore[arg-type]
            claim=strongest.event,
        )
        found.append((strongest.observer, strongest.epsilon(delta), run))
    return found


def lower_bound(canaries: int, guesses: int, right: int, *, delta: float, confidence: float) -> float:
    """The largest epsilon that this number of right guesses rules out, 0 if it rules out none."""
    level = 1.0 - confidence
    if p_value(canaries, guesses, right, 0.0, delta) > level:
        return 0.0
    low, high = 0.0, LARGEST_EPSILON
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if p_value(canaries, guesses, right, middle, delta) <= level else (low, middle)
    return low


def p_value(canaries: int, guesses: int, right: int, epsilon: float, delta: float) -> float:
    """An upper bound on the chance of at least this many right guesses, if the run is (epsilon, delta) private."""
    if not 0 <= right <= guesses <= canaries:
        raise InputError(
            f"p_value(canaries={canaries}, guesses={guesses}, right={right}): at most all canaries are guessed, and at "
            "most all guesses are right."
        )
    chance = 1.0 / (1.0 + math.exp(-epsilon))
    from scipy.stats import binom  # slow to import

    tail = float(binom.sf(right - 1, guesses, chance))
    if delta == 0.0 or right == 0:
        return min(1.0, tail)
    just_below = np.cumsum(binom.pmf(np.arange(right - 1, -1, -1), guesses, chance))
    steepest = float(np.max(just_below / np.arange(1, right + 1)))
    return min(1.0, tail + 2.0 * canaries * delta * steepest)


def _plant(data: list[tuple[Array, Any]], chosen: Canaries, coins: Array) -> list[tuple[Array, Any]]:
    planted = [(np.array(rows), np.array(targets)) for rows, targets in data]
    used = np.zeros(len(planted), dtype=np.int64)
    for index, party in enumerate(chosen.parties):
        version = chosen.one if coins[index] else chosen.zero
        rows, targets = planted[party]
        rows[used[party]], targets[used[party]] = version[0][index], version[1][index]
        used[party] += 1
    return planted


def _scores(plan: Plan, shards: Shards, chosen: Canaries, *, seed: int, every_round: bool) -> Array:
    """How much the run looks as if version one of each canary had been in it.

    A record pulls the model against its own gradient. Summed over the rounds, the inner product of the model's moves
    with the difference of the two versions' gradients is, for gradient methods, what the likelihood ratio is made of.
    """
    simulated = replace(plan, sampler=Seeded(seed))
    run = InProcessRun(simulated, shards, stride=1)
    watched = every_round and isinstance(simulated.algorithm, HubAlgorithm)
    before, total = run.model, np.zeros(len(chosen))
    start = before
    for _ in run.rounds():
        if watched:
            now = run.model
            total += _pull(plan.problem, chosen, before, before - now)
            before = now
    if watched:
        return total
    end = run.model
    return _pull(plan.problem, chosen, end, start - end)


def _pull(problem: Problem, chosen: Canaries, model: Array, move: Array) -> Array:
    """<gradient of version one - gradient of version zero at the model, move> for each canary."""
    shape = (problem.features,) if problem.outputs == 1 else (problem.features, problem.outputs)
    difference = np.zeros(len(chosen))
    for sign, (rows, targets) in ((1.0, chosen.one), (-1.0, chosen.zero)):
        slopes = problem.loss.slope(rows @ model.reshape(shape), targets)
        along = rows @ move.reshape(shape)
        difference += sign * (slopes * along if problem.outputs == 1 else np.einsum("ij,ij->i", slopes, along))
    return difference
