"""Every form that the solvers' rules give to PreconditionedFixedPoint obeys the laws."""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np
import pytest
from tests.algorithms.transcription import SEED, clean, drawn_on_sum, noise_of, silos, with_and_without_noise

from consenso.algorithms.preconditioned import PreconditionedFixedPoint
from consenso.algorithms.preconditioning.whitening import Slopes, Whitening, estimate_trace, factors, sum_gradients
from consenso.algorithms.shape import Example
from consenso.errors import ConsensoError, InputError, MessageError
from consenso.losses import Absolute, Hinge, Huber, Softmax, Squared
from consenso.metric import Metric
from consenso.planning.plan import plan
from consenso.privacy.noise import GaussianNoise, NoNoise
from consenso.privacy.samplers import Seeded
from consenso.problem import Problem
from consenso.regularizers import L2, NoPenalty
from consenso.rows import sum_step
from consenso.shards import Shards
from consenso.testing import laws
from consenso.testing.attacks import SLOW_TRIALS, attacks_stay_below
from consenso.testing.plans import execute, plan_example, shards_of
from consenso.testing.worlds import draw

ELSEWHERE = (laws.reaches_optimum, laws.attacks_stay_below, laws.lies_gain_nothing, laws.check_sensitivity)
CHECKED = tuple(law for law in laws.EVERY if law not in ELSEWHERE)


def form(loss, **parameters) -> Example:
    """The discovered example with another loss and other parameters."""
    given = PreconditionedFixedPoint.example()
    made = PreconditionedFixedPoint(**{"steps": 5, **parameters})
    problem = replace(given.problem, loss=loss, target_bound=2.0 if loss.targets == "real" else None)
    noise = {name: GaussianNoise(multiplier=2.0) for name in made.noise_weights}
    return replace(
        given, algorithm=made, problem=problem, noise=noise, exact=None, rounds=made.other_rounds + 5, regularizers=()
    )


FORMS = {
    "no second moment": lambda: form(Huber(), moment_releases=0),
    "two second moments": lambda: form(Softmax(classes=3), moment_releases=2),
    "slopes clipped": lambda: form(Squared(), moment_releases=1),
    "warm-up": lambda: form(Squared(), moment_releases=2, warmup_steps=1),
    "kinks": lambda: form(Hinge(), moment_releases=1, smoothing=0.5),
    "smoothed squares": lambda: form(Squared(), moment_releases=1, warmup_steps=1, smoothing=0.5),
    "kinks and a warm-up": lambda: form(Absolute(), moment_releases=1, warmup_steps=2, smoothing=2.0),
    "counts of classes and a length": lambda: form(
        Softmax(classes=3), moment_releases=0, counts=True, constant=0.5, lengths=True
    ),
    "counts of numbers": lambda: form(
        Squared(), moment_releases=1, warmup_steps=1, counts=True, constant=0.5, follows=True
    ),
    "counts and a threshold": lambda: form(Squared(), moment_releases=0, warmup_steps=1, counts=True, threshold=1.35),
}


@with_and_without_noise
@pytest.mark.parametrize("moments", [0, 1, 2])
def test_iterates_follow_the_paper(moments, multiplier) -> None:
    """docs/privacy.md, "Preconditioned": whiten by the released second moments, then noisy Newton-like steps.

    Squared losses and a square as regularizer, the clip given in typical lengths of a whitened row, no damping.
    """
    steps, clip, strength, relaxed = 4, 0.6, 0.1, 1.2
    problem, shards, parties = silos(Squared(), L2(strength=strength))
    rows, targets = np.concatenate([rows for rows, _ in parties]), np.concatenate([targets for _, targets in parties])
    n = len(rows)
    names = ("second moment", "gradient") if moments else ("gradient",)
    made = plan(
        problem,
        PreconditionedFixedPoint(moment_releases=moments, steps=steps, clip=clip, damping=False, averaging=False),
        rounds=moments + steps,
        noise={name: noise_of(multiplier) for name in names},
        sampler=Seeded(SEED),
        trust="curator",
    )
    model, _ = execute(made, shards)

    def shortened(root, length):
        whitened = rows @ np.linalg.inv(root)
        return whitened * np.minimum(1, length / np.linalg.norm(whitened, axis=1))[:, None]

    def noisy_moment(k, table, std):
        """Mean second moment with symmetric noise, off-diagonals of a root of two less."""
        noise = np.zeros((3, 3))
        noise[np.triu_indices(3)] = drawn_on_sum(k, 6, std)
        noise = np.where(np.eye(3), noise, noise / np.sqrt(2))
        return (table.T @ table + noise + np.triu(noise, 1).T) / n

    def floored(moment, std):
        """S/n, its eigenvalues cleaned of noise, + floor, and how many directions stand out of the floor."""
        values, vectors = np.linalg.eigh(moment)
        floor, found = max(0.5 * std / n * np.sqrt(6), 1e-6), clean(values, std / n)
        return (vectors * (found + floor)) @ vectors.T, max(1.0, np.sum(found / (found + floor)))

    def root_of(matrix):
        values, vectors = np.linalg.eigh(matrix)
        return (vectors * np.sqrt(np.clip(values, 1e-6, 1))) @ vectors.T

    root, effective = np.eye(3), 1.0
    for k, share in enumerate({0: (), 1: (1.0,), 2: (1 / 3, 2 / 3)}[moments]):
        # A row contributes a a', which replacing one changes by sqrt(2); a part of the cost has more noise.
        if k == 0:
            std = multiplier * np.sqrt(2) / np.sqrt(share)
            matrix, effective = floored(noisy_moment(k, rows, std), std)
        else:
            length = max(clip, 0.8) * np.sqrt(effective)
            std = multiplier * np.sqrt(2) / np.sqrt(share) * length**2
            matrix, effective = floored(noisy_moment(k, shortened(root, length), std), std)
            matrix = root @ matrix @ root
        root = root_of(matrix)
    length = min(clip * np.sqrt(effective), 1 / np.sqrt(np.linalg.eigvalsh(root @ root)[0]))
    weight, x, before = min(1, length / np.sqrt(effective)), np.zeros(3), np.zeros(3)
    for k in range(steps):
        slopes = np.clip(rows @ x - targets, -3, 3)
        std = multiplier * 2 * 3 * length * np.sqrt(steps)
        gradient = (slopes @ shortened(root, length) + drawn_on_sum(moments + k, 3, std)) / n
        lengths, explained = (np.linalg.norm(gradient), np.linalg.norm(before)), std / n
        turned = gradient @ before < -3 * explained * sum(lengths) - 3 * explained**2 * np.sqrt(3)
        relaxed = relaxed / 2 if turned and lengths[0] > 0.8 * lengths[1] else relaxed
        bent = weight / relaxed * root @ root  # the curvature of a square is 1
        v = x - np.linalg.solve(bent, root @ gradient)
        x = np.linalg.solve(bent + weight * strength * np.eye(3), bent @ v)
        before = gradient
    # Rows are cut to some 24 bits for second moments, and sensitivities include what rounding does.
    np.testing.assert_allclose(model, x, rtol=1e-6, atol=1e-8)


@pytest.mark.sweep
@pytest.mark.parametrize("law", CHECKED, ids=lambda law: law.__name__)
@pytest.mark.parametrize("name", FORMS)
def test_a_form_obeys_the_law(name: str, law: laws.Law) -> None:
    law(FORMS[name]())


@pytest.mark.parametrize(("number", "name"), list(enumerate(FORMS)))
def test_no_release_of_a_form_moves_too_far(number: int, name: str) -> None:
    """Every unit and adjacency with a third of the sizes of noise, another third than the form before it."""
    laws.check_sensitivity(FORMS[name](), first=number)


@pytest.mark.parametrize(("number", "name"), list(enumerate(FORMS)))
def test_lies_to_a_form_gain_nothing(number: int, name: str) -> None:
    """Every form hears a sixth of the lies, another sixth than the form before it."""
    laws.lies_gain_nothing(FORMS[name](), one_in=6, first=number % 6)


@pytest.mark.slow
@pytest.mark.parametrize("law", [laws.check_sensitivity, laws.lies_gain_nothing], ids=lambda law: law.__name__)
@pytest.mark.parametrize("name", FORMS)
def test_a_form_obeys_a_long_law_in_full(name: str, law: laws.Law) -> None:
    law(FORMS[name]())


@pytest.mark.parametrize(
    ("name", "slow_trials"),
    [
        ("warm-up", SLOW_TRIALS),
        *(pytest.param(name, 1000, marks=pytest.mark.slow) for name in ("warm-up", "two second moments")),
    ],
)
def test_attacks_on_a_form_stay_below_its_claim(name: str, slow_trials: int) -> None:
    attacks_stay_below(replace(FORMS[name](), trusts=("curator",)), slow_trials=slow_trials)


def test_bad_parameters_are_refused() -> None:
    for bad in (
        {"moment_releases": 3},
        {"share": 0.0},
        {"share": 1.0},
        {"steps": 0},
        {"fewest_steps": 0},
        {"clip": 0.0},
        {"clip": np.nan},
        {"smoothing": -1.0},
        {"smoothing": np.inf},
        {"warmup_steps": 6},
        {"warmup_steps": -1},
    ):
        with pytest.raises(InputError):
            PreconditionedFixedPoint(**bad)


def test_a_loss_that_needs_smoothing_or_a_bound_is_refused_without() -> None:
    example = PreconditionedFixedPoint.example()
    for problem in (
        replace(example.problem, loss=Hinge()),
        replace(example.problem, loss=Absolute(), target_bound=1.0),
    ):
        with pytest.raises(ConsensoError, match="without smoothing"):
            plan(problem, PreconditionedFixedPoint(steps=3), rounds=4, noise=example.noise)


@pytest.mark.parametrize(
    ("lie", "refusal"),
    [
        ({"clip": 1e-6}, None),  # less noise, with rows shortened to the true clip
        ({"values": lambda values: values / 1e6}, "values lie in"),  # longer whitened rows, with the same noise
        ({"vectors": lambda vectors: 2 * vectors}, "metric"),
    ],
    ids=["clip", "values", "vectors"],
)
def test_a_hub_that_changes_its_word_hears_no_more_than_its_noise_is_for(lie, refusal) -> None:
    """Without noise: the length of a sum is at most records times the bound on slopes times the clip that is named."""
    named = {}

    class Lying(PreconditionedFixedPoint):
        def down(self, facts, hub):
            down = super().down(facts, hub)
            if facts.round == self.moment_releases + 2:
                down = replace(down, **{k: v(getattr(down, k)) if callable(v) else v for k, v in lie.items()})
            named[facts.round] = down.clip * down.width
            return down

    example = FORMS["two second moments"]()
    lying = Lying(**{each.name: getattr(example.algorithm, each.name) for each in fields(example.algorithm)})
    silent = {name: NoNoise() for name in example.noise}
    heard = {}

    def ask() -> None:
        execute(
            plan_example(replace(example, algorithm=lying, noise=silent), trust="curator"),
            shards_of(example),
            watch=lambda round_, total, hub: heard.__setitem__(round_, float(np.linalg.norm(total.total))),
        )

    if refusal is not None:
        with pytest.raises(MessageError, match=refusal):
            ask()
        return
    ask()
    bound = example.problem.sizes.sum() * example.problem.loss.slope_bound
    told = [round_ for round_ in heard if round_ >= lying.moment_releases]
    assert len(told) == 5
    assert all(0 < heard[round_] <= bound * named[round_] for round_ in told)


def test_the_scale_of_slopes_is_measured_at_their_declared_bound_whatever_the_hub_says() -> None:
    """Squared slopes over their squared bound are at most 1 for a record, which is what the noise accounts for."""

    class Lying(PreconditionedFixedPoint):
        def down(self, facts, hub):
            return replace(super().down(facts, hub), width=1.0, x=np.full(facts.dim, 1e3))

    example = FORMS["warm-up"]()
    lying = Lying(**{each.name: getattr(example.algorithm, each.name) for each in fields(example.algorithm)})
    silent = {name: NoNoise() for name in example.noise}
    heard = []
    execute(
        plan_example(replace(example, algorithm=lying, noise=silent), trust="curator"),
        shards_of(example),
        watch=lambda round_, total, hub: heard.append((round_, total)),
    )
    (scale,) = (np.asarray(total.total) for round_, total in heard if round_ == 3)
    assert 0 < scale.max() <= example.problem.sizes.sum()


def test_rows_are_shortened_by_the_matrix_that_whitens_them_even_if_it_is_none_of_a_metric() -> None:
    """Vectors that are not orthogonal, from the start: whitened rows still keep to the clip."""
    example = FORMS["two second moments"]()
    cohort = shards_of(example).cohort()
    crooked = Metric(np.diag([1.0, 5.0, 30.0]) + 1.0, np.array([1.0, 2.0, 3.0]))
    shortened = factors(cohort, crooked, 0.7)
    rows = np.concatenate([rows for rows, _ in draw(example.problem, np.random.default_rng(0))])
    lengths = np.linalg.norm(crooked.apply(rows * shortened[:, None], -0.5), axis=1)
    assert lengths.max() == pytest.approx(0.7)


@pytest.mark.parametrize("name", FORMS)
def test_the_model_does_not_depend_on_how_records_are_spread(name: str) -> None:
    example = FORMS[name]()
    parties = draw(example.problem, np.random.default_rng(0))
    together = [tuple(np.concatenate([party[part] for party in parties]) for part in (0, 1))]
    models = []
    for data in (parties, together):
        problem = replace(example.problem, sizes=np.array([len(targets) for _, targets in data]))
        made = plan_example(replace(example, problem=problem), trust="curator")
        models.append(execute(made, Shards.from_parties(problem, data))[0])
    assert models[0] == pytest.approx(models[1], rel=1e-8)


@pytest.mark.parametrize("width", [1.0, 0.03, 1e-3])
def test_the_grid_of_sums_is_as_fine_as_noise_is_small(width) -> None:
    """Noise is scaled by the width of slopes, and so must be what rounding to the grid adds to a record."""
    rng = np.random.default_rng(0)
    p, bound, clip = 6, 3.0, 0.7
    problem = Problem(
        loss=Squared(), regularizer=NoPenalty(), features=p, sizes=np.array([200]), row_bound=bound, target_bound=5.0
    )
    X = rng.normal(size=(200, p))
    X *= rng.uniform(0.1, 3.5, size=(200, 1)) / np.linalg.norm(X, axis=1, keepdims=True)
    whitening = Whitening(Metric.round(bound**2), clip, "test")
    declared = 5.0 * width * bound * clip * np.sqrt(p) * sum_step(1.0, 200)
    for row, target in zip(X, rng.normal(size=200) * 5, strict=True):
        one = replace(problem, sizes=np.array([1]))
        f = Shards.build(one, row[None], np.array([target]), np.array([0, 1])).cohort()
        f = replace(f, problem=problem)
        slope = Slopes(0.0, width).at(f, np.zeros(p))
        exact = slope[0] * whitening.factors(f)[0] * f._rows.matrix[0]
        assert np.linalg.norm(sum_gradients(f, np.zeros(p), Slopes(0.0, width), whitening)[0] - exact) <= declared


def test_noise_does_not_move_the_mean_length_of_rows_beyond_what_it_can_be() -> None:
    problem = replace(PreconditionedFixedPoint.example().problem, row_bound=2.0)
    for seen in (-50.0, 0.1, 2.0, 30.0):
        assert 1.0 <= estimate_trace(problem, seen, 10.0, 1.0) <= 4.0
        assert estimate_trace(problem, seen, 0.0, 1.0) == min(max(seen, 1.0), 4.0)
    assert estimate_trace(problem, 2.5, 0.01, 1.0) == pytest.approx(2.5)
    assert estimate_trace(problem, 2.5, 100.0, 1.0) == pytest.approx(2.5, rel=0.02)  # the middle of what it can be
    # The mean of the half of a normal law that is left.
    assert estimate_trace(problem, 1.0, 0.1, 1.0) == pytest.approx(1 + 0.1 * np.sqrt(2 / np.pi), rel=0.01)
