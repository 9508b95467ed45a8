"""A forecast follows from the public facts of a study: no private file is opened, and the budget shows."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from consenso.errors import InputError
from consenso.report.expected import curves_of, forecast_html, rows_of
from consenso.study import Study
from consenso.study.forecast import _odds, forecast
from consenso.study.made_up import draw_weights, make_records

SCHEMA = """
[columns.age]
kind = "numeric"
low = 0
high = 100
[columns.job]
kind = "category"
categories = ["cook", "nurse"]
strict = true
[columns.smoker]
kind = "binary"
categories = ["no", "yes"]
[columns.ill]
kind = "label"
classes = ["no", "yes"]
"""
STUDY = """
[data]
table = "private.csv"
schema = "schema.toml"
rows = 3000
[model]
loss = "logistic"
regularizer = {kind = "l2", strength = 0.001}
intercept = true
[privacy]
epsilon = 1.0
delta = 1e-5
ledger = "there-is-none.ledger"
[setting]
kind = "central"
"""


@pytest.fixture
def study(tmp_path: Path) -> Study:
    (tmp_path / "schema.toml").write_text(SCHEMA)
    (tmp_path / "study.toml").write_text(STUDY)  # private.csv and the ledger do not exist
    return Study.load(tmp_path / "study.toml")


def test_more_budget_is_expected_to_reach_more_and_promise_less(study: Study) -> None:
    found = forecast(study, (0.02, 5.0), runs=2)
    low, high = found.points
    assert found.simplest - 0.1 < low.mean < high.mean <= found.exact + 0.02
    assert low.odds < high.odds
    assert low.odds == _odds(0.02, 1e-5) == 51
    assert found.records == 3000
    assert found.exact > 0.75
    page = forecast_html(found)
    for row in rows_of(found):
        assert all(f">{cell}</t" in page for cell in row)
    assert "No private row was read" in page
    assert curves_of(found).references["without privacy"] == found.exact
    # The rules know nothing of the records: their line runs between the simplest and the exact model.
    assert found.simplest <= low.by_rules < high.by_rules < found.exact
    assert high.by_rules > found.exact - 0.02
    (_, ruled) = curves_of(found).curves
    assert ruled.means == (low.by_rules, high.by_rules)


def test_many_records_are_stood_for_by_fewer_with_the_same_noise(study: Study) -> None:
    many = study.change({"data.rows": 1_000_000})
    small, whole = forecast(many, (0.005,), runs=2, most=2000), forecast(study, (0.005,), runs=2)
    assert small.records == 1_000_000
    assert small.points[0].mean > whole.points[0].mean + 0.1, "a million records need little noise"


def test_a_public_file_takes_the_place_of_made_up_records(study: Study, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    ages = rng.uniform(0, 100, 400)
    lines = [f"{age:.1f},cook,{rng.choice(['no', 'yes'])},{'yes' if age > 50 else 'no'}" for age in ages]
    (tmp_path / "public.csv").write_text("\n".join(["age,job,smoker,ill", *lines]) + "\n")
    found = forecast(study, (5.0,), public=tmp_path / "public.csv", runs=1)
    assert found.exact > 0.9
    assert found.points[0].mean > 0.85
    assert "public.csv" in found.source
    with pytest.raises(InputError, match=r"nowhere\.csv"):
        forecast(study, (5.0,), public=tmp_path / "nowhere.csv", runs=1)


def test_made_up_records_keep_to_the_schema(study: Study) -> None:
    rng = np.random.default_rng(1)
    made = make_records(study.data, draw_weights(study.data, rng), 500, rng)
    assert made.X.shape == (500, study.data.features)
    assert np.linalg.norm(made.X, axis=1).max() <= study.data.bound + 1e-12
    assert set(np.unique(made.y)) == {-1.0, 1.0}
    assert np.array_equal(made.X[:, 1:3].sum(axis=1), np.ones(500)), "one job each"


def test_rules_speak_only_of_what_they_chose(study: Study) -> None:
    named = study.change({"setting.algorithm": "DPSGD", "setting.rounds": 5, "setting.parameters": {"step": 1.0}})
    found = forecast(named, (1.0,), runs=1, most=500)
    assert [point.by_rules for point in found.points] == [None]
    assert len(curves_of(found).curves) == 1
    assert rows_of(found)[0][2] == "-"
