"""The choice of a solver and its hyperparameters: public facts only, told, and refused where nothing applies."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from consenso import PrivateHuberRegressor, PrivateLogisticRegression, PrivateRidge
from consenso.algorithms.preconditioned import PreconditionedFixedPoint
from consenso.algorithms.preconditioning.label_levels import (
    REFUTED,
    drop_common_part,
    estimate_variance,
    move_to_constant,
    refute_nothing,
    visible_share,
)
from consenso.algorithms.preconditioning.noise_levels import (
    FIRST_CLIP,
    LEAST_CLIP,
    LONGEST,
    LOUD,
    QUIET,
    SHORTEST,
    WEIGHED_ALIKE,
    NoiseLevels,
    damping,
    shorter,
    sparser,
    steepest,
)
from consenso.algorithms.preconditioning.slope_sizes import BINS, Sizes, find_bins, find_pull
from consenso.algorithms.preconditioning.target_counts import SHARE as TARGETS_SHARE
from consenso.algorithms.preconditioning.target_counts import estimate_shares, fit_law, read_constant_model
from consenso.engine.run import run
from consenso.errors import InputError, PreconditionError
from consenso.losses import Absolute, Hinge, Huber, Logistic, Softmax, Squared
from consenso.metric import Metric
from consenso.planning.plan import plan
from consenso.privacy.calibrate import EpsilonDelta, PureEpsilon
from consenso.privacy.noise import NoNoise
from consenso.privacy.observers import Public
from consenso.privacy.samplers import Seeded
from consenso.problem import Problem
from consenso.regularizers import L1, L2, ElasticNet, NoPenalty, Unpenalized
from consenso.shards import Shards
from consenso.solvers import expected_excess, names, prepare
from consenso.solvers.forecast import MOST_COUNTS, MOST_NUMBERS
from consenso.solvers.penalties import usual_penalty
from consenso.solvers.preconditioned import _moment_releases, recipe, residual_noise
from consenso.solvers.request import Request


def problem(loss=None, *, records=10_000, features=20, parties=1, **rest) -> Problem:
    loss = Logistic() if loss is None else loss
    return Problem(
        loss=loss,
        regularizer=rest.pop("regularizer", L2(strength=1e-3)),
        features=features,
        sizes=np.full(parties, records // parties),
        row_bound=rest.pop("row_bound", 1.0),
        target_bound=2.0 if loss.targets == "real" else None,
        adjacency=rest.pop("adjacency", "add-remove"),
        **rest,
    )


def request(epsilon: float, **rest) -> Request:
    return Request(problem=problem(**rest), target=EpsilonDelta(epsilon=epsilon, delta=1e-5))


@pytest.mark.parametrize(
    "loss", [Logistic(), Hinge(), Softmax(classes=3), Squared(), Huber(), Absolute()], ids=lambda loss: loss.name
)
@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
@pytest.mark.parametrize("epsilon", [0.05, 10.0])
def test_every_loss_has_a_plan_that_keeps_the_budget(loss, adjacency, epsilon) -> None:
    chosen = prepare(problem(loss, adjacency=adjacency), EpsilonDelta(epsilon=epsilon, delta=1e-5))
    assert chosen.solver == "preconditioned"
    promised = chosen.guarantee(Public(), 1e-5)
    assert (promised.unit, promised.adjacency) == ("record", adjacency)
    assert 0.97 * epsilon < promised.epsilon(1e-5) <= epsilon


def test_a_solver_that_does_not_apply_says_why() -> None:
    target = EpsilonDelta(epsilon=1.0, delta=1e-5)
    with pytest.raises(PreconditionError, match="one score a record"):
        prepare(problem(Softmax(classes=3)), target, solver="objective-perturbation")
    with pytest.raises(PreconditionError, match="added or removed"):
        prepare(problem(adjacency="replace-one"), target, solver="objective-perturbation")
    with pytest.raises(InputError, match="did you mean 'dual-admm'"):
        prepare(problem(), target, solver="dual-adm")
    with pytest.raises(InputError, match="use EpsilonDelta"):
        prepare(problem(), PureEpsilon(epsilon=1.0))


def test_many_columns_are_left_to_those_who_do_not_look_at_them_all() -> None:
    wide = {"features": 1500, "records": 5000}

    def chosen(loss, epsilon: float, **rest):
        return prepare(problem(loss, **(wide | rest)), EpsilonDelta(epsilon=epsilon, delta=1e-5))

    for loss in (Logistic(), Hinge(), Softmax(classes=3), Squared()):
        assert chosen(loss, 1.0).solver == "wide"
    assert "preconditioned is expected to lose" in chosen(Logistic(), 10.0).reason
    assert chosen(Hinge(), 1.0, features=50).solver == "preconditioned"


def test_objective_perturbation_with_an_intercept_is_offered_up_to_1200_columns() -> None:
    """Beyond, the minimiser that its bound needs would not be found in time; that is said before data are touched."""
    target, free = EpsilonDelta(epsilon=5.0, delta=1e-5), Unpenalized(inner=L2(strength=1e-3), last=1)
    for features, regularizer in ((1200, free), (1201, L2(strength=1e-3))):
        asked = problem(features=features, regularizer=regularizer)
        assert prepare(asked, target, solver="objective-perturbation").solver == "objective-perturbation"
    with pytest.raises(PreconditionError, match="without an intercept"):
        prepare(problem(features=1201, regularizer=free), target, solver="objective-perturbation")


def test_every_named_solver_can_be_asked_for() -> None:
    for name in names():
        chosen = prepare(problem(), EpsilonDelta(epsilon=1.0, delta=1e-5), solver=name)
        assert (chosen.solver, chosen.reason) == (name, f"{name}: asked for by name.")


def test_releases_of_the_second_moment_follow_its_noise() -> None:
    assert _moment_releases(request(10.0, records=100_000)) == 2
    assert _moment_releases(request(0.1, records=3000)) == 1
    assert _moment_releases(request(0.05, records=1000, features=200)) == 0
    assert _moment_releases(request(10.0, records=100_000, features=1201)) == 0


def test_a_pilot_is_left_out_where_it_would_be_noise() -> None:
    quiet, loud = (request(epsilon, loss=Squared(), records=10_000, features=20) for epsilon in (1.0, 0.05))
    assert residual_noise(quiet) < residual_noise(loud)
    assert recipe(quiet)[0].warmup_steps == 2
    assert (recipe(loud)[0].warmup_steps, recipe(loud)[0].fewest_steps) == (0, 1)
    assert recipe(request(1.0))[0].warmup_steps == 0  # labels have no residuals


def test_rules_go_from_short_and_damped_to_long_and_free() -> None:
    loud, quiet = NoiseLevels(score=1.0), NoiseLevels(score=0.001)
    assert loud.steps(1.0, residuals=False) < quiet.steps(1.0, residuals=False)
    assert loud.clip < quiet.clip
    assert loud.slopes < quiet.slopes <= 1.0
    assert NoiseLevels(score=0.0).steps(1.0, residuals=True) == np.inf
    assert damping(0.0, 1.0, 1.0) == 0.0
    assert damping(0.2, 1.0, 1.0) > damping(0.1, 1.0, 1.0) > 0


@pytest.mark.parametrize(("outputs", "curvature"), [(1, 0.1), (1, 0.2), (9, 0.04)])
def test_rows_of_labels_are_shortened_where_noise_costs_more_than_that(outputs: int, curvature: float) -> None:
    def cost(clip: float, score: float) -> float:
        # Noise, and what is cut off of rows that end at two typical lengths.
        return outputs * curvature * (score * clip) ** 2 + (WEIGHED_ALIKE * (LONGEST - clip)) ** 2

    clips = np.linspace(SHORTEST, LONGEST, 1601)
    for score in (0.02, 0.05, 0.1):
        levels = NoiseLevels(score=score, outputs=outputs, curvature=curvature)
        best = clips[np.argmin([cost(clip, score) for clip in clips])]
        tails = LONGEST * np.cbrt((QUIET / score) ** 2 / outputs)
        assert levels.clip == pytest.approx(max(best, tails), abs=1e-3)
    # However little noise there is, the clip goes on growing, for rows with heavy tails.
    assert NoiseLevels(score=1e-4).clip > 4 * LONGEST


def test_residuals_are_clipped_closer_where_noise_is_loud() -> None:
    clips = np.linspace(LEAST_CLIP, FIRST_CLIP, 1601)
    for score in (0.001, 0.02, 0.05, 1.0):
        # Noise in all directions, twice that in those that stand out, and what is cut off.
        costs = (2 * score * clips) ** 2 + (LOUD * (FIRST_CLIP - clips)) ** 2
        assert NoiseLevels(score=score).first_clip(2.0) == pytest.approx(clips[np.argmin(costs)], abs=1e-3)


def test_a_fit_clips_residuals_closer_with_less_budget() -> None:
    rng = np.random.default_rng(0)
    rows, targets = rng.normal(size=(600, 5)) / 4, rng.normal(size=600)

    def find_scale(epsilon: float) -> float:
        asked = PrivateHuberRegressor(
            epsilon=epsilon, delta=1e-5, row_bound=1.0, target_bound=4.0, adjacency="add-remove", random_state=0
        )
        return float(asked.fit(rows, targets).scale_)

    assert find_scale(0.3) < 0.45 * find_scale(3.0)


def test_the_variance_of_scores_is_found_under_the_noise() -> None:
    rng = np.random.default_rng(0)
    signal = np.full(2000, 0.5)
    for noise in (0.01, 0.5):
        found = estimate_variance(signal + noise * rng.normal(size=2000), noise, 1.0, Logistic(), 1.0)
        assert found == pytest.approx(signal @ signal, rel=0.2)


def test_a_step_is_halved_only_when_gradients_turn_by_more_than_noise() -> None:
    forth = np.array([1.0, 0.0, 0.0])
    assert shorter(1.2, -forth, forth, 0.0) == 0.6
    assert shorter(1.2, -0.5 * forth, forth, 0.0) == 1.2  # it gets shorter: convergence
    assert shorter(1.2, forth, forth, 0.0) == 1.2
    assert shorter(1.2, -forth, forth, 1.0) == 1.2  # noise explains it


def test_only_one_norms_are_strengthened() -> None:
    stronger = sparser(L1(strength=0.25), 0.5)
    assert stronger == L1(strength=0.75)
    assert sparser(ElasticNet(l1=0.25, l2=0.5), 0.5) == ElasticNet(l1=0.75, l2=0.5)
    assert sparser(Unpenalized(inner=L1(strength=0.25), last=1), 0.5) == Unpenalized(inner=stronger, last=1)
    for other in (ElasticNet(l1=0.0, l2=0.5), L2(strength=0.1), NoPenalty()):
        assert sparser(other, 0.5) == other


def test_a_plan_knows_nothing_of_the_data_and_a_fit_only_what_was_released() -> None:
    """Rows that no noise can hide change the model; the plan, the card and what every release costs stay the same."""
    rng, asked = np.random.default_rng(3), problem(records=400, features=4)
    chosen = prepare(asked, EpsilonDelta(epsilon=1.0, delta=1e-5), sampler=Seeded(0))
    rows = rng.uniform(-0.5, 0.5, size=(400, 4))
    one = run(chosen, Shards.from_parties(asked, [(rows, np.sign(rows[:, 0]))]))
    two = run(chosen, Shards.from_parties(asked, [(0 * rows, np.ones(400))]))
    assert not np.allclose(one.model, two.model)
    assert one.card(1e-5) == two.card(1e-5)


def test_shortened_rows_do_not_make_the_penalty_heavier() -> None:
    """Without noise, a clip that shortens every row alike leaves the optimum where it is."""
    rng = np.random.default_rng(5)
    rows = rng.normal(size=(500, 4))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    labels = np.where(rng.random(500) < 1 / (1 + np.exp(-4 * rows[:, 0])), 1.0, -1.0)
    asked = problem(records=500, features=4, regularizer=L2(strength=0.05))
    found = []
    for clip in (0.3, 10.0):
        made = PreconditionedFixedPoint(moment_releases=0, steps=400, clip=clip, averaging=False, damping=False)
        exact = plan(asked, made, rounds=400, noise={"gradient": NoNoise()}, sampler=Seeded(0))
        found.append(run(exact, Shards.from_parties(asked, [(rows, labels)])).model)
    assert found[0] == pytest.approx(found[1], abs=1e-3)


def test_noise_does_not_argue_against_damping() -> None:
    """Where noise is all there is, the variance of scores is what scores can be, not what noise is."""
    noise = np.random.default_rng(1).normal(size=50)
    assert estimate_variance(30.0 * noise, 30.0, 1.0, Logistic(), 1.0) <= 16.0
    assert estimate_variance(np.full(50, 30.0), 0.1, 1.0, Logistic(), 1.0) > 1000.0
    assert visible_share(Metric.of(np.eye(4)), 4) == 1.0
    assert 0 < visible_share(Metric.round(1.0), 100) < visible_share(Metric.round(1.0), 2) < 1


def test_the_gradient_at_the_constant_model_is_told_by_the_one_at_zero() -> None:
    """All slopes move alike, so that the sum moves by a column of the second moment."""
    rng, constant = np.random.default_rng(2), 0.5
    rows = np.column_stack([rng.normal(size=(300, 2)) + 0.4, np.full(300, constant)])
    labels = np.sign(rows[:, 0] + 0.8)
    metric, loss = Metric.of(rows.T @ rows / 300), Logistic()

    def gradient(score: float) -> np.ndarray:
        slopes = loss.slope(np.full(300, score), labels)
        return metric.apply(slopes @ rows / 300, -0.5)

    assert move_to_constant(gradient(0.0), metric, np.array([1.3]), constant, 1.0) == pytest.approx(gradient(1.3))


def test_counts_of_labels_get_more_where_noise_is_loud_with_a_hinge_only() -> None:
    """Steps on a log loss tell of the constant part: up to 0.3 for counts cost small tables more than it told them."""

    def share(loss: Any, epsilon: float) -> float:
        asked = replace(request(epsilon, loss=loss, records=1000, features=50), constant=0.5)
        return float(recipe(asked)[0].counts_share)

    assert [share(Logistic(), epsilon) for epsilon in (0.05, 0.5, 5.0)] == [TARGETS_SHARE] * 3
    few, some, many = (share(Hinge(), epsilon) for epsilon in (0.05, 0.5, 5.0))
    assert MOST_COUNTS > few > some >= many == TARGETS_SHARE
    # Shares of many classes that noise explains are those of classes that are alike.
    noisy = 0.1 + 0.03 * np.random.default_rng(0).normal(size=10)
    assert np.abs(estimate_shares(noisy, 0.03) - 0.1).max() < np.abs(noisy - 0.1).max() / 2


def test_more_steps_on_labels_are_averaged_where_noise_is_loud() -> None:
    assert [NoiseLevels(score=score).skip_early(12) for score in (0.0, 1e-3, 0.5, 1.0, 3.0, 1e9)] == [6, 6, 6, 3, 1, 0]


def test_steps_and_slopes_follow_the_number_of_classes() -> None:
    assert steepest(Logistic()) == steepest(Softmax(classes=3)) == 1.0
    assert steepest(Softmax(classes=100)) == pytest.approx(5.0)
    loud, quiet = NoiseLevels(score=10.0), NoiseLevels(score=1e-4)
    assert loud.slopes_of_classes < loud.slopes < quiet.slopes_of_classes <= 1.0


def test_a_constant_model_is_read_off_noisy_counts() -> None:
    assert estimate_shares(np.array([0.9, 0.1]), 0.0) == pytest.approx([0.9, 0.1])
    assert estimate_shares(np.array([0.99, 0.01]), 1e-4) == pytest.approx([0.99, 0.01], abs=1e-3)
    # Counts that are noise say next to nothing, however extreme they are.
    assert np.abs(estimate_shares(np.array([40.0, -25.0]), 30.0) - 0.5).max() < 0.1
    asked = problem(Squared(), records=6400)
    counts = np.zeros(64)
    counts[48:52] = 1600.0
    found = read_constant_model(asked, counts, 5.0)
    assert found.scores == pytest.approx([2.0 * (2 * 50 / 64 - 1)])
    assert 0.03 < found.spread < 0.1
    nothing = read_constant_model(asked, counts, 1e6)
    assert nothing.scores[0] == pytest.approx(0.0, abs=0.01)
    assert 1.0 < nothing.spread <= 2.0


@pytest.mark.parametrize("records", [51, 80])
def test_targets_around_zero_that_noise_hides_have_no_centre(records: int) -> None:
    """Noise moved the centre of 51 targets by a sixth of their range: 0.03 of the squared bound above the constant."""
    noise, off = 38.0, []  # of counts at epsilon 0.1 with half of the squared budget
    for draw in range(200):
        rng = np.random.default_rng(draw)
        counts = np.histogram(np.clip(0.2 * rng.normal(size=records), -1, 1), 8, (-1, 1))[0]
        off.append(fit_law(counts + noise * rng.normal(size=8), records, noise)[0])
    assert np.mean(np.square(off)) < 0.015
    # A centre that stands out is found, wherever it is.
    told = np.zeros(8)
    told[6] = 50.0 * records
    assert fit_law(told, 50.0 * records, noise)[0] == pytest.approx(0.625, abs=0.05)


def test_the_default_square_lets_few_columns_have_the_scores_that_labels_call_for() -> None:
    common: dict[str, Any] = {"row_bound": 2.0, "records": 1000.0, "target_bound": None}
    for loss in (Logistic(), Softmax(classes=3), Hinge()):
        assert usual_penalty(loss, features=3, **common) == L2(strength=4 / 16_000)
        assert usual_penalty(loss, features=40, **common) == L2(strength=4 / 40_000)


def test_labels_that_one_of_few_columns_separates_are_learnt() -> None:
    """With a square that allowed scores the variance 3, log losses were 0.016 at epsilon 30."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (2000, 3))
    y = (X[:, 0] > 0.2).astype(int)
    common: dict[str, Any] = {"row_bound": 1.7, "records": 2000, "adjacency": "add-remove"}
    losses = []
    for seed in range(4):
        model = PrivateLogisticRegression(epsilon=30.0, delta=1e-5, random_state=seed, **common).fit(X, y)
        losses.append(np.mean(np.logaddexp(0.0, -(2 * y - 1) * model.decision_function(X))))
    assert np.mean(losses) < 0.0145


def test_few_targets_are_counted_in_few_bins_with_more_of_the_budget() -> None:
    """353 records at epsilon 0.5 had a bin of noise taken for all of them: a centre anywhere, a spread of nothing."""
    few, many = (recipe(request(0.5, loss=Squared(), records=records))[0] for records in (353, 10_000))
    assert few.target_bins < many.target_bins == 64
    assert few.counts_share > many.counts_share == TARGETS_SHARE
    assert recipe(request(0.01, loss=Squared(), records=353))[0].counts_share == MOST_NUMBERS
    rng, asked = np.random.default_rng(0), problem(Squared(), records=400)
    for law in (rng.normal(0.9, 0.4, 400), 0.1 + rng.exponential(0.5, 400)):
        edges = np.linspace(-2, 2, 9)
        counts = np.histogram(np.clip(law, -2, 2), edges)[0]
        found = [read_constant_model(asked, counts + 25 * rng.normal(size=8), 25.0) for _ in range(20)]
        assert np.abs([each.scores[0] - law.mean() for each in found]).mean() < 0.15
        assert 0.6 < np.median([each.spread for each in found]) / law.std() < 1.6


def test_a_clip_follows_the_size_of_residuals_and_the_noise() -> None:
    rng = np.random.default_rng(2)
    asked = problem(Squared(), records=10_000)
    for scale in (0.1, 0.001):
        counts = np.bincount(find_bins(scale * rng.normal(size=10_000)), minlength=BINS).astype(float)
        found = Sizes.read(asked, counts, 5.0)
        assert found is not None
        assert found.median() == pytest.approx(0.6745 * scale, rel=0.15)
        loud, quiet = found.best_clip(1.0), found.best_clip(1e-3)
        assert 0.1 * scale < loud < 2 * scale < quiet
    assert Sizes.read(asked, counts, 1e5) is None


@pytest.mark.parametrize("away", [0.0, 0.01, -0.02])
@pytest.mark.parametrize("law", ["exponential", "lognormal", "gamma"])
def test_what_a_clip_cuts_off_on_one_side_is_read_off_counts(law, away) -> None:
    rng = np.random.default_rng(0)
    draws = {
        "exponential": rng.exponential,
        "lognormal": rng.lognormal,
        "gamma": lambda size: rng.gamma(0.5, size=size),
    }
    slopes = -0.01 * draws[law](size=100_000) + away
    clip = 0.8 * slopes.std()
    asked, balanced = problem(Squared(), records=100_000), slopes.mean()
    for _ in range(100):
        balanced += np.clip(slopes - balanced, -clip, clip).mean()
    counts = np.bincount(find_bins(slopes), minlength=BINS) + 30.0 * rng.normal(size=BINS)
    true = slopes.mean() - balanced
    assert true < 0
    assert 0.3 * true > find_pull(asked, counts, 30.0, clip) > 1.5 * true
    assert find_pull(asked, -counts, 30.0, clip) == 0  # nothing stands out
    mirrored = np.concatenate([counts[BINS // 2 :], counts[: BINS // 2]])
    assert find_pull(asked, mirrored, 30.0, clip) == pytest.approx(-find_pull(asked, counts, 30.0, clip))


def test_symmetric_residuals_are_not_pulled() -> None:
    """Of twenty draws of each law: what is added for noise alone is less than a twentieth of a spread, once."""
    rng, pulls, asked = np.random.default_rng(1), [], problem(Squared())
    for draw in (rng.normal, rng.laplace, lambda size: rng.standard_t(3, size=size)):
        for _ in range(20):
            slopes = np.clip(0.02 * draw(size=10_000), -1, 1)
            counts = np.bincount(find_bins(slopes), minlength=BINS) + 30.0 * rng.normal(size=BINS)
            pulls.append(abs(find_pull(asked, counts, 30.0, 0.8 * slopes.std())) / slopes.std())
    assert sum(pull > 0 for pull in pulls) <= 3
    assert max(pulls) < 0.05


def test_a_mean_is_fitted_where_residuals_are_skewed() -> None:
    """The mean prediction was 0.3 too low at epsilon 1, with residuals of a spread of 1."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(20_000, 4))
    y = X @ [0.5, -0.5, 0.2, 0.0] + rng.exponential(size=20_000)
    fits = [
        PrivateRidge(epsilon=1.0, row_bound=2.0, target_bound=12.0, random_state=seed).fit(X, y) for seed in range(3)
    ]
    assert abs(np.mean([fit.predict(X).mean() for fit in fits]) - y.mean()) < 0.06
    robust = PrivateHuberRegressor(epsilon=1.0, row_bound=2.0, target_bound=12.0, random_state=0).fit(X, y)
    assert robust.predict(X).mean() < y.mean() - 0.1  # whoever asks for Huber's loss has it


def test_expected_excess_falls_with_budget_and_records_and_names_what_is_chosen() -> None:
    def forecast(epsilon: float, **rest):
        return expected_excess(problem(**rest), EpsilonDelta(epsilon=epsilon, delta=1e-5))

    for loss in (Logistic(), Softmax(classes=5), Squared(), Hinge(), Absolute()):
        costs = [forecast(epsilon, loss=loss).excess for epsilon in (0.1, 1.0, 10.0)]
        assert costs[0] > costs[1] > costs[2] > 0
        assert forecast(1.0, loss=loss, records=1000).excess > forecast(1.0, loss=loss).excess
        assert forecast(1.0, loss=loss).solver == prepare(problem(loss), EpsilonDelta(epsilon=1.0, delta=1e-5)).solver
    assert forecast(1e-4).share_lost == 1.0
    assert forecast(1.0, parties=100).excess > 50 * forecast(1.0).excess  # every party adds its own noise
    assert forecast(1.0, adjacency="replace-one").excess == pytest.approx(4 * forecast(1.0).excess)


@pytest.mark.parametrize("loss", [Logistic(), Softmax(classes=4)], ids=lambda loss: loss.name)
def test_a_first_gradient_refutes_that_rows_tell_nothing_and_never_says_that_they_do(loss) -> None:
    rng = np.random.default_rng(0)
    signal = np.zeros(20 * loss.outputs)
    signal[0] = 0.5

    def draw(noise: float, size: float) -> list[float]:
        gradients = size * signal + noise * rng.normal(size=(200, len(signal)))
        apart = (drop_common_part(each, loss.outputs) for each in gradients)
        return [refute_nothing(each, noise, 0.25, loss, 1.0) for each in apart]

    # Noise that hides the signal, and less and less of it.
    told = [float(np.mean(draw(noise, 1.0))) for noise in (1.0, 0.1, 0.06, 0.003)]
    assert -1 < told[0] <= 0
    assert told[0] > told[1] > told[2] > told[3] == REFUTED
    # Of noise alone few draws look like anything.
    alone = np.array([draw(noise, 0.0) for noise in (1.0, 0.1, 0.01)])
    assert np.mean(alone < -2) < 0.05
    assert alone.max() <= 0
    assert refute_nothing(signal, 0.0, 0.25, loss, 1.0) == REFUTED
