"""Categories that are told by their noisy numbers of records: frequent ones are, one of a single record is not."""

from __future__ import annotations

import dataclasses
import itertools
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from consenso.cli import build
from consenso.errors import BudgetError, InputError
from consenso.estimators import categories
from consenso.estimators.categories import differences, private_categories
from consenso.estimators.people import KEPT
from consenso.privacy.ledger import Budget, Ledger
from consenso.privacy.verify import first_failure, verify

WARDS = ["north"] * 600 + ["south"] * 400 + ["secret"] + [""] * 99


def test_frequent_categories_are_told_and_a_single_one_is_not() -> None:
    found = private_categories({"ward": WARDS}, epsilon=1.0, random_state=0)
    assert found.categories == {"ward": ("north", "south")}
    assert found.guarantee.epsilon(1e-5) <= 1.0 + 1e-9
    assert found.guarantee.simulation
    # Six standard deviations of 600 and 400 above the level would fail one time in 10^9.
    assert found.level + 6 * found.count_noise < 400


def test_a_category_of_one_record_passes_the_level_as_seldom_as_is_charged() -> None:
    """The attack that asks for the name of a single record, on 8,000 of them, with a delta that can be seen.

    Each is told with half of 1 % of delta: 20 are expected. Fewer than 4 or more than 45 come one time in 10^5.
    """
    names = [f"person {place}" for place in range(8000)]
    found = private_categories({"name": names}, epsilon=1.0, delta=0.5, random_state=0)
    assert 4 <= len(found.categories["name"]) <= 45


def test_several_columns_share_the_budget() -> None:
    one = private_categories({"a": WARDS}, epsilon=1.0, random_state=0)
    two = private_categories({"a": WARDS, "b": WARDS[::-1]}, epsilon=1.0, random_state=0)
    assert two.count_noise == pytest.approx(np.sqrt(2) * one.count_noise, rel=1e-3)
    assert two.level > one.level
    assert two.guarantee.epsilon(1e-5) <= 1.0 + 1e-9


def test_a_ledger_is_charged(tmp_path: Path) -> None:
    budget = Budget(observer="public", unit="record", adjacency="replace-one", epsilon=1.0, delta=1e-5)
    ledger = Ledger.create(tmp_path / "patients.ledger", dataset="patients", budgets=[budget])
    private_categories({"ward": WARDS}, epsilon=0.9, delta=1e-5, ledger=ledger)
    with pytest.raises(BudgetError):
        private_categories({"ward": WARDS}, epsilon=0.9, delta=1e-5, ledger=ledger)


def test_refusals() -> None:
    with pytest.raises(InputError, match="one cell for each record"):
        private_categories({"a": WARDS, "b": WARDS[1:]}, epsilon=1.0, random_state=0)
    with pytest.raises(InputError, match="epsilon=inf"):
        private_categories({"a": WARDS}, epsilon=float("inf"))


def test_rows_of_a_person_count_once_together() -> None:
    """One ward has 900 rows of three patients: it is theirs alone, and is not told."""
    rng = np.random.default_rng(0)
    wards = ["north"] * 1500 + ["south"] * 1500 + ["secret"] * 900
    ids = np.append(np.arange(3000) // 3, 5000 + rng.integers(3, size=900))
    by_rows = private_categories({"ward": wards}, epsilon=1.0, random_state=0)
    assert by_rows.categories == {"ward": ("north", "secret", "south")}
    found = private_categories({"ward": wards}, epsilon=1.0, users=ids, random_state=0)
    assert found.categories == {"ward": ("north", "south")}
    assert found.guarantee.unit == "person"
    assert found.level > by_rows.level, "a person may be alone with as many categories as rows that are kept"


@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
def test_one_person_moves_the_counts_by_no_more_than_declared(adjacency, monkeypatch) -> None:
    """Over people with one to 100 rows in two columns; the bounds are attained by those whose rows agree."""
    rng = np.random.default_rng(1)
    seen: list[dict[tuple[str, str], float]] = []

    names = itertools.cycle("ab")

    def count(cells, people, own=categories._count):
        found, counts = own(cells, people)
        name = next(names)
        seen[-1].update({(name, str(text)): float(value) for text, value in zip(found, counts, strict=True)})
        return found, counts

    monkeypatch.setattr(categories, "_count", count)

    def counts_of(ids, cells):
        seen.append({})
        private_categories(
            {"a": cells[0], "b": cells[1]},
            epsilon=1.0,
            delta=1e-5,
            users=ids,
            adjacency=adjacency,
            records=None if adjacency == "replace-one" else 50,
            random_state=0,
        )
        return seen[-1]

    most = categories._count_of(2)[adjacency.replace("-", "_")]
    reached = 0.0
    for rows, kinds in ((1, 1), (5, 2), (100, 1), (100, 90)):
        ids = np.append(np.repeat(np.arange(20), 3), np.full(rows, 99))
        cells = [rng.choice(["x", "y", ""], size=60).tolist() + [f"own {k % kinds}" for k in range(rows)] for _ in "ab"]
        here = counts_of(ids, cells)
        if adjacency == "add-remove":
            there = counts_of(ids[:60], [column[:60] for column in cells])
        else:
            there = counts_of(np.append(ids[:60], 98), [[*column[:60], "another"] for column in cells])
        distance = np.sqrt(sum((here.get(key, 0.0) - there.get(key, 0.0)) ** 2 for key in here | there))
        assert distance <= most * (1 + 1e-12)
        reached = max(reached, distance)
    assert reached == pytest.approx(most)


def test_names_of_one_person_pass_the_level_as_seldom_as_is_charged() -> None:
    """The attack that looks for a person with as many categories as rows are kept: 800 of them, a delta that is seen.

    A person is told with half of 1 % of delta at most if one row counted as much as all; each counts a part only.
    """
    ids = np.repeat(np.arange(800), KEPT // 8)
    names = [f"{person} {place}" for place, person in enumerate(ids)]
    found = private_categories({"name": names}, epsilon=1.0, delta=0.5, users=ids, random_state=0)
    told = {name.split()[0] for name in found.categories["name"]}
    assert len(told) <= 800 * 0.5 * 0.01 * 0.5 + 4 * np.sqrt(2)


@pytest.mark.sweep
@pytest.mark.parametrize("seed", [0, None])
@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
@pytest.mark.parametrize("users", [None, np.arange(1100) // 2])
def test_the_card_follows_from_its_parameters(users, adjacency, seed, tmp_path: Path) -> None:
    found = private_categories(
        {"ward": WARDS, "floor": WARDS[::-1]},
        epsilon=1.0,
        delta=1e-5,
        users=users,
        adjacency=adjacency,
        random_state=seed,
    )
    card = found.card
    assert card.simulation is found.guarantee.simulation is (seed is not None)
    stated = {(entry.observer, entry.unit, entry.adjacency): entry.epsilon for entry in card.entries}
    unit = "record" if users is None else "person"
    assert stated["public", unit, adjacency] == found.guarantee.epsilon(1e-5)
    assert first_failure(verify(card.to_json())) is None
    assert differences(card) == []
    path = card.save(tmp_path / "card.json")
    assert CliRunner().invoke(build(), ["verify", str(path)]).exit_code == 0
    for changed in ({"tells": 1e-9}, {"level": 3.0}, {"noise": {**card.parameters["noise"], "multiplier": 1e3}}):
        dataclasses.replace(card, parameters={**card.parameters, **changed}).save(path)
        assert CliRunner().invoke(build(), ["verify", str(path)]).exit_code == 1


def test_people_are_charged_and_a_missing_id_is_named_by_its_row(tmp_path: Path) -> None:
    budget = Budget(observer="public", unit="person", adjacency="replace-one", epsilon=1.0, delta=1e-5)
    ledger = Ledger.create(tmp_path / "patients.ledger", dataset="patients", budgets=[budget])
    ids: list[str | None] = [f"patient {place // 2}" for place in range(len(WARDS))]
    private_categories({"ward": WARDS}, epsilon=0.9, delta=1e-5, users=ids, ledger=ledger)
    assert ledger.balances()[0].spent == pytest.approx(0.9, rel=1e-3)
    ids[7] = None
    with pytest.raises(
        InputError, match=r"private_categories\(users=...\): row 7 \(rows count from 0\) has no id"
    ) as caught:
        private_categories({"ward": WARDS}, epsilon=0.9, users=ids, random_state=0)
    assert "patient" not in str(caught.value)


def test_how_many_texts_a_column_has_decides_nothing_and_missing_cells_of_every_kind_are_none() -> None:
    pandas = pytest.importorskip("pandas")
    missing = [None, float("nan"), pandas.NaT, pandas.NA]
    cells = [f"name {place}" for place in range(11_000)] + ["north"] * 4000 + missing
    found = private_categories({"ward": np.array(cells, dtype=object)}, epsilon=1.0, delta=1e-6, random_state=0)
    assert found.categories == {"ward": ("north",)}
