"""Of a study with noise that protects, neighbouring tables differ in the rows of one party: nobody else moves.

What is promised of a unit is proved for its party's messages. Were others dealt to other parties when it changes, their
messages would change as well.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.study.people import write_people

from consenso.errors import InputError
from consenso.study import Study

STUDY = """
[data]
schema = "schema.toml"
table = "table.csv"
rows = {rows}
[model]
loss = "logistic"
[privacy]
multiplier = 2.0
unit = "{unit}"
adjacency = "{adjacency}"
[setting]
kind = "{kind}"
trust = "{trust}"
algorithm = "PreconditionedFixedPoint"
rounds = 8
{split}
"""
PEOPLE, STAYS = 8, 3
SPLITS = {
    "one table": "",
    "equal": '[setting.split]\nkind = "equal"\nparties = 4',
    "equal at random": '[setting.split]\nkind = "equal"\nparties = 4\nseed = 1',
    "one party a record": '[setting.split]\nkind = "one-per-record"',
    "sizes": f'[setting.split]\nkind = "sizes"\nsizes = [4, {PEOPLE * STAYS - 4}]',
    "column": f'[setting.split]\nkind = "column"\nsizes = {[STAYS] * PEOPLE}',
    "column of a size": f'[setting.split]\nkind = "column"\nparties = {PEOPLE}\nsize = {2 * STAYS}',
}
Row = tuple[str, int]
# Stays of all people in turn: everybody has a first row among the first.
TABLE: list[Row] = [(f"p{person}", 10 * person + stay) for stay in range(STAYS) for person in range(PEOPLE)]


def list_neighbours(unit: str, adjacency: str, split: str) -> list[list[Row]]:
    """Tables in which the first unit is another one, or is gone but for what a party must have."""
    if unit == "record" or (unit == "party" and "column" not in split):  # a party whose rows are those of some places
        return [TABLE[1:]] if adjacency == "add-remove" else [[("p0", 99), *TABLE[1:]]]
    others = [row for row in TABLE if row[0] != "p0"]
    if adjacency == "add-remove":
        # A party that is gone takes part with what is no row to any sum; here it keeps one.
        return [others, [*others, TABLE[0]]] if unit == "person" else [[*others, TABLE[0]]]
    moved = [("p0", 90 + stay) for stay in range(STAYS)]
    return [[*others, *moved], [*others[:5], *moved, *others[5:]]]


def load(folder: Path, table: list[Row], split: str, unit: str, adjacency: str) -> Study:
    write_people(folder / "table.csv", [(age, patient, age % 2 == 1) for patient, age in table])
    central = not split
    text = STUDY.format(
        rows=PEOPLE if unit == "person" else len(TABLE),
        unit=unit,
        adjacency=adjacency,
        kind="central" if central else "federated",
        trust="curator" if central else "local",
        split=split,
    )
    (folder / "study.toml").write_text(text)
    return Study.load(folder / "study.toml")


def hold(study: Study) -> list[bytes]:
    """The rows of every party."""
    shards = study.shards()
    cohorts = [shards.cohort([party]) for party in range(len(study.parties))]
    return [cohort._rows.matrix.tobytes() + np.asarray(cohort._targets).tobytes() for cohort in cohorts]


@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
@pytest.mark.parametrize("unit", ["record", "person", "party"])
def test_nobody_else_moves_to_another_party(unit, adjacency, tmp_path) -> None:
    dealt = []
    for name, split in SPLITS.items():
        try:
            before = hold(load(tmp_path, TABLE, split, unit, adjacency))
        except InputError:
            continue  # refused whatever the rows are
        for table in list_neighbours(unit, adjacency, name):
            after = hold(load(tmp_path, table, split, unit, adjacency))
            changed = sum(one != other for one, other in zip(before, after, strict=True))
            assert changed <= 1, f"{name}: rows of {changed} parties differ"
        dealt.append(name)
    assert dealt, "no study was accepted"


def test_people_of_one_table_are_dealt_in_a_simulation_only(tmp_path) -> None:
    with pytest.raises(InputError, match="moves others"):
        load(tmp_path, TABLE, SPLITS["equal"], "person", "replace-one")
    study = load(tmp_path, TABLE, SPLITS["equal"], "record", "replace-one")
    text = (tmp_path / "study.toml").read_text()
    (tmp_path / "study.toml").write_text(
        text.replace('unit = "record"', 'unit = "person"\nseed = 1').replace(f"rows = {len(TABLE)}", f"rows = {PEOPLE}")
    )
    assert len(Study.load(tmp_path / "study.toml").shards().parties) == len(study.parties)
