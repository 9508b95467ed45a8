"""The published runs of paper 003 go side by side over sparse images; here is what they must equal, written plainly."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from experiments.paper003 import published
from experiments.paper003.claims import printed_scale
from experiments.paper003.lanes import Sparse, gradient_pass, lanes_of
from experiments.paper003.worlds import world

IMAGES, ITERATIONS = 400, 25


def residuals(X, y, z):
    scores = X @ z
    found = np.exp(scores - scores.max(axis=1, keepdims=True))
    found /= found.sum(axis=1, keepdims=True)
    found[np.arange(len(y)), y] -= 1
    return found


def plain(method, epsilon, seed, scaling):
    """The iteration as the paper prints it, one agent after the other, dense and in double precision."""
    here = world("MNIST", IMAGES)
    rng = np.random.default_rng([seed, published.METHODS.index(method)])
    agents, total = here.agents, len(here.y)
    shape = (here.X.shape[1], here.classes)
    z, dual = np.zeros((2, agents, *shape))
    errors, noise = [], []
    for t in range(1, ITERATIONS + 2):
        rho = min(1e9, 2 * 1.2 ** (t // 10_000) + 5 / epsilon)
        near = math.sqrt(t) / scaling
        w = np.mean([z[p] - dual[p] / rho for p in range(agents)], axis=0)
        scale_sum = 0.0
        for p in range(agents):
            X, y = (part[here.offsets[p] : here.offsets[p + 1]] for part in (here.X.astype(np.float64), here.y))
            h = residuals(X, y, z[p])
            scale = printed_scale(X, h, epsilon=epsilon) * len(X) / total
            G = X.T @ h / total + 2 * published.BETA * z[p] / agents
            if method == "OutP":
                longest = math.sqrt(2) * np.linalg.norm(here.X, axis=1).max()
                sensitivity = 2 * longest / (len(X) * (rho + near))
                scale = sensitivity * math.sqrt(2 * math.log(1.25 / published.DELTA)) / epsilon
            elif epsilon < math.inf:
                G = G + scale * (
                    rng.standard_exponential(shape, dtype=np.float32)
                    - rng.standard_exponential(shape, dtype=np.float32)
                )
            if method == "Trust":
                z[p] = np.clip(w + (dual[p] - G) / rho, z[p] - 1, z[p] + 1)
            elif method == "Trust, shrinking":
                z[p] = np.clip(w + (dual[p] - G) / rho, z[p] - 1 / t**2, z[p] + 1 / t**2)
            else:
                z[p] = (rho * w + dual[p] + near * z[p] - G) / (rho + near)
            if method == "OutP" and epsilon < math.inf:
                z[p] += scale * rng.standard_normal(shape, dtype=np.float32)
            scale_sum += scale
        dual += rho * (w - z)
        errors.append(here.test_error(w.astype(np.float32)))
        noise.append(scale_sum / agents)
    return errors, noise, float(np.linalg.norm(w - z))


@pytest.mark.parametrize("method", published.METHODS)
def test_runs_side_by_side_are_the_papers_iteration(method: str, data_dir: Path) -> None:
    runs = ((0.05, 0), (5.0, 1), (math.inf, 0))
    scaling = 100.0 if method == "Prox" else 1.0
    found = published.train(
        data="MNIST", method=method, runs=runs, images=IMAGES, iterations=ITERATIONS, scaling=scaling
    )
    for (epsilon, seed), run in zip(runs, found["runs"], strict=True):
        errors, noise, violation = plain(method, epsilon, seed, scaling)
        at = np.array(run["at"]) - 1
        # Single precision moves a few of 10,000 test images.
        np.testing.assert_allclose(run["errors"], np.array(errors)[at], atol=0.15)
        np.testing.assert_allclose(run["noise"], np.array(noise)[at], rtol=1e-4)
        np.testing.assert_allclose(run["violation"][-1], violation, rtol=1e-3, atol=1e-5)
        assert run["last"] == run["errors"][-1]
        assert at[-1] == ITERATIONS


def test_a_run_does_not_depend_on_its_neighbours(data_dir: Path) -> None:
    asked = {"data": "MNIST", "method": "Trust", "images": IMAGES, "iterations": 10}
    together = published.train(runs=((0.05, 3), (1.0, 3)), **asked)["runs"][1]
    alone = published.train(runs=((1.0, 3),), **asked)["runs"][0]
    np.testing.assert_allclose(together["violation"], alone["violation"], rtol=1e-4)
    np.testing.assert_allclose(together["errors"], alone["errors"], atol=0.05)


@pytest.mark.parametrize(("runs", "classes"), [(1, 2), (2, 5), (1, 62)])
def test_the_pass_adds_the_gradient_of_the_rows_that_it_is_given(runs: int, classes: int) -> None:
    rng = np.random.default_rng(0)
    X = (rng.random((30, 21)) * (rng.random((30, 21)) < 0.3)).astype(np.float32)
    X[4] = 0  # a blank row
    y = rng.integers(0, classes, 30)
    z = np.zeros((21, lanes_of(runs, classes)), dtype=np.float32)
    z[:, : runs * classes] = rng.normal(size=(21, runs * classes))
    gradient, largest = np.ones_like(z), np.zeros(runs, dtype=np.float32)
    rows = Sparse.of(X)
    gradient_pass(runs, classes)(rows.starts, rows.columns, rows.values, rows.sums, y, 3, 20, z, gradient, largest)
    for run in range(runs):
        own = slice(run * classes, (run + 1) * classes)
        h = residuals(X[3:20].astype(np.float64), y[3:20], z[:, own].astype(np.float64))
        np.testing.assert_allclose(gradient[:, own], 1 + X[3:20].T @ h, rtol=1e-4, atol=1e-5)
        assert largest[run] == pytest.approx(printed_scale(X[3:20], h, epsilon=1.0) * 17, rel=1e-5)
    np.testing.assert_array_equal(gradient[:, runs * classes :], 1)
