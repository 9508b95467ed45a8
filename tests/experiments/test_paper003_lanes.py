"""The published runs of paper 003 go side by side over blocks of images; what they must equal, written plainly."""

from __future__ import annotations

import math
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from experiments.definition import Cell
from experiments.paper003 import published
from experiments.paper003.blocks import HEIGHT, Blocks, lanes_of
from experiments.paper003.claims import printed_scale
from experiments.paper003.floats import exponential, logarithm
from experiments.paper003.lanes import fill, gradient_pass
from experiments.paper003.published import Run
from experiments.paper003.worlds import world
from experiments.running import perform
from scipy import stats

from experiments import checkpoints

IMAGES, ITERATIONS = 400, 25


def residuals(X, y, z):
    scores = X @ z
    found = np.exp(scores - scores.max(axis=1, keepdims=True))
    found /= found.sum(axis=1, keepdims=True)
    found[np.arange(len(y)), y] -= 1
    return found


def drawn_from(states, shape, *, output):
    drawn = np.empty(shape, dtype=np.float32)
    fill(drawn, states, output)
    return drawn


def plain(run, at):
    """The iteration as the papers print it, one agent after the other, dense and in double precision.

    Errors are measured after the iterations `at`.
    """
    here, method, epsilon = world("MNIST", IMAGES), run.method, run.epsilon
    states = published.states_of(run, here.classes)
    agents, total = here.agents, len(here.y)
    shape = (here.X.shape[1], here.classes)
    z, dual, w = np.zeros((agents, *shape)), np.zeros((agents, *shape)), np.zeros(shape)
    logarithm = math.log(1.25 / published.DELTA)
    images = here.X.astype(np.float64)
    errors, noise = [], []
    for t in range(1, ITERATIONS + 2):
        rho = min(1e9, 2 * 1.2 ** (t // 10_000) + 5 / epsilon)
        if not method.startswith("OutP"):
            w = np.mean([z[p] - dual[p] / rho for p in range(agents)], axis=0)
        drawn = 0.0
        for p in range(agents):
            X, y = (part[here.offsets[p] : here.offsets[p + 1]] for part in (images, here.y))
            h = residuals(X, y, z[p])
            divisor = len(X) if method == "OutP, its code" else total
            G = X.T @ h / divisor + 2 * published.BETA * z[p] / agents
            near = math.sqrt(t) / run.scaling
            if method == "OutP":
                longest = math.sqrt(2) * np.linalg.norm(here.X, axis=1).max()
                std = 2 * longest / (total * (rho + near)) * math.sqrt(2 * logarithm) / epsilon
            elif method == "OutP, its code":  # as Functions.py computes it, step by step
                c1, c3, size = len(X), len(X) / 4, shape[0] * shape[1]
                near = c3 + 4 * c1 * math.sqrt(size * t * logarithm) / (len(X) * epsilon * math.sqrt(4 * size))
                near /= run.scaling
                sigma = 2 * c1 * math.sqrt(2 * logarithm) / (len(X) * epsilon * (rho + near))
                std = sigma * sigma
            elif epsilon < math.inf:
                scale = printed_scale(X, h, epsilon=epsilon) * len(X) / total
                xi = scale * drawn_from(states, shape, output=False)
                G, drawn = G + xi, drawn + np.abs(xi).mean()
            if method.startswith("Trust"):
                radius = run.scaling * (1 / t**2 if "shrinking" in method else 1)
                z[p] = np.clip(w + (dual[p] - G) / rho, z[p] - radius, z[p] + radius)
            else:
                z[p] = (rho * w + dual[p] + near * z[p] - G) / (rho + near)
            if method.startswith("OutP") and epsilon < math.inf:
                xi = std * drawn_from(states, shape, output=True)
                z[p], drawn = z[p] + xi, drawn + np.abs(xi).mean()
        if method.startswith("OutP"):
            w = np.mean([z[p] - dual[p] / rho for p in range(agents)], axis=0)
        dual += rho * (w - z)
        if t in at:
            errors.append(here.test_error(w.astype(np.float32)))
            noise.append(drawn / agents)
    return errors, noise, float(np.abs(w - z).sum() / agents)


@pytest.mark.parametrize("method", published.METHODS)
def test_runs_side_by_side_are_the_papers_iteration(method: str, data_dir: Path) -> None:
    scaling = 100.0 if method == "Prox" else 1.0
    runs = tuple(Run(method, epsilon, seed, scaling) for epsilon, seed in ((0.05, 0), (5.0, 1), (math.inf, 0)))
    found = published.train(data="MNIST", runs=runs, images=IMAGES, iterations=ITERATIONS)
    for run, seen in zip(runs, found["runs"], strict=True):
        errors, noise, violation = plain(run, seen["at"])
        # Single precision moves a few of 10,000 test images.
        np.testing.assert_allclose(seen["errors"], errors, atol=0.15)
        np.testing.assert_allclose(seen["noise"], noise, rtol=0.02)  # the mean that is expected
        np.testing.assert_allclose(seen["violation"][-1], violation, rtol=1e-3, atol=1e-3)
        assert seen["last"] == seen["errors"][-1]
        assert seen["at"][-1] == ITERATIONS + 1


def test_a_run_does_not_depend_on_its_neighbours(data_dir: Path) -> None:
    asked = {"data": "MNIST", "images": IMAGES, "iterations": 10}
    own = (Run("Trust", 1.0, 3), Run("Trust, shrinking", 1.0, 3))
    together = published.train(runs=(Run("Prox", 0.05, 3), *own), **asked)["runs"][1:]
    for run, seen in zip(own, together, strict=True):
        alone = published.train(runs=(run,), **asked)["runs"][0]
        np.testing.assert_allclose(seen["violation"], alone["violation"], rtol=1e-4, atol=1e-4)
        np.testing.assert_allclose(seen["errors"], alone["errors"], atol=0.05)


@pytest.mark.parametrize("method", ["Trust", "OutP, its code"])
def test_a_run_that_was_interrupted_goes_on_as_if_nothing_had_happened(
    method: str, data_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = (Run(method, 0.05, 0), Run(method, 5.0, 1))
    cell = Cell.of("published", published.train, data="MNIST", images=IMAGES, iterations=12, runs=runs)
    whole = perform(cell, tmp_path / "whole")["values"]

    monkeypatch.setattr(checkpoints, "SECONDS", 0.0)
    penalty_at = published.penalty_at

    def interrupt(data, t, epsilon):
        if t == 9:
            raise KeyboardInterrupt
        return penalty_at(data, t, epsilon)

    (tmp_path / "cells").mkdir()
    with monkeypatch.context() as patched:
        patched.setattr(published, "penalty_at", interrupt)
        with pytest.raises(KeyboardInterrupt):
            perform(cell, tmp_path / "cells")
    (left,) = (tmp_path / "cells").iterdir()
    assert int(np.load(left)["done"]) == 7  # the eighth iteration asks for the penalty of the ninth
    again = perform(cell, tmp_path / "cells")
    assert again["values"] == whole
    assert not list((tmp_path / "cells").iterdir())


@pytest.mark.parametrize(("output", "law"), [(False, stats.laplace), (True, stats.norm)])
def test_noise_has_its_law(output: bool, law: stats.rv_continuous) -> None:
    states = published.states_of(Run("OutP" if output else "Trust", 1.0, 7), 10)
    drawn = drawn_from(states, (20_000, 10), output=output)
    assert stats.kstest(drawn.ravel(), law.cdf).pvalue > 1e-4  # false alarms: one in 10,000 seeds
    # Rows, lanes and neighbours do not know of each other: correlations of 200,000 draws, five standard errors.
    assert abs(np.corrcoef(drawn[:, :-1].ravel(), drawn[:, 1:].ravel())[0, 1]) < 0.012
    assert abs(np.corrcoef(drawn[:-1].ravel(), drawn[1:].ravel())[0, 1]) < 0.012
    assert np.abs(drawn).max() < law.isf(1e-10)
    assert np.abs(drawn).max() > law.isf(1e-4)


def test_exponential_and_logarithm_are_right_in_single_precision() -> None:
    for x in np.geomspace(1e-9, 80, 50).astype(np.float32):
        assert exponential(-x) == pytest.approx(math.exp(-x), rel=3e-7)
        assert logarithm(x) == pytest.approx(math.log(x), rel=3e-7, abs=3e-7)


def test_every_image_is_in_a_block_of_its_agent() -> None:
    rng = np.random.default_rng(0)
    X = (rng.random((25, 30)) * (rng.random((25, 30)) < 0.3)).astype(np.float32)
    offsets = [0, 7, 8, 25]
    blocks = Blocks.of(X, offsets)
    found = np.zeros_like(X)
    for block, rows in enumerate(blocks.rows):
        own = slice(blocks.starts[block], blocks.starts[block + 1])
        for image, row in enumerate(rows):
            if row >= 0:
                found[row, blocks.columns[own]] = blocks.values[own, image]
            else:
                assert not blocks.values[own, image].any()
    np.testing.assert_array_equal(found, X)
    for agent, (first, last) in enumerate(pairwise(offsets)):
        rows = blocks.rows[blocks.agents[agent] : blocks.agents[agent + 1]]
        assert sorted(rows[rows >= 0]) == list(range(first, last))
        assert rows.size < last - first + HEIGHT


@pytest.mark.parametrize(("runs", "classes"), [(1, 2), (3, 5), (1, 62)])
def test_the_pass_adds_the_gradient_of_the_blocks_that_it_is_given(runs: int, classes: int) -> None:
    rng = np.random.default_rng(0)
    X = (rng.random((30, 21)) * (rng.random((30, 21)) < 0.3)).astype(np.float32)
    X[4] = 0  # a blank row
    y = rng.integers(0, classes, 30)
    z = np.zeros((21, lanes_of(runs, classes)), dtype=np.float32)
    z[:, : runs * classes] = rng.normal(size=(21, runs * classes))
    gradient, largest = np.ones_like(z), np.zeros(runs, dtype=np.float32)
    made = Blocks.of(X, [0, 3, 20, 30])
    arrays = (made.starts, made.columns, made.values, made.rows, X.sum(axis=1))
    gradient_pass(runs, classes)(*arrays, y, made.agents[1], made.agents[2], z, gradient, largest)
    for run in range(runs):
        own = slice(run, runs * classes, runs)
        h = residuals(X[3:20].astype(np.float64), y[3:20], z[:, own].astype(np.float64))
        np.testing.assert_allclose(gradient[:, own], 1 + X[3:20].T @ h, rtol=1e-4, atol=1e-5)
        assert largest[run] == pytest.approx(printed_scale(X[3:20], h, epsilon=1.0) * 17, rel=1e-5)
    np.testing.assert_array_equal(gradient[:, runs * classes :], 1)
