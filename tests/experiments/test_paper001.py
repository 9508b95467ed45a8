"""Paper 001 on a grid smaller than quick: the lemma, the order of the bounds, every user, a report made of results."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from experiments.paper001 import divergence, training
from experiments.paper001.definition import PAPER
from experiments.paper001.verdicts import verdicts
from experiments.paper001.world import FEATURES, world
from experiments.reproduction import reproduce
from experiments.results import Results
from tests.experiments import stored
from tests.experiments.changing import unchanging
from tests.experiments.stored import GRIDS

from experiments import report

TINY = GRIDS["001"]


@pytest.mark.slow
def test_one_iteration_does_not_expand_in_the_custom_norm(fresh):
    for _, values in fresh.rows("pairs"):
        assert max(values["custom"]) <= values["bound"] * (1 + 1e-9)
        assert max(values["plain"]) > 2  # which is why a norm had to be found
    for _, values in fresh.rows("coupled"):
        assert np.all(np.diff(values["custom"]) <= 1e-12)
        assert max(values["plain"]) > values["plain"][0]


@pytest.fixture(scope="module")
def divergences(tmp_path_factory) -> Results:
    return stored.compute("001", tmp_path_factory.mktemp("cells"), group="divergence")


def test_exact_below_sharpened_below_printed(divergences):
    for kind in ("convex", "strongly convex"):
        (_, values), *_ = divergences.rows(f"divergence {kind}")
        exact, ours, printed = (np.array(values[name]) for name in ("exact", "ours", "printed"))
        assert np.all(exact <= ours)
        assert np.all(ours < printed)
        assert np.all(np.diff(exact) < 0)
        assert np.all(ours < values["own"])
    convex, strong = (
        np.array(divergences.rows(f"divergence {k}")[0][1]["ours"]) for k in ("convex", "strongly convex")
    )
    assert np.all(strong[1:] < convex[1:])


def test_figures_of_the_convex_bounds(divergences):
    values = divergences.rows("divergence convex")[0][1]
    by_later = {n: (p, o) for n, p, o in zip(TINY.later, values["printed"], values["ours"], strict=True)}
    assert by_later[2] == pytest.approx((3.0, 0.291), rel=2e-3)
    assert by_later[10] == pytest.approx((0.6, 0.109), rel=5e-3)
    assert by_later[100] == pytest.approx((0.06, 0.0135), rel=5e-3)


def test_the_exact_cost_in_the_kernel_is_that_of_noisy_descent():
    # Without a constraint the shift stays and variances add up: a / (m + 1).
    found = divergence._scalar(1.0, 1.0, 1.0, 1.0, 1.0, 0.0, 1.0, 9)
    assert found == pytest.approx([0.5 / (m + 1) for m in range(10)])


@pytest.mark.slow
def test_every_user(fresh):
    (_, values), *_ = fresh.rows("users convex")
    seen = values["every iterate seen"]["order 2"][0]
    fixed = values["fixed order"]["order 2"]
    assert fixed[-1] == pytest.approx(seen)
    assert np.all(np.diff(fixed) >= -1e-15)
    for order in ("random order", "random stopping"):
        assert max(values[order]["order 2"]) < seen / 2
        assert max(values[order]["epsilon"]) < values["every iterate seen"]["epsilon"][0]


@pytest.mark.slow
def test_more_noise_and_less_contraction_are_worse(fresh):
    def end(**asked) -> float:
        return float(np.mean([values["excess"][-1] for _, values in fresh.rows("path", **asked)]))

    assert end(convexity=0.1, std=0.0) < end(convexity=0.1, std=0.03)
    assert end(convexity=0.1, std=0.003) < end(convexity=0.0, std=0.003)


def test_the_minimum_is_one():
    made, rng = world(200, 0.1), np.random.default_rng(0)
    near = [made.objective(0.01 * rng.normal(size=FEATURES)) for _ in range(20)]
    assert made.best < min(near)
    # ADMM with everybody's gradient arrives at the same value.
    hub = training.Hub(x=np.zeros(FEATURES), dual=np.zeros(FEATURES - 1))
    for count in range(20_000):
        if count % 500 == 0 and made.objective(hub.x) <= made.best * (1 + 5e-5):
            break
        x, dual = made.algorithm.advance(made.problem, hub, made.shards.cohort().gradient(hub.x).mean(axis=0))
        hub = training.Hub(x=x, dual=dual)
    assert made.objective(hub.x) == pytest.approx(made.best, rel=1e-4)
    assert made.objective(hub.x) >= made.best - 1e-9


@pytest.mark.slow
def test_equal_guarantees(fresh):
    for asked, values in fresh.rows("guaranteed", schedule="fixed order"):
        told = values["first half" if asked["accounting"] == "sharpened" else "first half, printed"]
        assert told == pytest.approx(asked["epsilon"], rel=1e-6)
        assert values["checked"] > 100
    for epsilon in TINY.epsilons:
        stds = [fresh.values("std", "guaranteed", accounting=a, epsilon=epsilon)[0] for a in ("printed", "sharpened")]
        assert stds[1] < stds[0]


def test_gradients_are_those_of_the_library():
    made, x = world(50, 0.0), np.linspace(-1, 1, FEATURES)
    assert made.gradient(7, x) == pytest.approx(made.shards.cohort(7).gradient(x)[0])


def changed(results: Results, group: str) -> Results:
    def scaled(value):
        if isinstance(value, dict):
            return {name: scaled(item) for name, item in value.items()}
        if isinstance(value, list):
            return [scaled(item) for item in value]
        return 1.37 * value + 0.003 if isinstance(value, float) else value  # distances are shown as ratios

    return Results(
        {
            cell: {name: value if name == "card" else scaled(value) for name, value in values.items()}
            if cell.group == group
            else values
            for cell, values in results.items()
        }
    )


def test_every_result_is_in_the_report(results, tmp_path):
    def page(found: Results, name: str) -> str:
        outcome = PAPER.gather(TINY, found)
        written = report.write(PAPER, replace(outcome, figures=()), tmp_path / name, made={"grid": "tiny"})
        return written.read_text() + repr(outcome.figures)

    before = page(results, "before")
    for group in dict.fromkeys(cell.group for cell in results):
        assert page(changed(results, group), group) != before, group


def test_verdicts(results):
    def states(found: Results) -> list[str]:
        return [verdict.state for verdict in verdicts(found)]

    def with_(group: str, edit) -> list[str]:
        return states(Results({cell: edit(v) if cell.group == group else v for cell, v in results.items()}))

    def exposed(values):
        return {**values, "random stopping": {**values["random stopping"], "order 2": [9.0]}}

    assert states(results) == [verdict.state for verdict in PAPER.gather(TINY, results).verdicts]
    assert unchanging(states, results) == []
    assert states(results) == ["reproduced"] * 5
    assert with_("pairs", lambda v: {**v, "custom": [1.01, *v["custom"]]})[0] == "not reproduced"
    assert with_("divergence convex", lambda v: {**v, "exact": [9.0 for _ in v["exact"]]})[1] == "not reproduced"
    assert with_("divergence strongly convex", lambda v: {**v, "exact": [9.0 for _ in v["exact"]]})[2] == (
        "not reproduced"
    )
    faster = [cost**2 for cost in results.rows("divergence convex")[0][1]["exact"]]
    assert with_("divergence convex", lambda v: {**v, "exact": faster})[3] == "not reproduced"
    assert with_("users convex", exposed)[4] == "not reproduced"


@pytest.mark.slow
def test_one_command_leaves_everything(results, tmp_path):
    kept = replace(
        PAPER,
        grids={"tiny": TINY},
        cells=lambda grid: (),
        gather=lambda grid, found: PAPER.gather(TINY, results),
    )
    done = reproduce(kept, "tiny", tmp_path, workers=0, listed=(PAPER,))
    for name in ("divergence", "expansion", "objective", "users", "equal"):
        assert (tmp_path / "001" / f"{name}.png").stat().st_size > 10_000
    assert "No numbers." in done.page.read_text()


@pytest.mark.parametrize("grid", ["quick", "full"])
def test_grids(grid):
    made = PAPER.cells_of(grid)
    assert len(set(made)) == len(made)
    assert max(PAPER.grids[grid].later) == 400
    seconds = sum(cell.seconds for cell in made) / 2
    assert seconds < 300 if grid == "quick" else seconds > sum(cell.seconds for cell in PAPER.cells_of("quick")) / 2
