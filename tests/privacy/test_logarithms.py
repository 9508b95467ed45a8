"""Sums of exponentials, against SciPy's."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import logsumexp as reference

from consenso.privacy.accountants.logarithms import logsumexp

INF = np.inf


@pytest.mark.parametrize(
    "logs", [[0.0], [-1e-20, -800.0], [700.0, 710.0, -5.0], [-INF, 1.0], [-INF, -INF], [INF, 0.0], [1e4, 1e4, -1e4]]
)
def test_a_vector(logs) -> None:
    assert logsumexp(logs) == pytest.approx(float(reference(logs)), rel=1e-15)


def test_a_sum_that_one_term_dominates_keeps_the_digits_of_the_others() -> None:
    assert logsumexp([0.0, np.log(1e-18)]) == pytest.approx(1e-18, rel=1e-12)


def test_along_an_axis() -> None:
    logs = np.random.default_rng(0).normal(0, 300, (3, 4, 5))
    for axis in (0, 1, -1):
        np.testing.assert_allclose(logsumexp(logs, axis=axis), reference(logs, axis=axis), rtol=1e-14)
    assert logsumexp(logs) == pytest.approx(float(reference(logs)), rel=1e-14)
