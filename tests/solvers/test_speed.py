"""What a private fit costs beside the usual one, in one run on the same data."""

from __future__ import annotations

import time
import tracemalloc
import warnings

import numpy as np
from benchmarks.utility.tasks import adult
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

from consenso import PrivateLogisticRegression


def test_a_private_fit_of_adult_costs_at_most_five_usual_ones_and_three_times_the_data(data_dir) -> None:
    task = adult()
    X, y = np.ascontiguousarray(task.X[:, :-1]), task.y  # without the constant, which the estimators add

    def private() -> None:
        PrivateLogisticRegression(epsilon=1.0, delta=1e-5, row_bound=1.0, classes=[-1, 1]).fit(X, y)

    def usual() -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            LogisticRegression().fit(X, y)

    private()
    times: dict[str, list[float]] = {"private": [], "usual": []}
    for _ in range(5):  # in turn, so that both meet the same neighbours on the machine
        for name, fit in (("private", private), ("usual", usual)):
            began = time.process_time()
            fit()
            times[name].append(time.process_time() - began)
    assert min(times["private"]) <= 5 * min(times["usual"])

    tracemalloc.start()
    private()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak + X.nbytes <= 3 * X.nbytes
