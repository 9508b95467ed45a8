"""Attacks on plans whose privacy is known exactly: the scores have the law that they should have, no more, no less."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import pytest

from consenso.algorithms.consensus import ConsensusADMM
from consenso.algorithms.dp_sgd import DPSGD
from consenso.algorithms.dual_consensus import DualConsensusADMM
from consenso.algorithms.inexact_admm import InexactADMM
from consenso.algorithms.objective_perturbation import ObjectivePerturbation
from consenso.algorithms.preconditioned import PreconditionedFixedPoint
from consenso.algorithms.stateless_walk import StatelessWalk
from consenso.audit import Effort, audit, linear, unkind
from consenso.audit.bounds import area
from consenso.audit.simulate import simulate
from consenso.audit.targets import watch_of
from consenso.errors import InputError
from consenso.losses import Huber, Logistic, Softmax
from consenso.planning.plan import plan
from consenso.privacy.calibrate import EpsilonDelta
from consenso.privacy.events import Bounded
from consenso.privacy.noise import GaussianNoise, LaplaceNoise
from consenso.privacy.observers import Coalition, Eavesdropper, Peer, Public, Server
from consenso.privacy.run_spec import PrivacyQuery
from consenso.privacy.samplers import Safe
from consenso.problem import Problem
from consenso.regularizers import L2, NoPenalty
from consenso.schedules import PoissonSubset, RandomWalk


def users(parties: int, **changes) -> Problem:
    settings = {
        "loss": Logistic(),
        "regularizer": NoPenalty(),
        "features": 2,
        "sizes": np.full(parties, 1),
        "row_bound": 1.0,
        "unit": "party",
    }
    return linear(Problem(**{**settings, **changes}))


def first_pair(problem: Problem, unit=None, adjacency=None):
    return lambda party: list(unkind(problem, unit or problem.unit, adjacency or problem.adjacency, party))[:1]


def scores(made, observer, *, trials=4000, kind=None, unit=None, adjacency=None):
    unit, adjacency = unit or made.problem.unit, adjacency or made.problem.adjacency
    party = 1 if made.parties > 1 else 0
    query = PrivacyQuery(observer=observer, unit=unit, adjacency=adjacency, party=party)
    event = made.prove(observer, party, 1e-5, unit=unit, adjacency=adjacency).event
    watch = watch_of(made, query, event, kind)
    (pair,) = first_pair(made.problem, unit, adjacency)(party)
    return simulate(made, pair, [watch], trials=trials, seed=11)[0]


def assert_gaussian(zero, one, mu: float) -> None:
    """A log likelihood ratio of two Gaussians at distance mu: N(-+ mu^2 / 2, mu^2); four standard errors."""
    off = 4 * mu / math.sqrt(len(zero))
    assert zero.mean() == pytest.approx(-(mu**2) / 2, abs=off)
    assert one.mean() == pytest.approx(mu**2 / 2, abs=off)
    for world in (zero, one):
        assert world.std() == pytest.approx(mu, rel=4 / math.sqrt(2 * len(zero)))


ROUNDS, MULTIPLIER = 4, 2.0
EXACT = {
    # Every noisy residual: a round is a Gaussian mechanism of its own.
    "each message": (ConsensusADMM(step=0.5), "local", Server(), 1.0),
    # Noise once on the sum.
    "curator": (DualConsensusADMM(level="party", step=0.5), "curator", Peer(party=0), 1.0),
    # n shares of 1/(n - 1) each.
    "secure sum": (DualConsensusADMM(level="party", step=0.5), "secure-sum", Server(), math.sqrt(3 / 4)),
    # The same for a party that knows its own share.
    "secure sum from inside": (DualConsensusADMM(level="party", step=0.5), "secure-sum", Peer(party=0), 1.0),
    "secure sum, two inside": (
        DualConsensusADMM(level="party", step=0.5),
        "secure-sum",
        Coalition(parties=(0, 2)),
        math.sqrt(3 / 2),
    ),
    # Sums of n independent noises.
    "sums of local noise": (DualConsensusADMM(level="party", step=0.5), "local", Public(), 1 / math.sqrt(4)),
    "sums of kept noise": (ConsensusADMM(step=0.5), "secure-sum", Server(), 1 / math.sqrt(4)),
    "sums of kept noise from inside": (ConsensusADMM(step=0.5), "secure-sum", Peer(party=0), 1 / math.sqrt(3)),
}


@pytest.mark.parametrize("case", EXACT)
def test_the_likelihood_ratio_has_its_law(case: str) -> None:
    algorithm, trust, observer, gain = EXACT[case]
    made = plan(users(4), algorithm, rounds=ROUNDS, noise=GaussianNoise(multiplier=MULTIPLIER), trust=trust)
    kind = "filter" if "kept" in case else "ratio"
    zero, one = scores(made, observer, kind=kind)
    assert_gaussian(zero, one, gain * math.sqrt(ROUNDS) / MULTIPLIER)


def test_laplace_sequences() -> None:
    """Pure privacy: the ratio never exceeds the claim, and reaches it."""
    made = plan(users(3), InexactADMM(penalty=0.5), rounds=3, noise=LaplaceNoise(multiplier=2.0))
    problem = made.problem
    claimed = made.prove(Server(), 1, 0.0).epsilon(0.0)
    zero, one = scores(made, Server())
    assert claimed == pytest.approx(1.5)
    # Rows along an axis have a 1-norm of 1, and the bound allows sqrt(2).
    reached = claimed / math.sqrt(problem.features)
    assert max(np.abs(zero).max(), np.abs(one).max()) <= reached * (1 + 1e-6)
    assert np.abs(one).max() >= reached * 0.999


def test_an_objective_perturbation_of_linear_losses_is_a_gaussian() -> None:
    problem = linear(
        Problem(
            loss=Logistic(),
            regularizer=L2(strength=0.1),
            features=2,
            sizes=np.array([20]),
            row_bound=1.0,
            adjacency="add-remove",
        )
    )
    noise = {"objective": GaussianNoise(multiplier=1.0), "output": GaussianNoise(multiplier=1000.0)}
    made = plan(problem, ObjectivePerturbation(quadratic=2.0), rounds=1, noise=noise)
    zero, one = scores(made, Eavesdropper(), trials=200)
    # One record's gradient is 1 long and the noise has standard deviation 1.
    assert_gaussian(zero, one, 1.0)


def test_hidden_records_of_dp_sgd() -> None:
    """One round at rate q: with probability 1 - q nothing happens, and the mixture's own law is met."""
    rate, sigma = 0.3, 1.0
    problem = users(1, unit="record", sizes=np.array([5]))
    made = plan(problem, DPSGD(rate=rate, clip=1.0), rounds=1, noise=GaussianNoise(multiplier=sigma))
    zero, one = scores(made, Eavesdropper(), trials=6000)
    # In units of the noise the record adds +-1/2 (replace-one doubles the bound that the noise is scaled with).
    x = np.linspace(-9, 9, 20001)
    density = lambda mean: np.exp(-((x - mean) ** 2) / 2) / math.sqrt(2 * math.pi)
    p, q = ((1 - rate) * density(0) + rate * density(s * 0.5 / sigma) for s in (1, -1))
    mean = float(np.sum(p * np.log(p / q)) * (x[1] - x[0]))
    spread = math.sqrt(float(np.sum(p * np.log(p / q) ** 2) * (x[1] - x[0])) - mean**2)
    assert one.mean() == pytest.approx(mean, abs=4 * spread / math.sqrt(6000))
    assert zero.mean() == pytest.approx(-mean, abs=4 * spread / math.sqrt(6000))


@pytest.mark.parametrize("changes", [{"unit": "person", "rows_per_unit": 64}, {"unit": "record", "weight_bound": 3.0}])
def test_a_unit_of_most_weight_attains_the_claim(changes) -> None:
    """All of a person, or a record of a heavy class: gradients against each other are as far apart as is declared."""
    problem = users(1, sizes=np.array([5]), **changes)
    made = plan(problem, DPSGD(rate=1.0, clip=1.0), rounds=1, noise=GaussianNoise(multiplier=1.0))
    zero, one = scores(made, Eavesdropper(), trials=2000)
    # Likelihood ratios of two Gaussians that are one standard deviation apart; five standard errors of the means.
    assert one.mean() == pytest.approx(0.5, abs=5 / math.sqrt(2000))
    assert zero.mean() == pytest.approx(-0.5, abs=5 / math.sqrt(2000))


def test_hidden_parties_count_only_where_the_claim_hides_them() -> None:
    algorithm, noise = DualConsensusADMM(level="party", step=0.5), GaussianNoise(multiplier=1.0)
    made = plan(users(5), algorithm, rounds=4, noise=noise, trust="secure-sum", schedule=PoissonSubset(0.3))
    query = PrivacyQuery(observer=Server(), unit="party", adjacency="replace-one", party=1)
    hidden = watch_of(made, query, made.prove(Server(), 1, 1e-5).event)
    assert hidden.hidden
    (pair,) = first_pair(made.problem)(1)
    known = replace(hidden, hidden=False)
    (zero, one), (zero_known, one_known) = simulate(made, pair, [hidden, known], trials=1500, seed=2)
    assert area(zero_known, one_known, 0.9).estimate > area(zero, one, 0.9).lower
    (finding,) = audit(made, Effort(trials=1500), observers=[Server()], pairs=first_pair(made.problem))
    assert 0.5 * finding.claimed < finding.lower <= finding.claimed
    assert not finding.refuted


def test_a_walk_between_looks() -> None:
    """The prediction is exact for linear losses: better than the final model alone, never beyond the claim."""
    made = plan(
        users(5),
        StatelessWalk(step=1.0),
        rounds=30,
        noise=GaussianNoise(multiplier=4.0),
        schedule=RandomWalk(),
    )
    findings = audit(
        made, Effort(trials=1500), observers=[Peer(party=0), Public()], party=1, pairs=first_pair(made.problem)
    )
    assert [finding.theorem for finding in findings] == ["WalkWithoutStates", "WalkWithoutStates"]
    peer, public = findings
    assert peer.attack == "token where it is seen, the path known"
    assert not peer.refuted
    assert not public.refuted
    assert peer.lower > public.lower > 0


@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
def test_most_of_epsilon_one_is_reached(adjacency) -> None:
    """Gaussian releases, calibrated to epsilon 1: at least 85 % with 20,000 trials, and not more than is claimed."""
    made = plan(
        users(2, adjacency=adjacency),
        DualConsensusADMM(level="party", step=0.5),
        rounds=2,
        target=EpsilonDelta(epsilon=1.0, delta=1e-5),
        observer=Peer(party=0),
        trust="curator",
    )
    (finding,) = audit(made, Effort(trials=20_000), observers=[Peer(party=0)], party=1, pairs=first_pair(made.problem))
    assert finding.claimed == pytest.approx(1.0, abs=1e-6)
    assert 0.85 <= finding.lower <= 1.0
    assert not finding.refuted


@pytest.mark.slow
def test_a_hundred_audits_of_a_tight_claim_are_honest() -> None:
    """A true claim is refuted in at most 5 % of audits; 14 of 100 happen by chance with probability 3e-4."""
    made = plan(users(2), ConsensusADMM(step=0.5), rounds=2, noise=GaussianNoise(multiplier=1.5), trust="local")
    refuted = over = 0
    lowers = []
    for seed in range(100):
        (finding,) = audit(
            made, Effort(trials=400, seed=seed), observers=[Server()], party=1, pairs=first_pair(made.problem)
        )
        refuted += finding.refuted
        over += finding.lower > finding.claimed
        lowers.append(finding.lower / finding.claimed)
    assert refuted <= 13
    assert over <= 13
    assert np.mean(lowers) > 0.75  # and they are not idle


def test_a_claim_of_somebody_else() -> None:
    made = plan(users(3), ConsensusADMM(step=0.5), rounds=4, noise=GaussianNoise(multiplier=2.0))
    (finding,) = audit(
        made,
        Effort(trials=2000),
        observers=[Server()],
        party=1,
        pairs=first_pair(made.problem),
        claim=lambda query: Bounded(0.1),
    )
    assert finding.refuted
    assert finding.lower > finding.claimed
    assert "REFUTED" in finding.sentence()


def test_every_loss_has_unkind_neighbours() -> None:
    for loss, target_bound in ((Logistic(), None), (Softmax(classes=3), None), (Huber(threshold=0.5), 2.0)):
        for unit in ("record", "party"):
            for adjacency in ("replace-one", "add-remove"):
                problem = Problem(
                    loss=loss,
                    regularizer=NoPenalty(),
                    features=3,
                    sizes=np.array([2, 3]),
                    row_bound=2.0,
                    target_bound=target_bound,
                )
                pairs = list(unkind(problem, unit, adjacency, 1))
                assert len({pair.what for pair in pairs}) == len(pairs) >= 3
                for pair in pairs:
                    assert pair.records[1] == 3
                    gone = adjacency == "add-remove" and unit == "record"
                    assert pair.records[0] == (2 if gone else 3)
                    for world in (pair.zero, pair.one):
                        assert world.scaled_rows() == 0
                        assert world.clipped_targets() == 0
                    x = np.full(problem.dim, 0.1)
                    moved = pair.one.cohort().gradient(x) - pair.zero.cohort().gradient(x)
                    assert not moved[0].any()
                    assert np.linalg.norm(moved[1]) > 0.1


def test_findings_for_machines() -> None:
    problem = users(3)
    made = plan(
        problem,
        DualConsensusADMM(level="party", step=0.5),
        rounds=2,
        noise=GaussianNoise(multiplier=1.0),
        trust="curator",
    )
    findings = audit(made, Effort(trials=200), pairs=first_pair(problem))
    assert [finding.observer for finding in findings] == ["eavesdropper", "server", "peer:0", "public"]
    # A trusted curator is sent exact values: nothing is claimed against whoever reads its messages.
    assert [math.isinf(finding.claimed) for finding in findings] == [True, True, False, False]
    assert findings[0].sentence().endswith("nothing is claimed.")
    for finding in findings:
        again = json.loads(json.dumps(finding.to_json()))
        assert again["lower"] == finding.lower
        assert (again["claimed"] is None) is math.isinf(finding.claimed)


def test_the_plan_s_own_source_of_noise_is_claimed_and_not_run() -> None:
    """A deployed plan draws discrete noise; its claim, which pays for rounding, is attacked with simulated noise."""
    problem = users(3)
    made = plan(problem, ConsensusADMM(step=0.5), rounds=2, noise=GaussianNoise(multiplier=2.0), sampler=Safe())
    (finding,) = audit(made, Effort(trials=500), observers=[Server()], pairs=first_pair(problem))
    assert not finding.refuted
    assert finding.lower > 0.5 * finding.claimed


@pytest.mark.slow
def test_trials_one_at_a_time_are_fewer() -> None:
    problem = linear(
        Problem(loss=Logistic(), regularizer=L2(strength=0.1), features=2, sizes=np.array([6]), row_bound=1.0)
    )
    noise = {"second moment": GaussianNoise(multiplier=2.0), "gradient": GaussianNoise(multiplier=1.0)}
    made = plan(problem, PreconditionedFixedPoint(steps=3), rounds=4, noise=noise)
    (finding,) = audit(made, Effort(trials=5000, slow_trials=100), observers=[Eavesdropper()])
    assert finding.trials == 100
    assert finding.stacking == "one trial at a time"


def test_refusals() -> None:
    made = plan(users(2), ConsensusADMM(step=0.5), rounds=1, noise=GaussianNoise(multiplier=1.0))
    with pytest.raises(InputError, match="20000 is usual"):
        audit(made, Effort(trials=10))
    with pytest.raises(InputError, match="nobody is left"):
        audit(made, Effort(trials=100), observers=[Coalition(parties=(0, 1))])
    walk = plan(users(3), StatelessWalk(step=1.0), rounds=2, noise=GaussianNoise(multiplier=1.0), schedule=RandomWalk())
    with pytest.raises(InputError, match="another kind"):
        audit(walk, Effort(trials=100), observers=[Peer(party=0)], kind="token")
