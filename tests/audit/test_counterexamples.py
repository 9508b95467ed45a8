"""The counterexamples of docs/privacy.md as runs: the audit refutes what was printed, and not what is reported."""

from __future__ import annotations

import math

import numpy as np
import pytest
from experiments.paper000 import claims
from tests.audit.constructions import FlippingADMM, OneVisit, Path, flipping, stiff_problem

from consenso.algorithms.consensus import ConsensusADMM
from consenso.algorithms.general import GeneralADMM
from consenso.audit import Effort, audit, linear, unkind
from consenso.audit.bounds import evidence
from consenso.audit.families import curve_of
from consenso.losses import Logistic
from consenso.planning.plan import plan
from consenso.privacy.events import ZCDP, Bounded, Gaussian, Repeated, Sampled, reveal_coin
from consenso.privacy.noise import GaussianNoise
from consenso.privacy.observers import Eavesdropper, Peer, Public, Server
from consenso.problem import Problem
from consenso.regularizers import NoPenalty
from consenso.schedules import FixedSubset, PoissonSubset

STEP, LIPSCHITZ = 0.5, 1.0


def users(parties: int, features: int = 2) -> Problem:
    """Linear losses, one record each: the Lipschitz constant of a party is 1."""
    return linear(
        Problem(
            loss=Logistic(),
            regularizer=NoPenalty(),
            features=features,
            sizes=np.full(parties, 1),
            row_bound=1.0,
            unit="party",
        )
    )


def consensus(parties: int, multiplier: float, rounds: int, *, step=STEP, **setting):
    """A plan, and sigma as the paper has it: lambda * eta where the library adds 2 * lambda * noise."""
    made = plan(
        users(parties), ConsensusADMM(step=step), rounds=rounds, noise=GaussianNoise(multiplier=multiplier), **setting
    )
    return made, 2 * multiplier * 2 * step * LIPSCHITZ


def attacked(made, observer, *, rho=None, party=1, trials=1500, confidence=0.999, **options):
    """Ours, or a printed zCDP bound."""
    claim = None if rho is None else lambda view: ZCDP(rho)
    pairs = options.pop("pairs", lambda victim: list(unkind(made.problem, "party", "replace-one", victim))[:1])
    (finding,) = audit(
        made,
        Effort(trials=trials, confidence=confidence, family=False),
        observers=[observer],
        party=party,
        pairs=pairs,
        claim=claim,
        **options,
    )
    return finding


def refutes(finding, rho: float) -> bool:
    """Whether the same runs refute a printed zCDP bound."""
    return finding.evidence.refutes(curve_of(ZCDP(rho)))


# --- section 1: the central theorem ---------------------------------------------------------------------------------


@pytest.mark.parametrize("observer", [Server(), Public()], ids=["every mean", "the last model"])
def test_theorem_2(observer) -> None:
    parties, rounds = 16, 10
    made, std = consensus(parties, 0.6, rounds, trust="secure-sum")
    printed = claims.printed_theorem_2(rounds=rounds, lipschitz=LIPSCHITZ, step=STEP, parties=parties, std=std)
    ours = attacked(made, observer)
    assert not ours.refuted
    assert refutes(ours, printed)


def test_theorem_2_for_whoever_sees_all_states() -> None:
    parties, rounds = 16, 10
    made, std = consensus(parties, 3.0, rounds, trust="local")
    printed = claims.printed_theorem_2(rounds=rounds, lipschitz=LIPSCHITZ, step=STEP, parties=parties, std=std)
    ours = attacked(made, Eavesdropper())
    assert not ours.refuted
    assert ours.theorem == "Composition"
    assert refutes(ours, printed)


def test_theorem_2_is_true_for_the_step_over_n() -> None:
    """With prox of (gamma/n) f_i the printed bound is the exact one: the audit must not refute it."""
    parties, rounds, gamma = 8, 6, 4.0
    made, std = consensus(parties, 2.0, rounds, step=gamma / parties, trust="local")
    printed = claims.printed_theorem_2(rounds=rounds, lipschitz=LIPSCHITZ, step=gamma, parties=parties, std=std)
    assert printed == pytest.approx(made.prove(Server(), 1, 1e-5).zcdp(), rel=1e-6)
    found = attacked(made, Server(), rho=printed)
    assert not found.refuted
    assert refutes(found, printed / 8)


@pytest.mark.slow
def test_theorem_7_with_a_short_matrix() -> None:
    """A = 0.1: the printed bound multiplies by |A| and is a hundred times too small."""
    records, rounds, short = 5, 2, 0.1
    problem = linear(
        Problem(loss=Logistic(), regularizer=NoPenalty(), features=1, sizes=np.array([records]), row_bound=1.0)
    )
    algorithm = GeneralADMM(left=np.array([[short]]), step=0.5, tolerance=1e-7)
    made = plan(problem, algorithm, rounds=rounds, noise=GaussianNoise(multiplier=1.0))
    std = 2 * made.facts.noise["image"]
    printed = claims.printed_theorem_7(
        rounds=rounds,
        lipschitz=LIPSCHITZ,
        step=0.5,
        parties=records,
        std=std,
        matrix_norm=short,
        smallest_singular_value=short,
    )

    def pairs(party):
        return list(unkind(problem, "record", "replace-one", party))[:1]

    ours = attacked(made, Eavesdropper(), party=0, trials=250, pairs=pairs)
    assert not ours.refuted
    assert refutes(ours, printed)


# --- section 2: federated -------------------------------------------------------------------------------------------


def test_the_local_view_is_sound_and_tight() -> None:
    rounds = 4
    made, std = consensus(3, 2.0, rounds, trust="local")
    printed = claims.printed_theorem_3_local(participations=rounds, lipschitz=LIPSCHITZ, step=STEP, std=std)
    assert printed == pytest.approx(made.prove(Server(), 1, 1e-5).zcdp(), rel=1e-6)
    assert not attacked(made, Server(), rho=printed).refuted
    assert attacked(made, Server(), rho=0.3 * printed, trials=4000).refuted  # the conversion of zCDP loses almost half


@pytest.mark.slow
@pytest.mark.parametrize("schedule", [FixedSubset(12), PoissonSubset(0.75)], ids=["fixed size", "Poisson"])
def test_theorem_3_on_sums(schedule) -> None:
    parties, rounds = 16, 12
    made, std = consensus(parties, 0.8, rounds, trust="secure-sum", schedule=schedule)
    printed = claims.printed_theorem_3_central(rounds=rounds, lipschitz=LIPSCHITZ, step=STEP, parties=parties, std=std)
    ours = attacked(made, Server())
    assert not ours.refuted
    assert refutes(ours, printed)


@pytest.mark.parametrize(("displacement", "refuted"), [(0.0, False), (8.0, True)])
def test_sampling_amplifies_only_what_is_bounded(displacement: float, refuted: bool) -> None:
    """A sampled user adds t + a or t - a. The Lipschitz constant bounds a and never t; where t is large, it shows."""
    rate, a, rounds, trials = 0.2, 0.4, 40, 1500
    rng = np.random.default_rng(0)
    worlds = []
    for sign in (-1.0, 1.0):
        present = rng.random((trials, rounds)) < rate
        seen = present * (displacement + sign * a) + rng.normal(size=(trials, rounds))
        logs = [
            np.logaddexp(np.log1p(-rate) - seen**2 / 2, np.log(rate) - (seen - displacement - side * a) ** 2 / 2).sum(
                axis=1
            )
            for side in (-1.0, 1.0)
        ]
        worlds.append(logs[1] - logs[0])
    shown = evidence(*worlds, delta=1e-5, confidence=0.999)
    amplified = Repeated(Sampled(1.0, a, rate, "replace-one"), rounds)
    assert shown.refutes(curve_of(amplified)) is refuted
    assert not shown.refutes(curve_of(Repeated(reveal_coin(Gaussian(1.0, 2 * a), rate), rounds)))


@pytest.mark.slow
def test_one_round_s_sensitivity_composed_is_not_a_proof() -> None:
    """A flipping model and parties that hardly move: more than K linear rounds, less than Theorem F."""
    parties, rounds, residual_std = 6, 10, 1.6
    problem = stiff_problem(parties, stiffness=20)
    step = 1 / float(problem.lipschitz[0])
    multiplier = residual_std / (2 * step * float(problem.lipschitz[1]))  # noise is scaled with the largest bound
    made = plan(
        problem,
        FlippingADMM(step=step, far=8.0, tolerance=1e-9),
        rounds=rounds,
        noise=GaussianNoise(multiplier=multiplier),
        trust="secure-sum",
        equal="noise",
    )
    naive = 8 * rounds / (parties * (2 * residual_std) ** 2)
    effort = Effort(trials=150, confidence=0.99, family=False)
    pairs = lambda party: [flipping(problem, angle=0.4)]
    (ours,) = audit(made, effort, observers=[Server()], party=0, pairs=pairs, deviations=True)
    assert ours.theorem == "MeanOfNoisyStates"
    assert not ours.refuted
    assert ours.evidence.refutes(curve_of(Bounded(naive)))
    assert ours.evidence.mu > 1.1 * math.sqrt(2 * naive)


def test_a_party_counts_as_a_colluder() -> None:
    """n = 2, lambda = 1/2: the other party's true cost is 8, the formula without the colluder says 7.11."""
    rounds, parties = 2, 2
    made, std = consensus(parties, 1.5, rounds, trust="secure-sum")
    unit = STEP**2 * LIPSCHITZ**2 * rounds / std**2
    without = 32 * parties / (parties + 1) ** 2 * unit
    assert without / unit == pytest.approx(7.11, abs=0.01)
    common = {
        "observers": [Peer(party=0)],
        "party": 1,
        "pairs": lambda party: list(unkind(made.problem, "party", "replace-one", party))[:1],
    }
    effort = Effort(trials=20_000, confidence=0.99)
    (ours,) = audit(made, effort, **common)
    assert not ours.refuted
    assert ours.evidence.refutes(curve_of(Bounded(without)))
    assert ours.lower > 0.9 * ours.claimed


# --- section 4: the walk --------------------------------------------------------------------------------------------


def test_theorem_4_with_two_users() -> None:
    """What party 0 receives next has party 1's noise alone on it; nothing has to be decoded."""
    made, std = consensus(2, 0.8, 4, schedule=Path((1, 0, 0, 0)), trust="local")
    printed = claims.printed_theorem_4(participations=1, lipschitz=LIPSCHITZ, step=STEP, parties=2, std=std)
    ours = attacked(made, Peer(party=0), kind="token", trials=3000)
    assert not ours.refuted
    assert refutes(ours, printed)


@pytest.mark.slow
def test_theorem_4_with_three_users_and_a_path_that_is_told() -> None:
    made, std = consensus(3, 0.8, 6, schedule=OneVisit(1), trust="local")
    printed = claims.printed_theorem_4(participations=1, lipschitz=LIPSCHITZ, step=STEP, parties=3, std=std)
    assert attacked(made, Peer(party=0), rho=printed, kind="token", trials=5000, confidence=0.99).refuted
    assert not attacked(made, Peer(party=0), kind="token", trials=5000).refuted
