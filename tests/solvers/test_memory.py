"""How much memory a private fit takes."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from benchmarks.utility.tasks import adult

from consenso import PrivateLogisticRegression


@pytest.mark.slow
def test_a_private_fit_of_adult_takes_at_most_three_times_the_data(data_dir) -> None:
    task = adult()
    X, y = np.ascontiguousarray(task.X[:, :-1]), task.y  # without the constant, which the estimators add

    def fit() -> None:
        PrivateLogisticRegression(epsilon=1.0, delta=1e-5, row_bound=1.0, classes=[-1, 1]).fit(X, y)

    fit()  # what is compiled once is not counted
    tracemalloc.start()
    fit()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak + X.nbytes <= 3 * X.nbytes
