"""Bad input: one clear error before data are looked at, and nothing is spent."""

from __future__ import annotations

import math

import numpy as np
import pytest

import consenso
from consenso.conventions import default_delta
from consenso.errors import BudgetError, InputError, PrivacyError
from consenso.privacy.ledger import Budget, Ledger

NAMES = (
    "PrivateLogisticRegression",
    "PrivateLinearSVC",
    "PrivateRidge",
    "PrivateLasso",
    "PrivateElasticNet",
    "PrivateHuberRegressor",
    "PrivateLADRegressor",
)
RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3))
Y = (X[:, 0] > 0).astype(float)


class Untouchable:
    """Data at which nobody may look: reading it is an error of its own."""

    def __array__(self, *args, **kwargs):
        raise AssertionError("the data were looked at")

    @property
    def shape(self):
        raise AssertionError("the data were looked at")


def made(name, **rest):
    kind = getattr(consenso, name)
    known = {"classes": [0, 1]} if "classes" in kind().get_params() else {"target_bound": 1.0}
    return kind(**{"row_bound": 2.0, **known, **rest})


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ({"epsilon": 0.0}, "epsilon is a number above 0"),
        ({"epsilon": -1}, "epsilon is a number above 0"),
        ({"epsilon": math.nan}, "epsilon is a number above 0"),
        ({"epsilon": "1"}, "epsilon is a number above 0"),
        ({"epsilon": True}, "epsilon is a number above 0"),
        ({"delta": 1.0}, "a delta lies in"),
        ({"delta": 2}, "a delta lies in"),
        ({"delta": 0.0}, "a delta lies in"),
        ({"delta": math.nan}, "a delta lies in"),
        ({"row_bound": 0.0}, "row_bound is a bound"),
        ({"row_bound": -1}, "row_bound is a bound"),
        ({"row_bound": math.inf}, "row_bound is a bound"),
        ({"row_bound": math.nan}, "row_bound is a bound"),
        ({"row_bound": None, "bounds": "public"}, r"choose it from public knowledge.*leave bounds out"),
        ({"bounds": "guessed"}, r"bounds='guessed'.*\('private'\).*\('public'\)"),
        ({"alpha": -0.1}, "a penalty is a finite number"),
        ({"alpha": math.nan}, "a penalty is a finite number"),
        ({"adjacency": "replace"}, "'add-remove' or 'replace-one'"),
        ({"records": 0}, "a whole number above 0"),
        ({"records": math.inf}, "a whole number above 0"),
        ({"solver": "precondition"}, "did you mean 'preconditioned'"),
        ({"solver": "dpsgd"}, "did you mean 'dp-sgd'"),
        ({"solver": "xyz"}, "use 'auto' or one of"),
    ],
    ids=str,
)
def test_parameters_are_checked_before_the_data(name, bad, message) -> None:
    with pytest.raises(InputError, match=message):
        made(name, **bad).fit(Untouchable(), Untouchable())


@pytest.mark.parametrize(
    ("name", "bad", "message"),
    [
        ("PrivateLogisticRegression", {"classes": None, "bounds": "public"}, "the set of labels is public input"),
        ("PrivateLinearSVC", {"classes": None, "bounds": "public"}, "the set of labels is public input"),
        ("PrivateLogisticRegression", {"target_recall": 1.0}, "a recall lies in"),
        ("PrivateLinearSVC", {"target_recall": "high"}, "a recall lies in"),
        ("PrivateLogisticRegression", {"classes": [1]}, "at least two different labels"),
        ("PrivateLogisticRegression", {"classes": [1, 1]}, "at least two different labels"),
        ("PrivateLogisticRegression", {"classes": "seen"}, "classes='public'"),
        ("PrivateLogisticRegression", {"l1_ratio": 1.5}, "lies in"),
        ("PrivateElasticNet", {"l1_ratio": -0.5}, "lies in"),
        ("PrivateLADRegressor", {"l1_ratio": math.nan}, "lies in"),
        ("PrivateRidge", {"target_bound": None, "bounds": "public"}, "targets need a public bound"),
        ("PrivateLasso", {"target_bound": 0}, "target_bound is a bound"),
        ("PrivateRidge", {"residual_bound": 0.0}, "residual_bound is the clip"),
        ("PrivateLasso", {"residual_bound": -1.0}, "residual_bound is the clip"),
        ("PrivateElasticNet", {"residual_bound": math.inf}, "residual_bound is the clip"),
        ("PrivateHuberRegressor", {"threshold": 0.0}, "threshold is where"),
        ("PrivateHuberRegressor", {"threshold": None}, "give a positive number"),
        ("PrivateHuberRegressor", {"scale": -1.0}, "scale is the spread"),
        ("PrivateLADRegressor", {"smoothing": 0.0}, "smoothing is the width"),
        ("PrivateLinearSVC", {"smoothing": math.nan}, "smoothing is the width"),
        ("PrivateLinearSVC", {"intercept_scaling": 0.0}, "intercept_scaling is the value"),
    ],
    ids=str,
)
def test_parameters_of_their_own(name, bad, message) -> None:
    with pytest.raises(InputError, match=message):
        made(name, **bad).fit(Untouchable(), Untouchable())


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    ("rows", "targets", "message"),
    [
        (np.where(X > 2, np.nan, X), Y, "contains NaN"),
        (np.where(np.arange(3) == 1, np.inf, X), Y, "infinity"),
        (X[:0], Y[:0], "0 sample"),
        (X[:, :0], Y, "0 feature"),
        (X, Y[:-1], "inconsistent numbers of samples"),
        (X[0], Y, "1D array"),
        (X, None, "requires y to be passed"),
    ],
    ids=["NaN", "infinity", "no rows", "no columns", "lengths", "one axis", "no y"],
)
def test_data_that_cannot_be(name, rows, targets, message) -> None:
    if message == "contains NaN":
        rows[0, 0] = np.nan
    with pytest.raises(ValueError, match=message):
        made(name, random_state=0).fit(rows, targets)


def test_labels_that_were_not_declared() -> None:
    with pytest.raises(InputError, match=r"not among classes=\[0, 1\]"):
        made("PrivateLogisticRegression", random_state=0).fit(X, Y + 1)
    with pytest.raises(InputError, match=r"not among classes=\['a', 'b'\]"):
        made("PrivateLogisticRegression", classes=["a", "b"], random_state=0).fit(X, Y)


def test_one_class_only() -> None:
    with pytest.raises(InputError, match="one class only"):
        consenso.PrivateLogisticRegression(epsilon=math.inf).fit(X, np.zeros(60))
    with pytest.raises(InputError, match="one class only"):
        made("PrivateLogisticRegression", classes="public", random_state=0).fit(X, np.zeros(60))
    # With declared labels it is private whether one of them occurs at all.
    assert made("PrivateLogisticRegression", random_state=0).fit(X, np.zeros(60)).classes_.tolist() == [0, 1]


def test_three_classes_are_too_many_for_a_support_vector_machine() -> None:
    with pytest.raises(InputError, match="Only binary classification"):
        made("PrivateLinearSVC", classes=[0, 1, 2], random_state=0).fit(X, Y)


def test_the_number_of_records_under_add_remove() -> None:
    with pytest.raises(InputError, match=r"records=59.*X has more rows"):
        made("PrivateRidge", adjacency="add-remove", records=59, random_state=0).fit(X, Y)
    with pytest.raises(InputError, match=r"records=61.*leave records out"):
        made("PrivateRidge", records=61, random_state=0).fit(X, Y)


def test_a_named_solver_that_does_not_apply() -> None:
    with pytest.raises(ValueError, match="does not apply"):
        made("PrivateLogisticRegression", solver="objective-perturbation", random_state=0).fit(X, Y)


def test_the_default_delta() -> None:
    assert default_delta(100) == 1e-5
    assert default_delta(10**6) == pytest.approx(1e-7)
    model = made("PrivateRidge", random_state=0).fit(X, Y)
    assert model.card_.delta == 1e-5


@pytest.fixture
def ledger(tmp_path) -> Ledger:
    budget = Budget(observer="public", unit="record", adjacency="replace-one", epsilon=1.0, delta=1e-5)
    return Ledger.create(tmp_path / "a.ledger", dataset="a", budgets=[budget])


@pytest.mark.parametrize("name", ["PrivateLogisticRegression", "PrivateRidge"])
def test_bad_input_leaves_the_ledger_as_it_was(name, ledger) -> None:
    head = ledger.head()
    for bad in ({"epsilon": -1}, {"delta": 1.0}, {"row_bound": 0}, {"solver": "xyz"}, {"alpha": -1}):
        with pytest.raises(InputError):
            made(name, ledger=ledger, **bad).fit(X, Y)
    broken = X.copy()
    broken[3, 1] = np.nan
    for rows, targets in ((broken, Y), (X[:0], Y[:0]), (X, Y[:-1])):
        with pytest.raises(ValueError, match=r"NaN|sample"):
            made(name, ledger=ledger).fit(rows, targets)
    assert ledger.head() == head


def test_a_seed_and_a_ledger_exclude_each_other(ledger) -> None:
    head = ledger.head()
    with pytest.raises(PrivacyError, match="leave random_state out"):
        made("PrivateRidge", ledger=ledger, random_state=0).fit(Untouchable(), Untouchable())
    with pytest.raises(InputError, match="leave the ledger out"):
        made("PrivateRidge", ledger=ledger, epsilon=math.inf).fit(Untouchable(), Untouchable())
    assert ledger.head() == head


def test_every_fit_is_charged_until_the_budget_is_spent(ledger) -> None:
    model = made("PrivateRidge", epsilon=0.9, delta=1e-5, ledger=ledger)
    model.fit(X, Y)
    (balance,) = ledger.balances()
    assert balance.spent == pytest.approx(0.9, rel=1e-3)
    assert [run.state for run in ledger.runs()] == ["committed"]
    coefficients, head = model.coef_, ledger.head()
    with pytest.raises(BudgetError, match="is left"):
        model.fit(X, Y)
    assert ledger.head() == head, "a refused fit changes nothing"
    np.testing.assert_array_equal(model.coef_, coefficients)
    # A path will do, and a small fit still fits in: curves add up, not epsilons.
    made("PrivateRidge", epsilon=0.1, delta=1e-5, ledger=ledger.path).fit(X, Y)
    (after,) = ledger.balances()
    assert 0.9 < after.spent < 1.0


def test_a_budget_for_the_other_adjacency_is_refused(tmp_path) -> None:
    budget = Budget(observer="public", unit="party", adjacency="add-remove", epsilon=1.0, delta=1e-5)
    ledger = Ledger.create(tmp_path / "b.ledger", dataset="b", budgets=[budget])
    head = ledger.head()
    with pytest.raises(BudgetError):
        made("PrivateRidge", ledger=ledger).fit(X, Y)
    assert ledger.head() == head
