"""People with several rows: whatever rows a person brings, they move every release by no more than was declared."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression, Ridge

import consenso
from consenso.errors import BudgetError, InputError, PreconditionError
from consenso.estimators.people import KEPT, read_people
from consenso.losses import Huber, Logistic, Softmax
from consenso.planning.plan import plan
from consenso.planning.replan import differences
from consenso.privacy.calibrate import Mu
from consenso.privacy.count import Count
from consenso.privacy.ledger import Budget, Ledger
from consenso.privacy.noise import GaussianNoise
from consenso.privacy.verify import first_failure, verify
from consenso.problem import Problem
from consenso.regularizers import L2
from consenso.shards import Shards
from consenso.solvers import names, prepare
from consenso.testing.sensitivity import _compare
from consenso.testing.worlds import Pair

RNG = np.random.default_rng(8)
ROWS = np.repeat(np.arange(400), RNG.geometric(0.35, size=400))
X = RNG.normal(size=(400, 3))[ROWS] + 0.3 * RNG.normal(size=(len(ROWS), 3))
LABELS = (X @ [1.0, -1.0, 0.5] > 0).astype(int)


def made(**rest):
    known = {"epsilon": 1.0, "delta": 1e-5, "row_bound": 4.0, "classes": [0, 1], "random_state": 0}
    return consenso.PrivateLogisticRegression(**(known | rest))


@pytest.mark.parametrize("cap", [1, 2, 5])
def test_weights_of_a_person_are_at_most_one_and_exact(cap) -> None:
    many = np.array([1, 2, 3, 7, KEPT, KEPT + 1, 10 * KEPT, 1000])
    ids = RNG.permutation(np.repeat(np.arange(len(many)), many))
    people = read_people("Test", ids, len(ids), cap)
    kept = ids[people.kept]
    for person, own in enumerate(many):
        weights = people.contributions[kept == person]
        assert len(weights) == min(own, KEPT * cap)
        assert math.fsum(weights) == weights.sum() <= 1.0
        assert weights.sum() == pytest.approx(min(own, cap) / cap, abs=1e-6)
    # A person's rows and weights are a function of that person's rows alone.
    others = ids != 7
    alone = read_people("Test", ids[others], int(others.sum()), cap)
    np.testing.assert_array_equal(np.flatnonzero(others)[alone.kept], people.kept[kept != 7])
    np.testing.assert_array_equal(alone.contributions, people.contributions[kept != 7])


LOSSES = {"logistic": Logistic(), "softmax": Softmax(classes=3), "huber": Huber(threshold=1.0)}


def _shards(problem, ids, rows, targets, cap):
    people = read_people("Test", ids, len(ids), cap)
    kept = people.kept
    return Shards.build(problem, rows[kept], targets[kept], [0, len(kept)], weights=people.contributions)


@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
@pytest.mark.parametrize("solver", [name for name in names() if name in ("preconditioned", "dp-sgd")])
@pytest.mark.parametrize("loss", LOSSES)
def test_all_rows_of_a_person_move_no_release_by_more_than_declared(loss, solver, adjacency) -> None:
    kind, cap, people = LOSSES[loss], 2, 12
    problem = Problem(
        loss=kind,
        regularizer=L2(strength=0.1),
        features=3,
        sizes=np.array([people]),
        row_bound=1.0,
        target_bound=1.0 if loss == "huber" else None,
        unit="person",
        adjacency=adjacency,
        rows_per_unit=KEPT * cap,
    )
    planned = prepare(problem, Mu(mu=2.0), solver=solver)
    many = RNG.integers(1, 4, size=people)
    ids, size = np.repeat(np.arange(people), many), int(many.sum())
    rows = RNG.normal(size=(size, 3))

    def targets_of(signs):
        return {"logistic": signs, "softmax": (signs > 0).astype(int) * 2, "huber": signs}[loss]

    one = _shards(problem, ids, rows, targets_of(np.ones(size)), cap)
    left = ids != people - 1
    for extra in (1, 5, 3 * KEPT) if adjacency == "replace-one" else (0,):
        # The last person brings as many rows as there can be, all against the others, or is gone.
        new_ids = np.concatenate([ids[left], np.full(extra, people - 1)])
        new_rows = np.concatenate([rows[left], np.tile(-5 * rows[-1], (extra, 1))])
        signs = np.concatenate([np.ones(left.sum()), -np.ones(extra)])
        other = _shards(problem, new_ids, new_rows, targets_of(signs), cap)
        _compare(planned, Pair(one=one, other=other, party=0, what=f"{extra} rows"), "person", adjacency)


def test_without_privacy_every_person_counts_the_same() -> None:
    weights = 1 / np.bincount(ROWS)[ROWS]
    ours = made(epsilon=math.inf, random_state=None).fit(X, LABELS, users=ROWS)
    theirs = LogisticRegression(tol=1e-9, max_iter=1000).fit(X, LABELS, sample_weight=weights)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=1e-4)
    target = X @ [1.0, 2.0, 0.0]
    ridge = consenso.PrivateRidge(epsilon=math.inf).fit(X, target, users=ROWS)
    np.testing.assert_allclose(ridge.coef_, Ridge(alpha=1.0).fit(X, target, sample_weight=weights).coef_, rtol=1e-4)


@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
@pytest.mark.parametrize("bound", [None, 4.0])
def test_the_guarantee_is_for_the_person(adjacency, bound) -> None:
    texts = np.array([f"patient {number}" for number in ROWS])
    model = made(adjacency=adjacency, row_bound=bound).fit(X, LABELS, users=texts, rows_per_person=2)
    stated = model.guarantee_
    assert (stated.unit, stated.adjacency) == ("person", adjacency)
    assert 0.999 < stated.epsilon(1e-5) <= 1.0
    assert "all records of one person" in stated.sentence(1e-5)
    card = model.card_
    assert {entry.unit for entry in card.entries} == {"person"}
    assert "blanked" not in {entry.adjacency for entry in card.entries}
    assert card.data["rows_per_unit"] == 2 * KEPT
    # The number of rows is private, as a replaced person may bring another one; that of people is public or counted.
    if adjacency == "replace-one":
        assert card.data["sizes"] == [400]
    stored = json.dumps(card.to_json())
    assert "patient" not in stored
    assert str(len(ROWS)) not in stored
    assert first_failure(verify(json.loads(stored))) is None
    assert differences(card) == []


def test_a_ledger_of_people_is_charged_and_one_of_parties_is_not_enough(tmp_path) -> None:
    scope = {"observer": "public", "adjacency": "replace-one", "epsilon": 1.0, "delta": 1e-5}
    ledger = Ledger.create(tmp_path / "a.ledger", dataset="a", budgets=[Budget(unit="person", **scope)])
    made(epsilon=0.6, random_state=None, ledger=ledger).fit(X, LABELS, users=ROWS)
    assert ledger.balances()[0].spent == pytest.approx(0.6, rel=1e-3)
    with pytest.raises(BudgetError):  # a guarantee for records is none for people
        made(epsilon=0.1, random_state=None, ledger=ledger).fit(X, LABELS)
    records = Ledger.create(tmp_path / "b.ledger", dataset="b", budgets=[Budget(unit="record", **scope)])
    made(epsilon=0.6, random_state=None, ledger=records).fit(X, LABELS, users=ROWS)
    assert records.balances()[0].spent == pytest.approx(0.6, rel=1e-3)


@pytest.mark.parametrize(
    ("users", "message"),
    [
        (ROWS[:-1], "one id for each"),
        (np.where(np.arange(len(ROWS)) == 17, None, ROWS.astype(object)), "row 17 has no id"),
        (np.where(np.arange(len(ROWS)) == 17, "", ROWS.astype(str)), "row 17 has no id"),
        (np.where(np.arange(len(ROWS)) == 17, np.nan, ROWS.astype(float)), "floating-point numbers"),
        (np.stack([ROWS, ROWS], axis=1), "one id for each"),
    ],
    ids=["short", "None", "empty", "NaN", "two axes"],
)
def test_people_that_cannot_be(users, message) -> None:
    with pytest.raises(InputError, match=message) as caught:
        made().fit(X, LABELS, users=users)
    assert "39" not in str(caught.value), "no id is in the message"


@pytest.mark.parametrize("cap", [0, -1, 1.5, True, "2"])
def test_caps_that_cannot_be(cap) -> None:
    with pytest.raises(InputError, match="whole number above 0"):
        made().fit(X, LABELS, users=ROWS, rows_per_person=cap)


def test_algorithms_without_weights_are_refused() -> None:
    problem = Problem(
        loss=Logistic(), regularizer=L2(strength=0.1), features=3, sizes=np.array([9]), row_bound=1.0, unit="person"
    )
    from consenso.algorithms.consensus import ConsensusADMM
    from consenso.algorithms.dp_sgd import DPSGD

    for algorithm in (ConsensusADMM.example().algorithm, DPSGD(rate=0.5)):
        with pytest.raises(PreconditionError, match="without weights"):
            plan(problem, algorithm, rounds=2, noise=GaussianNoise(multiplier=1.0))
    with pytest.raises(PreconditionError, match="without weights"):
        made(solver="dual-admm").fit(X, LABELS, users=ROWS)


def test_a_count_of_people_promises_nothing_of_a_party() -> None:
    count = Count(noise=GaussianNoise(multiplier=10.0), noisy=50.0, mu=0.5, excess=1e-9)
    assert count.promise("person", "add-remove") == count.promise("record", "add-remove")
    assert type(count.promise("party", "add-remove")).__name__ == "Unbounded"
