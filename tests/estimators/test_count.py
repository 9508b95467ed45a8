"""Fits whose number of records is private: a noisy count is released, paid for, and n is used nowhere."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

import consenso
from consenso import solvers
from consenso.algorithms import discover
from consenso.errors import BudgetError, ConsensoError, InputError, PreconditionError
from consenso.estimators import fitting
from consenso.losses import Logistic
from consenso.planning.plan import plan
from consenso.planning.replan import differences
from consenso.privacy.accountants import excess, gdp
from consenso.privacy.calibrate import EpsilonDelta, Mu, calibrate_noise
from consenso.privacy.count import SHARE, Count, noise_of_count, release_count
from consenso.privacy.events import Gaussian, compose
from consenso.privacy.ledger import Budget, Ledger
from consenso.privacy.observers import Public
from consenso.privacy.samplers import Safe, Seeded
from consenso.privacy.verify import first_failure, verify
from consenso.problem import Problem
from consenso.regularizers import L2
from consenso.shards import Shards
from consenso.testing.plans import execute

RNG = np.random.default_rng(4)
X = RNG.normal(size=(300, 3))
LABELS = (X[:, 0] > 0).astype(int)
DELTA = 1e-5
NAMES = (
    "PrivateLogisticRegression",
    "PrivateLinearSVC",
    "PrivateRidge",
    "PrivateLasso",
    "PrivateElasticNet",
    "PrivateHuberRegressor",
    "PrivateLADRegressor",
)


def made(name="PrivateLogisticRegression", **rest):
    kind = getattr(consenso, name)
    known = {"classes": [0, 1]} if "classes" in kind().get_params() else {"target_bound": 2.0}
    return kind(**{"epsilon": 1.0, "delta": DELTA, "row_bound": 2.0, "adjacency": "add-remove", **known, **rest})


def problem_of(count: Count) -> Problem:
    return Problem(
        loss=Logistic(),
        regularizer=L2(strength=0.01),
        features=3,
        sizes=np.array([count.low]),
        row_bound=1.0,
        adjacency="add-remove",
        capped=False,
    )


def a_count(noisy: float, mu: float = 0.3, sampler: Safe | Seeded = Seeded(1)) -> Count:  # noqa: B008 - frozen
    return Count(noise=noise_of_count(mu, sampler), noisy=noisy, mu=mu, excess=1e-14)


@pytest.mark.parametrize("name", NAMES)
def test_without_a_public_number_a_count_is_released_within_the_budget_and_is_on_the_card(name) -> None:
    model = made(name, solver="auto").fit(X, LABELS)
    stated = model.guarantee_
    assert (stated.observer, stated.unit, stated.adjacency) == ("public", "record", "add-remove")
    assert 0.999 < stated.epsilon(DELTA) <= 1.0
    card = model.card_
    count = card.parameters["count"]
    whole = 1 / calibrate_noise(lambda m: Gaussian(m, 1.0), EpsilonDelta(epsilon=1.0, delta=DELTA))
    std = count["noise"]["multiplier"]
    assert std == pytest.approx(1 / (np.sqrt(SHARE) * whole), rel=1e-4)
    assert abs(count["noisy"] - len(X)) < 8 * std
    assert card.data["sizes"] == [max(int(np.floor(count["noisy"] - 2 * std)), 1)]
    assert card.data["capped"] is False
    assert first_failure(verify(json.loads(json.dumps(card.to_json())))) is None
    assert differences(card) == []


@pytest.mark.parametrize("sampler", [Safe(), Seeded(3)], ids=["safe", "seeded"])
@pytest.mark.parametrize("solver", [name for name in solvers.names() if name != "objective-perturbation"])
def test_what_is_left_for_the_fit_is_one_mu_for_every_count(solver, sampler) -> None:
    stated = set()
    for noisy in (-50.0, 3.0, 80.0, 1e3, 1e6):
        count = a_count(noisy, sampler=sampler)
        fit = solvers.prepare(problem_of(count), Mu(mu=count.rest), solver=solver, sampler=sampler, count=count)
        alone = replace(fit, count=None).guarantee(Public(), DELTA).event
        together = compose(count.event(sampler), alone)
        assert 0.99 * count.rest < gdp(alone) <= count.rest
        assert gdp(together) <= count.mu
        assert excess(together) <= count.excess
        for adjacency, most in (("add-remove", count.mu), ("replace-one", 2 * count.mu)):
            event = fit.guarantee(Public(), DELTA, adjacency=adjacency).event
            assert gdp(event) == pytest.approx(most)
            stated.add((adjacency, event))
            own = replace(fit, count=None).guarantee(Public(), DELTA, adjacency=adjacency).event
            assert gdp(own) <= most
    assert len(stated) == 2, "what is promised may not depend on the count"


def test_a_budget_for_each_count_is_refused() -> None:
    count = a_count(100.0)
    for target in (EpsilonDelta(epsilon=1.0, delta=DELTA), Mu(mu=count.mu)):
        with pytest.raises(InputError, match="one mu"):
            solvers.prepare(problem_of(count), target, sampler=Seeded(0), count=count)
    capped = replace(problem_of(count), capped=True)
    with pytest.raises(InputError, match="capped"):
        solvers.prepare(capped, Mu(mu=count.rest), sampler=Seeded(0), count=count)
    loud = solvers.prepare(problem_of(count), Mu(mu=2 * count.mu), sampler=Seeded(0))
    with pytest.raises(PreconditionError, match="GDP"):
        replace(loud, count=count).guarantee(Public(), DELTA)


@pytest.mark.parametrize("name", NAMES)
def test_the_number_of_records_is_used_nowhere_but_in_the_count(name, monkeypatch) -> None:
    """Rows of zeros add nothing to any sum of a fit without an intercept: given the count, nothing may change."""
    monkeypatch.setattr(fitting, "release_count", lambda rows, *rest: release_count(290, *rest))
    options = {"fit_intercept": False, "random_state": 5}
    fits = []
    for more in (0, 1, 40):
        rows = np.concatenate([X, np.zeros((more, 3))])
        targets = np.concatenate([LABELS, np.zeros(more, dtype=int)])
        model = made(name, **options).fit(rows, targets)
        fits.append((model.coef_, model.n_iter_, model.solver_reason_, json.dumps(model.card_.to_json())))
    scale = np.abs(fits[0][0]).max()
    for coefficients, *public in fits[1:]:
        np.testing.assert_allclose(coefficients, fits[0][0], atol=1e-9 * scale)  # sums in another order
        assert tuple(public) == fits[0][1:]


def test_columns_are_looked_at_though_the_number_of_records_is_private() -> None:
    """A number that is not known decides nothing: neither that columns are worth a look, nor that they are not."""
    raw = X.repeat(20, axis=0) * [0.01, 1.0, 1000.0] + [1.0, 10.0, 5000.0]
    model = made("PrivateLogisticRegression", row_bound=None, random_state=0).fit(raw, LABELS.repeat(20))
    assert model.row_map_.columns is not None
    assert model.score(raw, LABELS.repeat(20)) > 0.9


def test_the_whole_cost_is_reserved_before_the_count_is_drawn(tmp_path, monkeypatch) -> None:
    drawn = []
    release = Safe._release
    monkeypatch.setattr(Safe, "_release", lambda self, *given: drawn.append(1) or release(self, *given))
    budgets = [
        Budget(observer="public", unit="record", adjacency=adjacency, epsilon=epsilon, delta=DELTA)
        for adjacency, epsilon in (("add-remove", 1.4), ("replace-one", 5.0))
    ]
    ledger = Ledger.create(tmp_path / "l", dataset="d", budgets=budgets)
    with pytest.raises(PreconditionError, match="objective-perturbation"):
        made(ledger=ledger, solver="objective-perturbation").fit(X, LABELS)
    assert not drawn
    assert not ledger.runs()
    model = made(ledger=ledger).fit(X, LABELS)
    (run,) = ledger.runs()
    assert run.state == "committed"
    for adjacency, balance in zip(("add-remove", "replace-one"), ledger.balances(), strict=True):
        (entry,) = (
            e for e in model.card_.entries if (e.observer, e.unit) == ("public", "record") and e.adjacency == adjacency
        )
        assert entry.epsilon == pytest.approx(balance.spent, rel=1e-6)
    many = len(drawn)
    with pytest.raises(BudgetError):
        made(ledger=ledger).fit(X, LABELS)
    assert len(drawn) == many


def test_delta_is_no_function_of_the_count() -> None:
    for rows in (20, 300):
        assert made(delta=None).fit(X[:rows], LABELS[:rows]).card_.delta == DELTA


def central_plans(sizes):
    """Every discovered algorithm that one curator can run, on a problem whose size bounds nothing."""
    for definition in discover().values():
        example = definition.example()
        problem = replace(example.problem, sizes=np.array(sizes), unit="record", adjacency="add-remove", capped=False)
        try:
            yield plan(
                problem,
                example.algorithm,
                rounds=example.rounds,
                noise=example.noise,
                trust="curator",
                sampler=Seeded(7),
            )
        except ConsensoError:
            continue


def test_no_bound_takes_a_counted_size_for_the_number_of_records() -> None:
    found = 0
    for made_plan in central_plans([2]):
        for adjacency in ("add-remove", "replace-one"):
            whole = made_plan.guarantee(Public(), DELTA, unit="party", adjacency=adjacency)
            assert whole.epsilon(DELTA) == np.inf, type(made_plan.algorithm).__name__
        found += 1
    assert found >= 3


def test_with_far_more_rows_than_were_counted_no_release_moves_by_more_than_declared() -> None:
    rng, found = np.random.default_rng(0), 0
    for made_plan in central_plans([2]):
        problem = made_plan.problem
        rows = rng.normal(size=(25, problem.features))
        rows *= problem.row_bound / np.linalg.norm(rows, axis=1)[:, None]
        if problem.loss.targets == "real":
            targets = rng.uniform(-1, 1, size=25) * problem.target_bound
        else:
            targets = (
                rng.choice([-1.0, 1.0], size=25) if problem.outputs == 1 else rng.integers(problem.outputs, size=25)
            )
        seen = []
        for many in (25, 24):
            values = []
            look = lambda round_, release, cohort, value, bound, values=values: values.append(
                (release, value.copy(), bound)
            )
            watched = replace(made_plan, probe=look)
            execute(watched, Shards.from_parties(problem, [(rows[:many], targets[:many])]))
            seen.append(values)
        for (release, one, bound), (_, other, _) in zip(*seen, strict=True):
            moved = np.abs(one - other).sum() if release.norm == 1 else np.linalg.norm(one - other)
            assert moved <= np.max(release.bounds.at("record", "add-remove")) * bound * (1 + 1e-9) + 1e-12
            found += 1
    assert found > 10
