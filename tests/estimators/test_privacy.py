"""What a private fit promises, and what it may depend on."""

from __future__ import annotations

import math
import pickle
import tracemalloc

import numpy as np
import pytest
from sklearn.base import clone

import consenso
from consenso.errors import InputError
from consenso.planning.replan import differences
from consenso.privacy.verify import first_failure, verify
from consenso.shards.constant import CONSTANT_SHARE, with_constant

RNG = np.random.default_rng(1)
X = RNG.normal(size=(400, 4)) * [1.0, 0.5, 2.0, 1.0]
MARGIN = X @ [1.0, -1.0, 0.5, 0.0] + 0.5
LABELS = np.where(MARGIN + 0.3 * RNG.normal(size=400) > 0, "yes", "no")
TARGETS = MARGIN + 0.1 * RNG.normal(size=400)


def made(name, **rest):
    kind = getattr(consenso, name)
    known = {"classes": ["no", "yes"]} if "classes" in kind().get_params() else {"target_bound": 3.0}
    return kind(**{"epsilon": 2.0, "delta": 1e-5, "row_bound": 3.0, "random_state": 0, **known, **rest})


def targets_of(name):
    return LABELS if name in ("PrivateLogisticRegression", "PrivateLinearSVC") else TARGETS


NAMES = (
    "PrivateLogisticRegression",
    "PrivateLinearSVC",
    "PrivateRidge",
    "PrivateLasso",
    "PrivateElasticNet",
    "PrivateHuberRegressor",
    "PrivateLADRegressor",
)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
def test_the_budget_is_kept_and_nearly_used_up(name, adjacency) -> None:
    model = made(name, adjacency=adjacency, records=None if adjacency == "replace-one" else 500)
    model.fit(X, targets_of(name))
    stated = model.guarantee_
    assert (stated.observer, stated.unit, stated.adjacency) == ("public", "record", adjacency)
    assert 1.9 < stated.epsilon(1e-5) <= 2.0
    assert model.solver_ in consenso.solvers.names()
    assert model.solver_reason_
    (entry,) = (
        entry
        for entry in model.card_.entries
        if (entry.observer, entry.unit, entry.adjacency) == ("public", "record", adjacency)
    )
    assert entry.epsilon == stated.epsilon(1e-5)
    assert model.card_.delta == 1e-5
    assert first_failure(verify(model.card_.to_json())) is None
    assert differences(model.card_) == [], "the card follows from its own parameters"


def test_a_seed_makes_a_simulation_and_none_makes_noise_that_protects() -> None:
    assert made("PrivateRidge").fit(X, TARGETS).card_.simulation
    safe = made("PrivateRidge", random_state=None).fit(X, TARGETS)
    assert not safe.card_.simulation
    assert "OpenDP" in safe.card_.sampler
    again = made("PrivateRidge", random_state=None).fit(X, TARGETS)
    assert (safe.coef_ != again.coef_).all()


def test_without_the_safe_sampler_there_is_an_error_and_no_fall_back(monkeypatch) -> None:
    found = __import__("importlib.util").util.find_spec
    monkeypatch.setattr(
        "importlib.util.find_spec", lambda name, *rest: None if name == "opendp" else found(name, *rest)
    )
    with pytest.raises(InputError, match=r"consenso\[safe\]"):
        made("PrivateRidge", random_state=None).fit(X, TARGETS)


@pytest.mark.parametrize("name", NAMES)
def test_the_same_seed_gives_the_same_model_and_fits_leave_no_trace(name) -> None:
    y = targets_of(name)
    first = made(name).fit(X, y)
    second = made(name).fit(X[::-1], y[::-1]).fit(X, y)
    np.testing.assert_array_equal(first.coef_, second.coef_)
    np.testing.assert_array_equal(first.intercept_, second.intercept_)
    other = made(name, random_state=1).fit(X, y)
    assert (other.coef_ != first.coef_).any()
    generator = made(name, random_state=np.random.RandomState(5)).fit(X, y)
    assert generator.card_.simulation


def test_pickle_and_clone() -> None:
    model = made("PrivateLogisticRegression").fit(X, LABELS)
    back = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(back.predict_proba(X), model.predict_proba(X))
    assert back.guarantee_ == model.guarantee_
    assert back.card_ == model.card_
    fresh = clone(model)
    assert not hasattr(fresh, "coef_")
    with pytest.raises(AttributeError, match="before fit"):
        _ = fresh.card_
    assert fresh.get_params() == model.get_params()


def test_labels_declared_public_are_an_assumption_of_the_guarantee() -> None:
    declared = made("PrivateLogisticRegression").fit(X, LABELS)
    read = made("PrivateLogisticRegression", classes="public").fit(X, LABELS)
    np.testing.assert_array_equal(read.coef_, declared.coef_)
    assert set(read.guarantee_.assumptions) - set(declared.guarantee_.assumptions) == {
        "The set of labels that occur is public: it is the same in both data sets."
    }


def test_declared_labels_that_do_not_occur_have_coefficients() -> None:
    model = made("PrivateLogisticRegression", classes=["maybe", "no", "yes"]).fit(X, LABELS)
    assert model.coef_.shape == (3, 4)
    assert model.predict_proba(X).shape == (400, 3)
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)
    np.testing.assert_allclose(np.log(model.predict_proba(X)), model.predict_log_proba(X))


def test_the_number_of_records_is_not_in_a_fit_under_add_remove() -> None:
    """Everything public about the fit is the same for 400 and for 399 records; noise as drawn by the same seed."""

    def seen(rows):
        model = made("PrivateLogisticRegression", adjacency="add-remove", records=450, epsilon=0.5)
        model.fit(X[:rows], LABELS[:rows])
        return model.card_.to_json(), model.solver_, model.solver_reason_

    assert seen(400) == seen(399)


def test_under_replace_one_it_is_public() -> None:
    sizes = [made("PrivateRidge").fit(X[:rows], TARGETS[:rows]).card_.data["sizes"] for rows in (400, 399)]
    assert sizes == [[400], [399]]


def test_one_record_moves_a_row_by_no_more_than_the_declared_bound() -> None:
    wild = X.copy()
    wild[0], wild[1] = 1e300, 1e-300
    rows = with_constant(wild, 3.0, 3.0 * CONSTANT_SHARE, "test")
    lengths = np.linalg.norm(rows, axis=1)
    assert lengths.max() <= math.hypot(3.0, 1.5) * (1 + 1e-12)
    np.testing.assert_array_equal(rows[:, -1], 1.5)
    short = np.linalg.norm(X, axis=1) < 3.0
    short[:2] = False
    np.testing.assert_array_equal(rows[short, :-1], X[short])
    model = made("PrivateRidge").fit(wild, TARGETS * 1e6)
    assert model.card_.data["row_bound"] == math.hypot(3.0, 1.5)
    assert np.isfinite(model.coef_).all()


def test_rows_and_targets_beyond_the_bounds_are_as_good_as_at_them() -> None:
    far = X * np.where(np.arange(400) % 2, 100.0, 1.0)[:, None]
    lengths = np.linalg.norm(far, axis=1)
    near = far * np.minimum(1.0, 3.0 / lengths)[:, None]
    one = made("PrivateRidge").fit(far, TARGETS * 50)
    other = made("PrivateRidge").fit(near, np.clip(TARGETS * 50, -3.0, 3.0))
    np.testing.assert_allclose(one.coef_, other.coef_, rtol=1e-6, atol=1e-9)


def test_more_budget_is_closer_to_the_exact_fit() -> None:
    rng = np.random.default_rng(3)
    rows = rng.normal(size=(20_000, 4))
    rows /= np.maximum(1.0, np.linalg.norm(rows, axis=1) / 3.0)[:, None]
    target = rows @ [0.4, -0.3, 0.2, 0.0] + 0.3 + 0.1 * rng.normal(size=20_000)
    best = consenso.PrivateRidge(epsilon=math.inf).fit(rows, target)
    errors = []
    for epsilon in (0.1, 1.0, 10.0):
        fits = [made("PrivateRidge", epsilon=epsilon, random_state=seed).fit(rows, target) for seed in range(3)]
        errors.append(
            np.mean([np.linalg.norm(fit.coef_ - best.coef_) + abs(fit.intercept_ - best.intercept_) for fit in fits])
        )
    assert errors[0] > errors[1] > errors[2]
    assert errors[2] < 0.02
    assert fits[0].score(rows, target) > best.score(rows, target) - 0.01


def test_a_private_lasso_is_sparse_and_usable() -> None:
    """Of 30 coefficients 4 matter; the default penalty finds them and leaves nothing of the others."""
    rng = np.random.default_rng(4)
    rows = rng.normal(size=(20_000, 30))
    rows /= np.linalg.norm(rows, axis=1)[:, None]
    truth = np.zeros(30)
    truth[[0, 7, 15, 22]] = [3.0, -3.0, 2.5, -2.5]
    target = rows @ truth + 0.1 * rng.normal(size=20_000)
    model = consenso.PrivateLasso(epsilon=1.0, row_bound=1.0, target_bound=2.0, random_state=0).fit(rows, target)
    assert (np.abs(model.coef_[truth != 0]) > 0.5).all()
    assert np.abs(model.coef_[truth == 0]).max() < 0.05
    assert model.score(rows, target) > 0.6


@pytest.mark.parametrize("name", ["PrivateLogisticRegression", "PrivateLinearSVC", "PrivateLADRegressor"])
def test_private_models_predict(name) -> None:
    rng = np.random.default_rng(5)
    rows = rng.normal(size=(8000, 3)) / 2
    margin = rows @ [2.0, -1.0, 0.5] + 0.2
    y = margin if name == "PrivateLADRegressor" else np.where(margin > 0, "yes", "no")
    model = made(name, epsilon=3.0, row_bound=2.0).fit(rows, y)
    assert model.score(rows, y) > 0.93


@pytest.mark.parametrize("solver", ["preconditioned", "objective-perturbation", "dual-admm", "dp-sgd"])
def test_solvers_by_name(solver) -> None:
    model = made("PrivateLogisticRegression", solver=solver, adjacency="add-remove", records=400).fit(X, LABELS)
    assert model.solver_ == solver
    assert model.guarantee_.epsilon(1e-5) <= 2.0


def test_a_fit_needs_little_more_memory_than_the_data() -> None:
    """One copy with the constant column, and blocks: with the table itself at most three times the data."""
    rng = np.random.default_rng(6)
    rows = rng.normal(size=(40_000, 60))
    labels = rows[:, 0] > 0
    model = consenso.PrivateLogisticRegression(epsilon=0.5, row_bound=8.0, classes=[False, True], random_state=0)
    model.fit(rows[:100], labels[:100])  # what is loaded once is not counted
    tracemalloc.start()
    model.fit(rows, labels)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak <= 2 * rows.nbytes
