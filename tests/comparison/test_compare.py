"""Methods beside each other: ours, anybody's estimator, and an algorithm that lives in a notebook."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from consenso import L2, Logistic, PrivateLogisticRegression, Problem, compare
from consenso.algorithms.dp_sgd import DPSGD
from consenso.comparison import Data
from consenso.errors import InputError

PROBLEM = Problem(loss=Logistic(), regularizer=L2(strength=1e-3), features=4, sizes=np.array([800]), row_bound=1.0)


class Notebook(DPSGD):
    """What a researcher writes in a cell: not in the package, and not discovered."""


class Guess:
    """An estimator of somebody else: fit, predict, and an epsilon of its own."""

    def __init__(self, epsilon: float = 1.0) -> None:
        self.epsilon = epsilon

    def fit(self, X, y) -> None:
        self.seen = (len(X), self.epsilon)

    def predict(self, X):
        return np.where(X[:, 0] > 0, 1, -1) if self.epsilon >= 1 else np.ones(len(X))


@pytest.fixture(scope="module")
def data() -> Data:
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (1200, 4)) / 2
    y = np.where(X @ [3, -1, 0.5, 0] + 0.2 * rng.normal(size=1200) > 0, 1, -1)
    return Data(X=X[:800], y=y[:800], X_test=X[800:], y_test=y[800:])


@pytest.fixture(scope="module")
def found(data):
    methods = {
        "auto": "auto",
        "exact": "exact",
        "mine": (Notebook(clip=1.0), 20),
        "ours": PrivateLogisticRegression(row_bound=1.0, classes=[-1, 1]),
        "theirs": Guess(),
        "made": lambda epsilon, delta, seed: LogisticRegression(C=epsilon),
        "usual": LogisticRegression(),
    }
    return compare(PROBLEM, methods, data, epsilons=(3.0, 0.1), delta=1e-5, runs=2)


def test_every_kind_of_method_is_measured_at_equal_budgets(found, data) -> None:
    assert [curve.name for curve in found.curves] == ["auto", "mine", "ours", "theirs", "made"]
    assert list(found.references) == ["exact", "usual"]
    for curve in found.curves:
        assert curve.epsilons == [0.1, 3.0]
        for low, mean, high in zip(curve.lows, curve.means, curve.highs, strict=True):
            assert 0 <= low <= mean <= high <= 1
    by_name = {curve.name: curve for curve in found.curves}
    assert by_name["auto"].means[1] > 0.85
    assert by_name["theirs"].means[0] == pytest.approx(np.mean(data.y_test == 1))
    assert by_name["theirs"].means[1] == pytest.approx(np.mean(data.y_test == np.where(data.X_test[:, 0] > 0, 1, -1)))
    assert found.references["exact"] == pytest.approx(found.references["usual"], abs=0.02)


def test_the_figures_are_in_every_file(found, tmp_path: Path) -> None:
    written = {path.suffix: path for path in found.write(tmp_path, "compare")}
    assert {".html", ".svg", ".csv"} <= set(written)
    rows = list(csv.DictReader(io.StringIO(written[".csv"].read_text())))
    assert len(rows) == 5 * 2 + 2
    auto = next(curve for curve in found.curves if curve.name == "auto")
    shown = [float(row["accuracy"]) for row in rows if row["method"] == "auto"]
    assert shown == auto.means
    page = written[".html"].read_text()
    assert page.count("<polygon class='band'") == 5
    assert f"{auto.means[1]:.1%}" in page
    assert written[".svg"].read_text().startswith("<svg xmlns=")
    if ".png" in written:
        assert written[".png"].read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("bad", ["no-such-solver", 3, object()])
def test_what_is_no_method_is_refused(bad, data) -> None:
    with pytest.raises(InputError, match="compare"):
        compare(PROBLEM, [bad], data)


def test_bad_budgets_and_sizes_are_refused(data) -> None:
    with pytest.raises(InputError, match="budgets"):
        compare(PROBLEM, ["auto"], data, epsilons=())
    with pytest.raises(InputError, match="sizes"):
        compare(PROBLEM, ["auto"], Data(X=data.X[:9], y=data.y[:9], X_test=data.X_test, y_test=data.y_test))
