"""People with several rows: whatever rows a person brings, they move every release by no more than was declared."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression, Ridge

import consenso
from consenso.errors import BudgetError, InputError, PreconditionError
from consenso.estimators.people import CAP_SHARE, KEPT, choose_cap, read_people
from consenso.estimators.privacy_params import terms_of
from consenso.estimators.stages import Stages
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
from consenso.testing.sensitivity import compare_neighbours
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
        compare_neighbours(planned, [Pair(one=one, other=other, party=0, what=f"{extra} rows")], "person", adjacency)


@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
@pytest.mark.parametrize("trust", ["secure-sum", "local"])
def test_people_of_several_parties_move_no_release_by_more_than_declared(trust, adjacency) -> None:
    problem = Problem(
        loss=Logistic(),
        regularizer=L2(strength=0.1),
        features=3,
        sizes=np.array([6, 9]),
        row_bound=1.0,
        unit="person",
        adjacency=adjacency,
        rows_per_unit=KEPT,
    )
    planned = prepare(problem, Mu(mu=2.0), solver="preconditioned", trust=trust)
    ids = np.repeat(np.arange(15), 3)
    rows, signs = RNG.normal(size=(45, 3)), np.ones(45)

    def shards(ids, rows, signs):
        parts = [read_people("Test", ids[mine], int(mine.sum()), 1) for mine in (ids < 6, ids >= 6)]
        kept = np.concatenate([np.flatnonzero(ids < 6)[parts[0].kept], np.flatnonzero(ids >= 6)[parts[1].kept]])
        weights = np.concatenate([part.contributions for part in parts])
        ends = [0, len(parts[0].kept), len(kept)]
        return Shards.build(problem, rows[kept], signs[kept], ends, weights=weights)

    one, left = shards(ids, rows, signs), ids != 14
    if adjacency == "add-remove":
        other = shards(ids[left], rows[left], signs[left])
    else:  # a hundred rows, all against the others
        more = np.full(100, 14)
        other = shards(
            np.concatenate([ids[left], more]),
            np.concatenate([rows[left], np.tile(-5 * rows[-1], (100, 1))]),
            np.concatenate([signs[left], -np.ones(100)]),
        )
    compare_neighbours(
        planned, [Pair(one=one, other=other, party=1, what="a person of the second")], "person", adjacency
    )


@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
def test_a_cap_that_is_left_out_is_chosen_within_the_budget(adjacency) -> None:
    rng, people = np.random.default_rng(1), 6000
    many = rng.geometric(0.15, size=people)
    ids = np.repeat(np.arange(people), many)
    rows = rng.normal(size=(len(ids), 3))
    labels = (rng.random(len(ids)) < 1 / (1 + np.exp(-rows @ [1.0, -1.0, 0.5]))).astype(int)
    model = made(adjacency=adjacency, records=people if adjacency == "add-remove" else None)
    model.fit(rows, labels, users=ids)
    assert model.rows_per_person_ in (2, 4, 8, 16)
    assert model.card_.data["rows_per_unit"] == KEPT * model.rows_per_person_
    assert "numbers of people by rows" in [each["name"] for each in model.card_.parameters["earlier"]]
    assert 0.999 < model.guarantee_.epsilon(1e-5) <= 1.0
    assert "The cap was chosen" in " ".join(model.notes_)
    # Where noise is louder than what rows could tell, nobody is asked.
    few = made(adjacency=adjacency, records=30 if adjacency == "add-remove" else None)
    few.fit(rows[ids < 30], labels[ids < 30], users=ids[ids < 30])
    assert few.rows_per_person_ == 1
    names = [each["name"] for each in few.card_.parameters.get("earlier", [])]
    assert "numbers of people by rows" not in names


def test_one_person_moves_the_counts_behind_a_cap_by_what_was_declared() -> None:
    seen = []

    class Spy(Stages):
        def release(self, planned, time, exact):
            seen.append((planned, exact.copy()))
            return super().release(planned, time, exact)

    terms = replace(terms_of(made(), "Test", 4000), unit="person", share=CAP_SHARE)
    person = np.repeat(np.arange(4000), np.arange(4000) % 7 + 1)
    many = person[person != 3999]
    for one in (person, np.append(many, np.full(500, 3999)), many):
        choose_cap(one, 4, Spy(terms=terms))
    (planned, here), (_, replaced), (_, removed) = seen
    assert np.linalg.norm(here - replaced) == pytest.approx(planned.replace_one)
    assert np.linalg.norm(here - removed) == planned.add_remove


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
        (np.where(np.arange(len(ROWS)) == 17, None, ROWS.astype(object)), "row 17 .rows count from 0. has no id"),
        (np.where(np.arange(len(ROWS)) == 17, "", ROWS.astype(str)), "row 17 .rows count from 0. has no id"),
        (np.where(np.arange(len(ROWS)) == 17, np.nan, ROWS), "row 17 .rows count from 0. has no id"),
        (ROWS + 0.5, "whole numbers or texts"),
        (np.stack([ROWS, ROWS], axis=1), "one id for each"),
    ],
    ids=["short", "None", "empty", "NaN", "parts", "two axes"],
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
