"""Sums of small tables without a compiler are those of the compiled loops, bit for bit."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from consenso import rows as module
from consenso import whole_steps
from consenso.rows import Layout, Rows, sum_step


@pytest.mark.parametrize("kept", ["dense", "single", "sparse"])
@pytest.mark.parametrize("outputs", [1, 3])
def test_both_ways_agree_also_for_parties_without_rows(
    kept: str, outputs: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(4)
    X = rng.normal(size=(40, 5)) * (rng.random((40, 5)) < 0.5)
    matrix = {"dense": X, "single": X.astype(np.float32), "sparse": sparse.csr_array(X)}[kept]
    weights = rng.normal(size=(40, outputs)) if outputs > 1 else rng.normal(size=40)
    table = Rows(matrix, Layout(np.array([0, 0, 7, 7, 30, 40, 40])), outputs)
    step = sum_step(20.0, 40)
    small = table.exact_sums(weights, step)
    assert small.any()
    monkeypatch.setattr(module.whole_steps, "FEW_PRODUCTS", 0)
    np.testing.assert_array_equal(small, table.exact_sums(weights, step))


def test_halves_are_rounded_as_the_compiled_loops_round_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """To the even neighbour: what is added and subtracted again does not know of signs."""
    values = np.array([[-2.5], [-1.5], [-0.5], [0.5], [1.5], [2.5], [3.5]])
    table = Rows(values, Layout(np.arange(8)))
    small = table.exact_sums(np.ones(7), 1.0)
    np.testing.assert_array_equal(small[:, 0], [-2, -2, 0, 0, 2, 2, 4])
    monkeypatch.setattr(whole_steps, "FEW_PRODUCTS", 0)
    np.testing.assert_array_equal(small, table.exact_sums(np.ones(7), 1.0))
