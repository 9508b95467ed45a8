"""Labels that nobody declared are found within the budget, and one unit moves what is released as declared."""

from __future__ import annotations

import json
import math
import pickle

import numpy as np
import pytest
from scipy.stats import norm

import consenso
from consenso.errors import InputError
from consenso.estimators.labels import LABELS_SHARE, LabelsError, find_labels, prepare_terms, telling_count
from consenso.estimators.privacy_params import terms_of
from consenso.estimators.stages import Stages
from consenso.planning.replan import differences
from consenso.privacy.ledger import Budget, Ledger
from consenso.privacy.verify import first_failure, verify

RNG = np.random.default_rng(5)
X = RNG.normal(size=(4000, 3)) * [1.0, 300.0, 0.01]
SCORES = X @ [1.0, -1 / 300, 50.0]
THREE = np.array(["a", "b", "c"])[np.digitize(SCORES, [-1.0, 1.0])]


def made(**rest):
    return consenso.PrivateLogisticRegression(**({"epsilon": 1.0, "delta": 1e-5, "random_state": 0} | rest))


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        (SCORES > 0, [False, True]),
        ((SCORES > 0).astype(int), [0, 1]),
        (np.where(SCORES > 0, 1.0, -1.0), [-1.0, 1.0]),
        ((SCORES > 3.5).astype(int), [0, 1]),  # twenty records of the rare class
        (np.where(SCORES > -2.3, 1, -1), [-1, 1]),
        (np.where(SCORES > 3.5, "Yes", "No"), ["No", "Yes"]),
        (np.where(SCORES > 3.5, "positive", "negative").astype(object), ["negative", "positive"]),
        (THREE, ["a", "b", "c"]),
        (np.digitize(SCORES, [-1.0, 1.0]) + 4, [4, 5, 6]),
    ],
    ids=["truth values", "0 and 1", "-1 and 1", "rare", "rare -1", "rare yes", "rare positive", "texts", "numbers"],
)
def test_a_raw_table_needs_no_list_of_labels(labels, expected) -> None:
    model = made().fit(X, labels)
    assert model.classes_.tolist() == expected
    assert model.score(X, labels) > 0.85
    assert 0.999 < model.guarantee_.epsilon(1e-5) <= 1.0
    card = model.card_
    names = [each["name"] for each in card.parameters["earlier"]]
    assert ("numbers of records of labels" in names) == (labels.dtype != bool)
    stored = json.dumps(card.to_json())
    assert first_failure(verify(json.loads(stored))) is None
    assert differences(card) == []
    assert "set of labels" not in " ".join(model.guarantee_.assumptions), "nothing is assumed of the labels"


def _counts(labels, adjacency):
    """What would be released without noise: names of labels with the exact counts, and how it was planned."""
    seen = []

    class Spy(Stages):
        def release(self, planned, time, exact):
            seen.append((planned, exact.copy()))
            return exact + 1e6  # whatever is there is told

    terms = prepare_terms(terms_of(made(adjacency=adjacency, records=None), "Test", len(labels)))
    found, _ = find_labels(labels, Spy(terms=terms), None)
    ((planned, exact),) = seen
    return dict(zip(found.classes.tolist(), exact, strict=True)), planned


@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
def test_one_record_moves_counts_of_labels_by_what_was_declared(adjacency) -> None:
    one, planned = _counts(THREE, adjacency)
    moved = 0.0
    for last in ["a", "b", "c"]:
        other = np.append(THREE[:-1], last) if adjacency == "replace-one" else THREE[:-1]
        there, _ = _counts(other, adjacency)
        moved = max(moved, math.hypot(*(one[name] - there.get(name, 0.0) for name in one)))
    assert moved == pytest.approx(planned.replace_one if adjacency == "replace-one" else planned.add_remove)


def test_a_label_of_one_record_is_told_as_often_as_was_set_aside_and_no_more() -> None:
    terms = prepare_terms(terms_of(made(), "Test", 1000))
    stages = Stages(terms=terms)
    planned = stages.plan(LABELS_SHARE, name="n", add_remove=1.0, replace_one=math.sqrt(2), size=9, tells=terms.tells)
    scale = planned.scale("replace-one")
    for most in (1, 64):
        level = telling_count(scale, terms.tells, most)
        assert 0.9 * terms.tells < most * norm.sf((level - 1.0) / scale) <= terms.tells
    # It is part of what is charged: delta loses it in either world.
    event = planned.event(terms.sampler, "replace-one", "record", "replace-one")
    from consenso.privacy.accountants import find_told

    assert find_told(event) == terms.tells


def test_a_rare_text_is_not_told_and_its_records_count_with_the_most_frequent() -> None:
    labels = np.where(np.arange(4000) % 1000 == 0, "z secret", np.where(SCORES > 0, "ill", "well"))
    model = made().fit(X, labels)
    assert model.classes_.tolist() == ["ill", "well"]
    assert model.classes_.dtype == np.array(["ill", "well"]).dtype, "a type as long as the rare label tells its length"
    assert "secret" not in " ".join(model.notes_)
    with pytest.raises(InputError, match=r"fewer than two labels.*which is spent; pass classes") as caught:
        made().fit(X[:150], labels[:150])
    assert "ill" not in str(caught.value)


def test_labels_that_a_model_cannot_have_are_told_with_the_refusal_and_nothing_else_is_released(
    tmp_path, monkeypatch
) -> None:
    budget = Budget(observer="public", unit="record", adjacency="replace-one", epsilon=3.0, delta=1e-5)
    ledger = Ledger.create(tmp_path / "a.ledger", dataset="a", budgets=[budget])
    monkeypatch.setattr(
        "consenso.estimators.learning.find_rows", lambda *_, **__: pytest.fail("bounds were looked for")
    )
    for model in (
        consenso.PrivateLinearSVC(epsilon=1.0, delta=1e-5, ledger=ledger),
        made(random_state=None, ledger=ledger, target_recall=0.8),
    ):
        with pytest.raises(
            LabelsError, match=r"there are \d.*epsilon of 1 of this call is spent.*classes=\["
        ) as caught:
            model.fit(X, THREE)
        # Noise has no seed here: it tells a candidate that no record has in one fit of 250.
        told = caught.value.classes.tolist()
        assert {"a", "b", "c"} <= set(told)
        assert f"there are {len(told)}" in str(caught.value)
        kept = pickle.loads(pickle.dumps(caught.value))
        assert str(kept) == str(caught.value)
        assert kept.classes.tolist() == caught.value.classes.tolist()
    assert ledger.balances()[0].spent > 1.0, "both calls are charged"
    with pytest.raises(InputError, match="there are 3"):
        consenso.PrivateLinearSVC(epsilon=1.0, classes=["a", "b", "c"], ledger=ledger).fit(X, THREE)


@pytest.mark.parametrize("odd", [2.0, True, 2**63, np.int8(7), "one"])
def test_one_label_of_a_list_does_not_decide_the_type_of_the_classes(odd) -> None:
    labels = (SCORES[:300] > 0).astype(int).tolist()
    usual = made(row_bound=1.0).fit(X[:300], labels).classes_
    labels[7] = odd
    if isinstance(odd, np.int8):
        assert made(row_bound=1.0).fit(X[:300], labels).classes_.dtype == usual.dtype
    else:
        with pytest.raises(InputError, match="row 7"):  # for whoever holds the table; nothing is released
            made(row_bound=1.0).fit(X[:300], labels)


class _Text(str):
    """A text of a type of its own."""


@pytest.mark.parametrize(
    ("labels", "same"),
    [
        (np.tile([0.0, 1.0], 200), -0.0),
        (np.tile(np.float32([0.0, 1.0]), 200), -0.0),
        (np.array(["ill", "well"] * 200, dtype=object), _Text("ill")),
        (np.array(["no", "yes"] * 200, dtype=object), np.str_("no")),
    ],
    ids=["zero", "zero in single precision", "text", "candidate"],
)
def test_labels_that_are_equal_are_told_alike_however_a_record_writes_them(labels, same) -> None:
    usual = made(row_bound=1.0, epsilon=20.0).fit(X[:400], labels)
    # Which of several equal cells a sort puts first depends on their places: all are tried.
    for row in range(0, 400, 2):
        own = labels.copy()
        own[row] = same
        found, _ = find_labels(own, _begin_stages(), None)
        assert pickle.dumps(found.classes) == pickle.dumps(usual.classes_)
        assert pickle.dumps(found.others) == pickle.dumps(usual._others)


def _begin_stages() -> Stages:
    estimator = made(epsilon=20.0)
    return Stages(prepare_terms(terms_of(estimator, "test", 400)))


def test_an_error_does_not_say_whether_labels_are_of_a_public_pair() -> None:
    said = set()
    for label in ("no", "z secret"):
        with pytest.raises(InputError, match="fewer than two labels") as caught:
            made().fit(X[:6], np.array([label] * 6))
        said.add(str(caught.value))
    assert len(said) == 1


def test_how_many_labels_there_are_decides_nothing() -> None:
    common = np.where(SCORES > 0, "ill", "well").astype(object)
    for rare in (999, 1000, 1001, 2000):
        labels = common.copy()
        labels[:rare] = [f"z{place}" for place in range(rare)]
        assert made().fit(X, labels.astype(str)).classes_.tolist() == ["ill", "well"]


def test_people_with_many_labels_are_counted_once() -> None:
    ids = np.repeat(np.arange(2000), 2)
    model = made().fit(X, THREE, users=ids)
    assert model.classes_.tolist() == ["a", "b", "c"]
    assert 0.999 < model.guarantee_.epsilon(1e-5) <= 1.0


def test_too_few_people_of_a_label_are_called_people() -> None:
    labels = np.array(["ill", "well"])[np.arange(200) // 100]
    with pytest.raises(InputError, match="fewer than two labels have so many people, about"):
        made().fit(np.ones((200, 2)), labels, users=np.arange(200) // 2)


def test_labels_are_charged_with_the_fit(tmp_path) -> None:
    budget = Budget(observer="public", unit="record", adjacency="replace-one", epsilon=1.0, delta=1e-5)
    ledger = Ledger.create(tmp_path / "a.ledger", dataset="a", budgets=[budget])
    model = made(epsilon=0.6, random_state=None, ledger=ledger).fit(X, (SCORES > 0).astype(int))
    assert ledger.balances()[0].spent == pytest.approx(0.6, rel=1e-3)
    assert model.notes_[-1].startswith("The data set 'a' has cost epsilon 0.6 of 1 so far")
    head = ledger.head()
    with pytest.raises(InputError, match="weights name labels"):
        made(epsilon=0.1, random_state=None, ledger=ledger, class_weight={0: 1}).fit(X, (SCORES > 0).astype(int))
    assert ledger.head() == head


def test_an_undeclared_label_is_named_by_its_place() -> None:
    labels = np.where(np.arange(4000) == 17, "z secret", np.where(SCORES > 0, "ill", "well"))
    with pytest.raises(
        InputError, match=r"not among classes=\['ill', 'well'\], the first in row 17 \(rows count from 0\)"
    ) as caught:
        made(classes=["ill", "well"]).fit(X, labels)
    assert "secret" not in str(caught.value)
