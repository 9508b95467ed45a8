"""The model that is fitted is the model that predicts, and bounds that nobody knows are found within the budget."""

from __future__ import annotations

import json
import math
import pickle
import re
import warnings
from typing import Any

import numpy as np
import pytest
from scipy import sparse

import consenso
from consenso.errors import BudgetError, ConsensoError
from consenso.estimators import ShorteningWarning
from consenso.estimators.column_scales import read_scales
from consenso.estimators.length_scales import CAREFUL, LENGTH_EDGES, read_length
from consenso.estimators.quantiles import SIGNED_EDGES, count_exactly
from consenso.estimators.target_scales import enclose, fine_edges, read_center
from consenso.planning.replan import differences
from consenso.privacy.card.evaluation import questions
from consenso.privacy.earlier import Earlier
from consenso.privacy.ledger import Budget, Ledger
from consenso.privacy.verify import first_failure, verify
from consenso.shards.stored import RowBatch

RNG = np.random.default_rng(3)
CENTER, SPREAD = np.array([40.0, 5000.0, 0.0]), np.array([1.0, 900.0, 0.02])
X = RNG.normal(size=(3000, 3)) * SPREAD + CENTER
SCORES = ((X - CENTER) / SPREAD) @ [1.0, -1.0, 0.5]
LABELS = (SCORES > 0).astype(int)
TARGETS = 70.0 + 3 * SCORES
NAMES = (
    "PrivateLogisticRegression",
    "PrivateLinearSVC",
    "PrivateRidge",
    "PrivateLasso",
    "PrivateElasticNet",
    "PrivateHuberRegressor",
    "PrivateLADRegressor",
)


def made(name="PrivateLogisticRegression", **rest):
    kind = getattr(consenso, name)
    known = {"classes": [0, 1]} if "classes" in kind().get_params() else {}
    return kind(**{"epsilon": 1.0, "delta": 1e-5, "random_state": 0, **known, **rest})


def targets_of(name):
    return LABELS if name in NAMES[:2] else TARGETS


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("told", ["very different sizes", "far from 0"])
def test_a_row_has_the_score_of_what_a_declared_bound_leaves_of_it(name, told) -> None:
    # Columns are moved into ranges, or by their means. A column that is the same in all rows was not in those that the
    # bound shortens, and its coefficient, of which no record had spoken, moved their predictions by several bounds of
    # the targets.
    rng = np.random.default_rng(8)
    scores = rng.standard_t(2, size=(4000, 2))
    sizes, middle, same = ([1.0, 3e-3], 0.0, 1e-3) if told == "very different sizes" else ([0.1, 0.1], 20.0, 15.0)
    rows = np.column_stack([scores * sizes + middle, np.full(4000, same)])
    y = (scores.sum(axis=1) > 0).astype(int) if name in NAMES[:2] else np.clip(scores.sum(axis=1), -9, 9)
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    bound = float(np.median(lengths))
    extra = {} if name in NAMES[:2] else {"target_bound": 10.0}
    model = made(name, epsilon=3.0, row_bound=bound, adjacency="add-remove", records=4000, **extra).fit(rows, y)
    assert told in model.notes_[0]
    rows[:3] *= [[1e3], [1e160], [1e200]]
    lengths = np.abs(rows).max(axis=1, keepdims=True)
    lengths *= np.linalg.norm(rows / lengths, axis=1, keepdims=True)
    short = rows * np.minimum(1.0, bound / lengths)
    score = model.decision_function if name in NAMES[:2] else model.predict
    np.testing.assert_allclose(score(short), score(rows), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("name", NAMES)
def test_long_rows_are_shortened_in_predict_as_in_fit(name) -> None:
    rows = RNG.normal(size=(400, 3)) * [1.0, 3.0, 1.0]
    extra = {"target_bound": 5.0} if name not in NAMES[:2] else {}
    model = made(name, row_bound=4.0, **extra).fit(rows, targets_of(name)[:400] % 5)
    long = rows * 1e3
    short = long * (4.0 / np.linalg.norm(long, axis=1))[:, None]
    ask = getattr(model, "decision_function", model.predict)
    np.testing.assert_allclose(ask(long), ask(short), rtol=1e-9)
    np.testing.assert_allclose(ask(sparse.csr_matrix(long)), ask(short), rtol=1e-9)
    np.testing.assert_allclose(ask(long), short @ model.coef_.reshape(-1) + model.intercept_, rtol=1e-9)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(getattr(again, ask.__name__)(long), ask(long))


@pytest.mark.parametrize("name", NAMES)
def test_a_raw_table_is_fitted_within_the_budget(name) -> None:
    model = made(name, **({"alpha": 1e-3} if name in NAMES[3:5] else {})).fit(X, targets_of(name))
    assert model.score(X, targets_of(name)) > 0.8
    assert 0.999 < model.guarantee_.epsilon(1e-5) <= 1.0
    card = model.card_
    assert card.parameters["earlier"][0]["name"] == "histograms of columns"
    told = dict(questions(card))["What is released without noise?"]
    assert "noisy releases" in told
    assert "histograms of columns" in told
    assert first_failure(verify(json.loads(json.dumps(card.to_json())))) is None
    assert differences(card) == []
    assert "No row_bound was given" in model.notes_[0]
    assert len(model.notes_) == (1 if name in NAMES[:2] else 2)


def test_coefficients_are_in_the_units_of_the_columns() -> None:
    model = made("PrivateRidge", epsilon=20.0).fit(X, TARGETS)
    np.testing.assert_allclose(model.coef_ * SPREAD, [3.0, -3.0, 1.5], atol=0.3)
    inside = X[(model.row_map_.columns.low < X).all(1) & (model.row_map_.columns.high > X).all(1)]
    shrink = np.linalg.norm(model.row_map_.scale(inside), axis=1) <= model.row_bound_
    expected = inside @ model.coef_ + model.intercept_
    np.testing.assert_allclose(model.predict(inside)[shrink], expected[shrink], rtol=1e-9)
    through = made("PrivateRidge", fit_intercept=False).fit(X - CENTER, TARGETS - 70)
    assert through.intercept_ == 0.0
    np.testing.assert_allclose(through.predict(np.zeros((1, 3))), 0.0, atol=1e-12)


def test_sparse_rows_are_not_filled() -> None:
    rows = sparse.random_array((2000, 30), density=0.1, random_state=np.random.default_rng(0), format="csr")
    labels = np.asarray(rows @ np.linspace(-1, 1, 30) > 0).astype(int)
    model = made().fit(rows, labels)
    assert model.row_map_.columns is None
    assert [each["name"] for each in model.card_.parameters["earlier"]] == ["lengths of rows"]


def _counted(monkeypatch, fit, answers):
    """The exact counts of every earlier release of a fit; what is released is `answers`, or what noise gives."""
    exact, told = [], []
    release = Earlier.release

    def spy(self, time, values, *rest):
        exact.append((self, values.copy()))
        told.append(release(self, time, values, *rest) if answers is None else answers[len(told)])
        return told[-1]

    with monkeypatch.context() as patch:
        patch.setattr(Earlier, "release", spy)
        fit()
    return exact, told


@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
@pytest.mark.parametrize("bound", [None, 2.0])
def test_one_record_moves_earlier_releases_by_no_more_than_declared(monkeypatch, adjacency, bound) -> None:
    def fit(rows, targets):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ShorteningWarning)
            made("PrivateRidge", adjacency=adjacency, row_bound=bound).fit(rows, targets)

    rows, targets = X[:200], TARGETS[:200]
    exact, told = _counted(monkeypatch, lambda: fit(rows, targets), None)
    reached = 0.0
    for far in (1e-12, 1.0, -1e6, 1e300):
        if adjacency == "replace-one":
            other = np.vstack([rows[:-1], np.full((1, 3), far)]), np.append(targets[:-1], far)
        else:
            other = rows[:-1], targets[:-1]
        moved, _ = _counted(monkeypatch, lambda other=other: fit(*other), told)
        for (planned, here), (_, there) in zip(exact, moved, strict=True):
            most = planned.add_remove if adjacency == "add-remove" else planned.replace_one
            distance = float(np.linalg.norm(here - there))
            assert distance <= most * (1 + 1e-12)
            reached = max(reached, distance / most)
    assert reached == pytest.approx(1.0), "the bounds are tight"


def test_the_whole_fit_is_charged_before_anything_is_released(tmp_path) -> None:
    budget = Budget(observer="public", unit="record", adjacency="replace-one", epsilon=1.0, delta=1e-5)
    ledger = Ledger.create(tmp_path / "a.ledger", dataset="a", budgets=[budget])
    model = made(epsilon=0.9, random_state=None, ledger=ledger)
    model.fit(X[:300], LABELS[:300])
    (balance,) = ledger.balances()
    assert balance.spent == pytest.approx(0.9, rel=1e-3)
    assert [run.state for run in ledger.runs()] == ["committed"]
    head = ledger.head()
    with pytest.raises(BudgetError):
        model.fit(X[:300], LABELS[:300])
    for refused in ({"solver": "objective-perturbation"}, {"classes": [2, 3]}):
        with pytest.raises(ConsensoError):
            made(epsilon=0.05, random_state=None, ledger=ledger, **refused).fit(X[:300], LABELS[:300])
    assert ledger.head() == head, "what cannot be planned is refused before anything is reserved"


def test_a_failure_after_a_release_stays_charged(tmp_path, monkeypatch) -> None:
    budget = Budget(observer="public", unit="record", adjacency="replace-one", epsilon=1.0, delta=1e-5)
    ledger = Ledger.create(tmp_path / "b.ledger", dataset="b", budgets=[budget])

    def stop(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr("consenso.estimators.learning.solve", stop)
    with pytest.raises(KeyboardInterrupt):
        made(epsilon=0.5, random_state=None, ledger=ledger).fit(X[:300], LABELS[:300])
    assert ledger.balances()[0].spent == pytest.approx(0.5, rel=1e-3)


@pytest.mark.parametrize(
    "options", [{}, {"adjacency": "add-remove"}, {"adjacency": "add-remove", "target_recall": 0.8}]
)
def test_with_public_bounds_what_is_refused_costs_nothing_and_what_is_stopped_costs_all(
    options, tmp_path, monkeypatch
) -> None:
    """Rows that were shortened are counted after the fit, and a threshold is found after it."""
    relation = options.get("adjacency", "replace-one")
    budget = Budget(observer="public", unit="record", adjacency=relation, epsilon=1.0, delta=1e-5)
    ledger = Ledger.create(tmp_path / "c.ledger", dataset="c", budgets=[budget])
    own = {"epsilon": 0.5, "random_state": None, "ledger": ledger, "row_bound": 2.0, "classes": [0, 1], **options}
    with pytest.raises(ConsensoError, match="does not apply"):
        made(solver="objective-perturbation", **own).fit(X[:300], LABELS[:300])
    assert ledger.balances()[0].spent == 0

    def stop(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr("consenso.engine.run.run", stop)
    with pytest.raises(KeyboardInterrupt):
        made(**own).fit(X[:300], LABELS[:300])
    assert ledger.balances()[0].spent == pytest.approx(0.5, rel=1e-3)


def test_many_shortened_rows_give_a_warning_and_few_do_not() -> None:
    standard = (X - CENTER) / SPREAD
    with pytest.warns(ShorteningWarning, match=r"row_bound=0\.5\).*\d+% of the rows"):
        made(row_bound=0.5).fit(standard, LABELS)
    model = made(row_bound=3.0).fit(standard, LABELS)  # a percent of the rows is longer
    assert _names(model) == [ASKED, SHORT, MEAN, "number of rows that were shortened"]
    assert 0.999 < model.guarantee_.epsilon(1e-5) <= 1.0


def test_a_model_file_predicts_as_its_estimator() -> None:
    from consenso.losses import Logistic
    from consenso.models import Model

    model = Model(
        loss=Logistic(),
        coefficients=np.array([[1.0], [-2.0]]),
        intercept=np.array([0.5]),
        features=("a", "b"),
        classes=("0", "1"),
        row_bound=1.5,
    )
    rows = RNG.normal(size=(50, 2)) * 10
    np.testing.assert_allclose(model.estimator().decision_function(rows), model.scores(rows)[:, 0], rtol=1e-12)


def test_a_bound_that_is_found_is_no_longer_than_rows_can_be_within_the_ranges_that_were_found() -> None:
    """With little budget noise makes up lengths; ranges say how long a row can be at all."""
    rng = np.random.default_rng(0)
    rows, labels = rng.uniform(0.5, 1, size=(3000, 3)) * [1.0, 1.0, 1e4], rng.integers(0, 2, 3000)
    for seed in range(12):
        model = consenso.PrivateLogisticRegression(epsilon=0.2, classes=[0, 1], random_state=seed).fit(rows, labels)
        columns = model.row_map_.columns
        reach = np.maximum(np.abs(columns.low - columns.center), np.abs(columns.high - columns.center)) / columns.scale
        assert model.row_bound_ <= np.linalg.norm(reach)


def test_found_bounds_keep_rare_indicators_and_normalised_rows() -> None:
    rng = np.random.default_rng(0)
    rows = np.column_stack([rng.normal(size=(8000, 2)), rng.random(8000) < 0.02])
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    model = consenso.PrivateLogisticRegression(epsilon=1.0, random_state=0).fit(rows, rows[:, 0] > 0)
    assert model.row_bound_ == pytest.approx(1.0, rel=0.2)
    np.testing.assert_array_equal(model.row_map_.columns.scale, np.ones(3))


def _names_of_releases(model) -> list[str]:
    return [one["name"] for one in model.card_.parameters["earlier"]]


def test_columns_that_keep_their_scales_are_moved_only_where_rows_get_shorter() -> None:
    """Ages and pressures are far from 0; of a normalised row that is mostly a category one cell is."""
    rng = np.random.default_rng(0)
    normal = rng.normal(size=(8000, 3))
    patients = normal * [15.0, 20.0, 8.0] + [55.0, 130.0, 80.0]
    moved = made().fit(patients, (normal[:, 0] > 0).astype(int))
    np.testing.assert_allclose(moved.row_map_.columns.center, [55.0, 130.0, 80.0], rtol=0.1)
    assert moved.row_bound_ < 150
    wards = np.column_stack([np.eye(2)[rng.integers(2, size=8000)], rng.uniform(0.2, 0.6, 8000)])
    wards /= np.linalg.norm(wards, axis=1, keepdims=True)
    kept = made().fit(wards, (wards[:, 0] > 0).astype(int))
    assert not kept.row_map_.columns.center.any()
    assert kept.row_bound_ == pytest.approx(1.0, rel=0.1)
    for model in (moved, kept):
        np.testing.assert_array_equal(model.row_map_.columns.scale, np.ones(3))
        assert "number of rows that are shorter around medians" in _names_of_releases(model)
        assert 0.999 < model.guarantee_.epsilon(1e-5) <= 1.0
        assert differences(model.card_) == []


def test_many_records_spend_less_on_bounds_than_few() -> None:
    rng = np.random.default_rng(1)
    spent = []
    for records in (3000, 100_000):
        rows = rng.normal(size=(records, 2))
        (note,) = made().fit(rows, (rows[:, 0] > 0).astype(int)).notes_
        spent.append(float(re.search(r"for (\S+)% of the squared budget", note)[1]))
    assert spent[0] > 4 > 1 > spent[1]


def test_targets_get_a_wider_bound_where_noise_is_small_for_as_many_columns() -> None:
    rng = np.random.default_rng(2)
    targets, bounds = 80.0 + rng.normal(size=20_000), []
    for columns in (4, 250):
        model = made("PrivateRidge", row_bound=1.0).fit(rng.uniform(-0.1, 0.1, (20_000, columns)), targets)
        bounds.append(model.target_bound_)
    # As far as the tail is expected to reach: twice the range where noise is loud, and up to four times.
    assert 1.3 * bounds[1] <= bounds[0] <= 2 * bounds[1]


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_long_tail_of_targets_has_most_of_the_room(sign) -> None:
    rng = np.random.default_rng(2)
    targets = sign * rng.exponential(size=20_000)
    model = made("PrivateRidge", row_bound=1.0).fit(rng.uniform(-0.1, 0.1, (20_000, 4)), targets)
    low, high = sign * model._middle - model.target_bound_, sign * model._middle + model.target_bound_
    assert high > np.abs(targets).max() > 5
    assert -low < 0.2 * high


def test_more_rows_are_shortened_the_more_noise_a_model_has() -> None:
    rng, long = np.random.default_rng(4), []
    for columns in (10, 60, 150):
        rows = rng.normal(size=(8000, columns))
        model = made().fit(rows, (rows[:, 0] > 0).astype(int))
        long.append(float(np.mean(np.linalg.norm(rows, axis=1) > model.row_bound_)))
    assert long[0] < 0.01 < long[1] < 0.12 < long[2] < 0.35


def _few(records: int) -> tuple[np.ndarray, np.ndarray]:
    """An age, an income and a laboratory value: what a hospital has of few patients."""
    rng = np.random.default_rng(3)
    normal = rng.normal(size=(records, 3))
    rows = np.column_stack([60 + 15 * normal[:, 0], np.exp(10.5 + 0.8 * normal[:, 1]), np.exp(0.4 * normal[:, 2])])
    return rows, normal @ [1.0, 0.5, 1.5] + 0.3 * rng.normal(size=records) > 0


def test_columns_of_few_records_on_different_scales_are_brought_to_one() -> None:
    rows, labels = _few(500)
    for seed in range(4):
        model = consenso.PrivateLogisticRegression(epsilon=1.0, random_state=seed).fit(rows, labels)
        asked, columns, lengths = model.card_.parameters["earlier"]
        assert (asked["times"], columns["times"], lengths["times"]) == (1, 1, 1)
        assert model.score(rows, labels) > 0.75, "with the income alone it is 0.6"
        assert 0.999 < model.guarantee_.epsilon(1e-5) <= 1.0


def test_columns_of_few_records_that_are_alike_are_left_alone_and_the_fit_has_their_share() -> None:
    rows, labels = _few(500)
    rows = (rows - rows.mean(axis=0)) / rows.std(axis=0)
    model = consenso.PrivateLogisticRegression(epsilon=1.0, random_state=0).fit(rows, labels)
    assert model.row_map_.columns is None
    asked, lengths = model.card_.parameters["earlier"]
    assert (asked["times"], lengths["times"]) == (1, 1)
    assert 0.999 < model.guarantee_.epsilon(1e-5) <= 1.0, "what was not asked for is spent on the fit"
    assert re.search(r"found in the data for [2-7]\.\d% of the squared budget", model.notes_[0])


def test_a_column_within_one_bin_does_not_make_rows_long() -> None:
    """Years lie in one bin of the range from 1024 to 2048, and 2048 is no place to count them from."""
    rows, labels = _few(4000)
    rows = np.column_stack([rows, 2010.0 + np.arange(4000) % 14])
    for seed in range(6):
        model = consenso.PrivateLogisticRegression(epsilon=1.0, random_state=seed).fit(rows, labels)
        columns = model.row_map_.columns
        assert abs(2017 - columns.center[3]) <= 2 * columns.scale[3]


@pytest.mark.parametrize(("center", "spread"), [(650.0, 20.0), (-3.0, 0.5), (0.0, 40.0), (5e5, 1e5)])
def test_few_targets_are_found_between_powers_of_two(center, spread) -> None:
    rng = np.random.default_rng(3)
    rows = rng.normal(size=(300, 3))
    targets = center + spread * rng.normal(size=300)
    inside = []
    for seed in range(5):
        model = consenso.PrivateRidge(epsilon=1.0, delta=1e-5, row_bound=3.0, random_state=seed).fit(rows, targets)
        inside.append(np.mean(np.abs(targets - model._middle) <= model.target_bound_))
        assert model.target_bound_ <= 4 * (abs(center) + 3 * spread)
    assert np.mean(inside) > 0.8


def test_columns_are_found_in_noise_in_which_no_bin_stands_out() -> None:
    """500 records of 40 columns at epsilon 1: noise is a sixth of them in each of 121 bins.

    29 of 160 columns are lost, those around 0 the most often, since they fill the most bins.
    """
    rng = np.random.default_rng(5)
    noise, lost = 500 / 6, 0
    sizes = 10.0 ** rng.uniform(-3, 5, size=160)
    laws = [
        lambda: 50 + 12 * rng.normal(size=500),
        lambda: np.exp(rng.normal(size=500)),
        lambda: rng.normal(size=500),
        lambda: rng.poisson(1.0, size=500).astype(float),
    ]
    for start in range(0, 160, 40):
        table = np.stack([laws[j % 4]() * sizes[start + j] for j in range(40)], axis=1)
        counts = count_exactly(table, np.tile(SIGNED_EDGES, (40, 1)))
        found = read_scales(counts + noise * rng.normal(size=counts.shape), noise, (500.0, 500.0))
        away = np.abs(np.median(table, axis=0) - found.center) / found.size
        lost += int(
            np.sum((away > 2.5) | (found.size > 16 * table.std(axis=0)) | (table.std(axis=0) > 16 * found.size))
        )
    assert lost <= 40


def test_a_shape_is_read_from_clear_counts() -> None:
    rng = np.random.default_rng(0)
    columns = {
        "ages": (rng.normal(50, 10, 2000), (35, 65), (5, 25)),
        "around 0": (rng.normal(0, 3, 2000), (0, 0), (2, 5)),
        "debts": (-np.exp(rng.normal(7, 0.5, 2000)), (-2000, -700), (300, 1500)),
        "zeros and ones": ((rng.random(2000) < 0.3).astype(float), (0, 0), (1, 1)),
        "mostly zeros": (np.where(rng.random(2000) < 0.8, 0, 500 * rng.random(2000)), (0, 0), (150, 700)),
        "nothing but zeros": (np.zeros(2000), (0, 0), (1, 1)),
    }
    for name, (cells, center, size) in columns.items():
        counts = count_exactly(cells[:, None], SIGNED_EDGES[None])
        found = read_scales(counts, 20.0, (2000.0, 2000.0))
        assert center[0] <= found.center[0] <= center[1], name
        assert size[0] <= found.size[0] <= size[1], name


def test_lengths_of_few_rows_are_found_in_noise_and_noise_alone_says_what_is_usual() -> None:
    rng, noise = np.random.default_rng(0), 38.0
    for spread, level in ((0.0, 0.75), (0.25, 0.75), (0.25, 0.5)):
        lengths = 37.0 * np.exp2(spread * rng.normal(size=455))
        counts = count_exactly(lengths[:, None], LENGTH_EDGES[None])[0]
        found = [
            read_length(counts + noise * rng.normal(size=len(counts)), noise, (455, 455), level) for _ in range(40)
        ]
        # Half an octave: two histograms had missed it by more in one fit of six.
        assert np.mean(np.abs(np.log2(found / np.quantile(lengths, level))) < 0.5) >= 0.9
    assert read_length(counts, 1e-3, (455, 455), 0.5) == pytest.approx(np.median(lengths), rel=0.05)
    # Nothing but noise: a third of what is usual beforehand, around 4, or the root of columns that were scaled.
    below = math.log(2 * CAREFUL)
    assert read_length(0 * counts, 1e6, (1, 1), 0.5) == pytest.approx(4.0 * 2 ** (6 * below), rel=0.1)
    assert read_length(0 * counts, 1e6, (1, 1), 0.5, columns=100) == pytest.approx(10.0 * 2**below, rel=0.1)


def test_few_targets_that_are_far_from_0_have_a_second_histogram_and_others_leave_its_share_to_the_fit() -> None:
    """Test scores around 650: in one bin between powers of two, and a twentieth as wide as it."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(300, 3))
    scores = 650 + 15 * rows @ [1.0, 0.5, 0.0] + 8 * rng.normal(size=300)
    ratios = []
    for seed in range(6):
        model = consenso.PrivateRidge(epsilon=1.0, random_state=seed).fit(rows, scores)
        assert _names_of_releases(model)[-2:] == ["histogram of targets", "targets between these"]
        assert 0.999 < model.guarantee_.epsilon(1e-5) <= 1.0
        ratios.append(np.mean((model.predict(rows) - scores) ** 2) / scores.var())
    assert np.median(ratios) < 0.8, "within one bin alone they were 1 to 3"
    around = consenso.PrivateRidge(epsilon=1.0, random_state=0).fit(rows, scores - 650)
    assert _names_of_releases(around)[-1] == "histogram of targets"
    assert 0.999 < around.guarantee_.epsilon(1e-5) <= 1.0


@pytest.mark.parametrize("sign", [1, -1])
def test_mean_and_spread_of_targets_are_read_from_noisy_counts(sign) -> None:
    rng = np.random.default_rng(1)
    targets = sign * (650 + 20 * rng.normal(size=(300, 1)))
    assert enclose(-1.0, 1.0) is None
    assert enclose(1.0, 100.0) is None
    ends = enclose(*sorted((sign * 600.0, sign * 1100.0)))
    assert ends is not None
    edges = fine_edges(ends)
    (counts,) = count_exactly(targets, edges[None])
    mean, spread = read_center(counts + 25 * rng.normal(size=len(counts)), edges, 25.0, (300, 300))
    assert mean == pytest.approx(sign * 650, abs=20)
    assert 15 < spread < 60


@pytest.mark.parametrize("change", [np.asarray, sparse.csr_array])
def test_a_row_that_is_longer_than_numbers_are_is_shortened_in_predict_as_in_fit(change) -> None:
    rows, targets = np.array([[3e200, -4e200], [0.5, 0.0], [3.0, -4.0]]), np.array([1.0, 0.0, 1.0])
    model = made("PrivateRidge", row_bound=2.0, target_bound=1.0).fit(change(rows), targets)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        far, _, near = model.predict(change(rows))
    assert far == pytest.approx(near)


def _declared(**options: Any) -> consenso.PrivateLogisticRegression:
    return consenso.PrivateLogisticRegression(
        **{"epsilon": 1.0, "row_bound": 1e6, "classes": [False, True], "random_state": 0} | options
    )


def _names(model: Any) -> list[str]:
    return [each["name"] for each in model.card_.parameters.get("earlier", ())]


MEAN = "mean row"
ASKED = "number of rows with cells of very different sizes"
SHORT = "number of rows longer than a part of row_bound"


def test_a_declared_bound_does_not_hide_columns_that_are_far_below_others() -> None:
    rows, labels = _few(4000)
    model = _declared().fit(rows, labels)
    assert _names(model) == [ASKED, "histograms of columns", "lengths of rows"]
    assert model.score(rows, labels) > 0.85, "with the income alone it is 0.6"
    assert _declared(bounds="public").fit(rows, labels).score(rows, labels) < 0.7
    assert "after they were shortened to row_bound" in model.notes_[0]
    assert model.row_bound_ < 100
    assert 0.999 < model.guarantee_.epsilon(1e-5) <= 1.0
    # Coefficients are in the units of the columns.
    np.testing.assert_allclose(
        model.decision_function(rows[:9]), rows[:9] @ model.coef_[0] + model.intercept_, atol=1e-6
    )


def test_a_declared_bound_stays_where_columns_are_alike_and_the_fit_has_nearly_all() -> None:
    rows, labels = _few(4000)
    rows = (rows - rows.mean(axis=0)) / rows.std(axis=0) * [1.0, 10.0, 3.0]
    model = _declared(row_bound=20.0).fit(rows, labels)
    assert _names(model) == [ASKED, SHORT, MEAN, "number of rows that were shortened"]
    assert model.row_map_.columns is None
    assert model.row_bound_ == 20.0
    assert model.notes_ == ()
    plain = _declared(row_bound=20.0, bounds="public").fit(rows, labels)
    noises = [each._plan.noise["gradient"].multiplier for each in (model, plain)]
    assert noises[1] < noises[0] < 1.005 * noises[1]


def test_a_declared_bound_does_not_hide_how_columns_vary_around_means_far_from_0() -> None:
    rng = np.random.default_rng(4)
    normal = rng.normal(size=(6000, 4))
    rows = normal * [10.0, 5.0, 15.0, 8.0] + [290.0, 2010.0, 120.0, 1013.0]  # degrees, years, pressures
    labels = normal @ [1.0, -1.0, 0.5, 0.0] + 0.5 * rng.normal(size=6000) > 0
    model = _declared(row_bound=2500.0).fit(rows, labels)
    assert _names(model) == [ASKED, SHORT, MEAN, "number of rows that are shorter around the mean", "lengths of rows"]
    assert model.score(rows, labels) > 0.87
    assert _declared(row_bound=2500.0, bounds="public").fit(rows, labels).score(rows, labels) < 0.8
    assert "moved by their means" in model.notes_[0]
    assert np.linalg.norm(model.row_map_.columns.center - rows.mean(axis=0)) < 2500 / 8
    assert 0.999 < model.guarantee_.epsilon(1e-5) <= 1.0
    # Without an intercept nothing is moved.
    assert MEAN not in _names(_declared(row_bound=2500.0, fit_intercept=False).fit(rows, labels))


def test_a_mean_row_is_that_of_rows_within_their_bound_and_no_batch_changes_a_bit() -> None:
    from consenso.estimators.declared_rows import _sum_cells

    rng = np.random.default_rng(0)
    rows = rng.normal(size=(30_000, 7)) + 3.0
    rows[0] = 1e300, 0, 0, 0, 0, 0, 0
    weights, step = rng.random(len(rows)), 2.0**-20 * 16
    for kind in (np.float64, np.float32):
        given = np.clip(rows, -1e30, 1e30).astype(kind)
        short = (
            given.astype(np.float64) * np.minimum(1, 9.0 / np.linalg.norm(given.astype(np.float64), axis=1))[:, None]
        )
        for own in (None, weights):
            whole = _sum_cells(RowBatch(given, None, own), 9.0, step)
            expected = short.sum(axis=0) if own is None else own @ short
            np.testing.assert_allclose(whole * step, expected, rtol=1e-6)
            order = rng.permutation(len(rows))
            parts = [
                _sum_cells(RowBatch(given[part], None, None if own is None else own[part]), 9.0, step)
                for part in np.array_split(order, 11)
            ]
            assert (sum(parts) == whole).all()


def test_one_record_moves_the_mean_row_by_no_more_than_declared(monkeypatch) -> None:
    rng = np.random.default_rng(4)
    rows = rng.normal(30.0, 1.0, size=(1500, 3)) + np.array([0.0, 10.0, 20.0])
    labels = rows[:, 0] + rng.normal(size=1500) > 30
    own = {"row_bound": 75.0, "epsilon": 3.0}
    exact, told = _counted(monkeypatch, lambda: _declared(**own).fit(rows, labels), None)
    assert [planned.name for planned, _ in exact][:3] == [ASKED, SHORT, MEAN]
    reached = 0.0
    for cells in ([1e200, 0.0, 0.0], [-30.0, -40.0, -50.0], [-1e9, -1e9, -1e9], [1e-300, 0.0, 0.0]):
        other = np.vstack([rows[:-1], [cells]])
        moved, _ = _counted(monkeypatch, lambda other=other: _declared(**own).fit(other, labels), told)
        for (planned, here), (_, there) in zip(exact, moved, strict=True):
            distance = float(np.linalg.norm(here - there))
            assert distance <= planned.replace_one
            if planned.name == MEAN:
                reached = max(reached, distance / planned.replace_one)
    assert reached > 0.9, "the bound is nearly attained"


@pytest.mark.parametrize(
    ("options", "records"),
    [
        ({"alpha": 1e-3}, 4000),
        ({"bounds": "public"}, 4000),
        ({"adjacency": "add-remove"}, 4000),
        ({}, 150),
    ],
    ids=["a penalty that was set", "public bounds", "a private number of records", "few records"],
)
def test_nothing_is_asked_of_columns(options, records) -> None:
    rows, labels = _few(records)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ShorteningWarning)
        assert ASKED not in _names(_declared(**options).fit(rows, labels))


@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
def test_one_record_moves_what_is_asked_of_columns_by_no_more_than_declared(monkeypatch, adjacency) -> None:
    rows, labels = _few(1500)
    own = {"adjacency": adjacency, "epsilon": 3.0} | ({"records": 1500} if adjacency == "add-remove" else {})
    exact, told = _counted(monkeypatch, lambda: _declared(**own).fit(rows, labels), None)
    assert exact[0][0].name == ASKED
    assert len(exact) > 2
    for cells in ([0.0, 0.0, 0.0], [1e300, 1e-300, 1.0], [1.0, 1.0, 1.0], [-1e6, 1.0, 0.0]):
        other = np.vstack([rows[:-1], [cells]]) if adjacency == "replace-one" else rows[:-1]
        moved, _ = _counted(monkeypatch, lambda other=other: _declared(**own).fit(other, labels[: len(other)]), told)
        for (planned, here), (_, there) in zip(exact, moved, strict=True):
            most = planned.add_remove if adjacency == "add-remove" else planned.replace_one
            assert float(np.linalg.norm(here - there)) <= most * (1 + 1e-12)


NARROW_TARGETS = "targets within parts of target_bound"


@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
@pytest.mark.parametrize("records", [150, 1500])
def test_one_record_moves_what_is_asked_of_targets_by_no_more_than_declared(monkeypatch, adjacency, records) -> None:
    rng = np.random.default_rng(4)
    rows, targets = rng.normal(size=(records, 3)), 50.0 + rng.normal(size=records)
    own = {"adjacency": adjacency, "epsilon": 3.0, "row_bound": 5.0, "target_bound": 300.0, "random_state": 0}
    own |= {"records": records} if adjacency == "add-remove" else {}
    exact, told = _counted(monkeypatch, lambda: consenso.PrivateRidge(**own).fit(rows, targets), None)
    names = [planned.name for planned, _ in exact]
    assert len(names[names.index(NARROW_TARGETS) :]) > 1, "so that targets are looked for"
    for last in (1e300, -1e-300, 0.0, -50.0):
        other = (rows, np.append(targets[:-1], last)) if adjacency == "replace-one" else (rows[:-1], targets[:-1])
        moved, _ = _counted(monkeypatch, lambda other=other: consenso.PrivateRidge(**own).fit(*other), told)
        for (planned, here), (_, there) in zip(exact, moved, strict=True):
            most = planned.add_remove if adjacency == "add-remove" else planned.replace_one
            assert float(np.linalg.norm(here - there)) <= most * (1 + 1e-12)


def test_a_declared_bound_does_not_hide_where_targets_lie() -> None:
    rng = np.random.default_rng(4)
    rows = rng.normal(size=(400, 3))
    years = 1990.0 + 10 * rows[:, 0] + 3 * rng.normal(size=400)
    own = {"epsilon": 3.0, "row_bound": 5.0, "target_bound": 20_000.0, "random_state": 0}
    model = consenso.PrivateRidge(**own).fit(rows, years)
    assert NARROW_TARGETS in _names(model)
    assert "Most targets lie in a small part of target_bound." in model.notes_[-1]
    assert model.target_bound_ < 150
    assert model.score(rows, years) > 0.8
    assert 2.99 < model.guarantee_.epsilon(1e-5) <= 3.0
    # The answer of the fit that does not ask is no better than a constant.
    assert consenso.PrivateRidge(bounds="public", **own).fit(rows, years).score(rows, years) < 0.5


def test_a_fit_that_goes_on_keeps_to_the_targets_that_were_found() -> None:
    rng = np.random.default_rng(4)
    rows = rng.normal(size=(800, 3))
    years = 1990.0 + 10 * rows[:, 0] + 3 * rng.normal(size=800)
    model = consenso.PrivateRidge(epsilon=3.0, row_bound=5.0, target_bound=20_000.0, random_state=0)
    first = model.partial_fit(rows[:400], years[:400]).target_bound_
    assert first < 150
    assert model.partial_fit(rows[400:], years[400:]).target_bound_ == first
    assert model.score(rows, years) > 0.85, "with the declared bound it was worse than the mean"


def test_a_declared_target_bound_stays_where_targets_fill_it() -> None:
    rng = np.random.default_rng(4)
    rows = rng.normal(size=(400, 3))
    targets = rows[:, 0] + 0.3 * rng.normal(size=400)
    model = consenso.PrivateRidge(epsilon=3.0, row_bound=4.0, target_bound=3.0, random_state=0).fit(rows, targets)
    assert model.target_bound_ == 3.0
    assert NARROW_TARGETS in _names(model)
    assert "histogram of targets" not in _names(model)
    again = consenso.PrivateRidge(epsilon=3.0, row_bound=4.0, target_bound=3.0, bounds="public").fit(rows, targets)
    assert again.card_.parameters.get("earlier", ()) == ()


@pytest.mark.parametrize("solver", ["objective-perturbation", "dual-admm", "dp-sgd"])
def test_nothing_is_asked_where_a_solver_cannot_share_its_budget(solver) -> None:
    rows, labels = _few(4000)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ShorteningWarning)
        model = _declared(solver=solver, adjacency="add-remove", records=4000).fit(rows, labels)
    assert _names(model) == []


def test_compiled_loops_count_the_same_rows_with_cells_of_very_different_sizes() -> None:
    from consenso.estimators.column_search import _count_apart
    from consenso.whole_steps import FEW_PRODUCTS

    rng = np.random.default_rng(0)
    rows = rng.normal(size=(FEW_PRODUCTS // 8, 9)) * np.geomspace(1, 200, 9)
    rows[rng.random(rows.shape) < 0.3] = 0.0
    rows[:50] = 0.0
    rows[50:60] = np.geomspace(1, 256, 9)  # the limit itself is not below it
    rows[60:70] = 1e200  # whose square is no number
    parts = [RowBatch(rows[start : start + 1000], None) for start in range(0, len(rows), 1000)]
    for apart in (16.0, 64.0, 256.0):
        sizes = np.sort(np.where(rows == 0, np.nan, np.abs(rows)), axis=1)
        full = np.count_nonzero(rows, axis=1)
        quartile = np.take_along_axis(sizes, np.minimum(full // 4, 8)[:, None], axis=1)[:, 0]
        is_apart = np.nanmax(np.where(full[:, None] > 0, sizes, 0.0), axis=1) / apart > quartile
        expected = np.count_nonzero(is_apart)
        assert _count_apart(RowBatch(rows, None), apart)[0] == expected
        assert sum(_count_apart(part, apart)[0] for part in parts) == expected
