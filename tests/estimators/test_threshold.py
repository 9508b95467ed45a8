"""A threshold for a recall: found within the budget, on the safe side of its noise, and used in predict."""

from __future__ import annotations

import json
import math
import pickle
import warnings

import numpy as np
import pytest
from sklearn.metrics import recall_score

import consenso
from consenso.errors import InputError
from consenso.estimators.privacy_params import terms_of
from consenso.estimators.stages import Stages
from consenso.estimators.threshold import STEPS, ThresholdSearch, ThresholdWarning, warn_of_threshold
from consenso.planning.replan import differences
from consenso.privacy.verify import first_failure, verify

RNG = np.random.default_rng(6)
X = RNG.normal(size=(12000, 3))
LABELS = RNG.random(12000) < 1 / (1 + np.exp(-(X @ [2.0, -1.0, 0.5] - 2.5)))


def made(name="PrivateLogisticRegression", **rest):
    known = {"epsilon": 1.0, "delta": 1e-5, "row_bound": 3.0, "target_recall": 0.8, "random_state": 0}
    return getattr(consenso, name)(**(known | rest))


@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
@pytest.mark.parametrize("name", ["PrivateLogisticRegression", "PrivateLinearSVC"])
def test_the_recall_is_what_was_asked_for(name, adjacency) -> None:
    model = made(name, adjacency=adjacency).fit(X, LABELS)
    assert 0.8 <= recall_score(LABELS, model.predict(X)) < 0.95
    assert recall_score(LABELS, model.decision_function(X) > 0) < 0.7
    np.testing.assert_array_equal(model.predict(X), model.decision_function(X) > model.threshold_)
    assert 0.999 < model.guarantee_.epsilon(1e-5) <= 1.0
    card = model.card_
    assert "recall at thresholds" in [each["name"] for each in card.parameters["earlier"]]
    assert first_failure(verify(json.loads(json.dumps(card.to_json())))) is None
    assert differences(card) == []
    assert "for a recall of 0.8" in model.notes_[-1]
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict(X), model.predict(X))


def _search(recall, seed, scores, positive):
    terms = terms_of(made(random_state=seed), "Test", len(scores))
    stages = Stages(terms=terms)
    return ThresholdSearch.plan(stages, recall, 8.0).find(stages, scores, positive, None)


def test_it_errs_on_the_safe_side() -> None:
    """By noise alone it falls short in one search of twenty at most: 100 searches, false alarm below 1e-6."""
    scores = RNG.normal(size=3000) * 2
    positive = np.arange(3000) < 1500
    short = [np.mean(scores[positive] > _search(0.7, seed, scores, positive)) < 0.7 for seed in range(100)]
    assert sum(short) <= 18


@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
def test_one_record_moves_a_step_by_what_was_declared(adjacency) -> None:
    seen = []

    class Spy(Stages):
        def release(self, planned, time, exact):
            seen.append((planned, float(exact[0])))
            return np.zeros(1)

    scores, positive = np.array([-9.0, 9.0, 1.0]), np.array([True, True, False])
    terms = terms_of(made(adjacency=adjacency), "Test", 3)
    reached = 0.0
    worlds = [(scores, positive)]
    if adjacency == "replace-one":
        worlds += [(np.array([-9.0, 9.0, s]), np.array([True, True, p])) for s in (-9, 9) for p in (True, False)]
        worlds += [(np.array([9.0, 9.0, 1.0]), positive)]
    else:
        worlds += [(scores[1:], positive[1:]), (scores[[0, 2]], positive[[0, 2]])]
    for other in worlds:
        stages = Spy(terms=terms)
        ThresholdSearch.plan(stages, 0.8, 8.0).find(stages, *other, None)
    first = seen[:STEPS]
    for start in range(0, len(seen), STEPS):
        for (planned, here), (_, there) in zip(first, seen[start : start + STEPS], strict=True):
            most = planned.replace_one if adjacency == "replace-one" else planned.add_remove
            assert abs(here - there) <= most * (1 + 1e-12)
            reached = max(reached, abs(here - there) / most)
    assert reached == pytest.approx(1.0, rel=1e-5), "the bounds are tight, but for what rounding adds"


def test_too_few_records_are_said_to_be_too_few() -> None:
    with pytest.warns(ThresholdWarning, match=r"target_recall=0.95\): all records are predicted"):
        model = made(target_recall=0.95).fit(X[:600], LABELS[:600])
    assert model.threshold_ == -math.inf
    assert "too few records" in model.notes_[-1]
    assert model.predict(X).all()


def test_a_threshold_at_the_end_of_the_grid_is_warned_of_and_no_other() -> None:
    """By the released threshold and the public grid alone."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", ThresholdWarning)
        made().fit(X, LABELS)
        warn_of_threshold("Model", 0.8, 7.9, 8.0)
    for threshold, said in ((-8.0, "all records"), (-math.inf, "all records"), (8.0, "no record")):
        with pytest.warns(ThresholdWarning, match=said):
            warn_of_threshold("Model", 0.8, threshold, 8.0)


def test_it_is_for_two_classes() -> None:
    with pytest.raises(InputError, match="decides between two classes"):
        made(classes=[0, 1, 2]).fit(X, LABELS.astype(int))
