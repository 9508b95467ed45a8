"""Figures and tables of findings."""

from __future__ import annotations

import re
from pathlib import Path

import matplotlib.image
import numpy as np
import pytest

from consenso.algorithms.dual_consensus import DualConsensusADMM
from consenso.audit import Effort, audit, linear, unkind
from consenso.audit.attack import list_targets
from consenso.audit.findings import ENOUGH
from consenso.audit.plot import draw
from consenso.audit.table import BEGIN, END, WHY, Attacked, list_observers, markdown, write_into
from consenso.errors import InputError
from consenso.losses import Logistic
from consenso.planning.plan import plan
from consenso.privacy.events import Bounded
from consenso.privacy.noise import GaussianNoise
from consenso.problem import Problem
from consenso.regularizers import NoPenalty
from consenso.testing.attacks import list_attacked_plans

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def attacked() -> Attacked:
    problem = linear(
        Problem(loss=Logistic(), regularizer=NoPenalty(), features=2, sizes=np.full(3, 1), row_bound=1.0, unit="party")
    )
    made = plan(
        problem, DualConsensusADMM(level="party"), rounds=2, noise=GaussianNoise(multiplier=1.0), trust="curator"
    )
    pairs = lambda party: list(unkind(problem, "party", "replace-one", party))[:1]
    return Attacked(plan=made, findings=audit(made, Effort(trials=300), pairs=pairs))


def test_a_figure_is_written(attacked: Attacked, tmp_path: Path) -> None:
    path = tmp_path / "peer.png"
    draw(attacked.findings[2], path)
    picture = matplotlib.image.imread(path)
    assert picture.shape[0] > 300
    assert picture.std() > 0.05


def test_where_nothing_is_claimed_there_is_no_figure(attacked: Attacked, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="nothing is claimed"):
        draw(attacked.findings[0], tmp_path / "server.png")


def test_rows_of_algorithms_that_were_not_attacked_are_kept(attacked: Attacked, tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"before\n{BEGIN}\n{END}\nafter\n")
    write_into(page, markdown([attacked]))
    others = re.sub("Up to [0-9,]+ runs", "Up to 12,345 runs", page.read_text().replace("DualConsensusADMM", "IPADMM"))
    page.write_text(others.replace(END, f"\n{WHY}\n| --- | --- | --- | --- |\n| IPADMM | a | public | reason |\n{END}"))
    for _ in range(2):
        write_into(page, markdown([attacked], page))
        lines = page.read_text().splitlines()
        assert [line.split(" | ")[0] for line in lines if "party, replace-one" in line] == [
            "| DualConsensusADMM",
            "| IPADMM",
        ]
        assert lines.count("| IPADMM | a | public | reason |") == 1
        assert "Up to 12,345 runs" in page.read_text()
        assert lines[0] == "before"
        assert lines[-1] == "after"


def test_the_table(attacked: Attacked) -> None:
    *_, row = markdown([attacked]).splitlines()
    cells = [cell.strip() for cell in row.strip("|").split("|")]
    assert cells[:5] == ["DualConsensusADMM", "party, replace-one", "Everyone, curator", "inf", "inf"]
    claimed, proved, share = re.fullmatch(r"(\S+) / (\S+), (\d+)%", cells[5]).groups()
    assert 0 < float(proved) <= float(claimed)
    assert abs(float(proved) / float(claimed) - float(share) / 100) < 0.01
    assert "REFUTED" not in row


def test_a_refuted_claim_stands_out(attacked: Attacked) -> None:
    pairs = lambda party: list(unkind(attacked.plan.problem, "party", "replace-one", party))[:1]
    wrong = audit(attacked.plan, Effort(trials=300), pairs=pairs, claim=lambda view: Bounded(0.01))
    assert "REFUTED" in markdown([Attacked(plan=attacked.plan, findings=wrong)])


def test_a_page_gets_its_table(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"before\n\n{BEGIN}\nold\n{END}\n\nafter\n")
    write_into(page, "new\n")
    assert page.read_text() == f"before\n\n{BEGIN}\n\nnew\n\n{END}\n\nafter\n"
    page.write_text("no markers")
    with pytest.raises(InputError, match="lacks the lines"):
        write_into(page, "new\n")
    with pytest.raises(InputError, match="cannot be read"):
        write_into(tmp_path / "none.md", "new\n")


def test_the_code_of_the_page_runs(capsys) -> None:
    page = (ROOT / "docs" / "attacks.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"^```python\n(.*?)^```", page, flags=re.M | re.S)
    exec(compile(block, "docs/attacks.md", "exec"), {})
    said = capsys.readouterr().out.splitlines()
    assert len(said) == 4
    assert all(line.endswith("not refuted.") for line in said)


def test_the_page_of_attacks_has_a_row_for_every_algorithm() -> None:
    from consenso.algorithms import discover

    page = (ROOT / "docs" / "attacks.md").read_text(encoding="utf-8")
    table = page.partition(BEGIN)[2].partition(END)[0]
    missing = [name for name in discover() if f"| {name} |" not in table]
    assert not missing, f"{', '.join(missing)}: run `make audit`, which writes the table of docs/attacks.md anew"
    assert "REFUTED" not in table


def test_the_claims_of_the_page_are_those_of_the_plans_that_are_made_now() -> None:
    """A row of plans that claim something else since was attacked in vain."""
    from consenso.algorithms import discover

    page = (ROOT / "docs" / "attacks.md").read_text(encoding="utf-8")
    rows = [line.strip("| ").split(" | ") for line in page.partition(BEGIN)[2].partition(END)[0].splitlines()]
    written = {
        (row[0], row[2], who): cell.split(" / ")[0]
        for row in rows
        if len(row) == 3 + len(list_observers())
        for who, cell in zip(list_observers(), row[3:], strict=True)
    }
    wrong = []
    for definition in discover().values():
        for made in list_attacked_plans(definition.example()):
            setting = Attacked(plan=made, findings=[]).setting
            for target in list_targets(made):
                place = type(made.algorithm).__name__, setting, target.query.observer.key.partition(":")[0]
                if written.get(place) != f"{target.claimed:.3g}":
                    wrong.append((*place, written.get(place), target.claimed))
    assert not wrong, f"run `consenso audit ALGORITHM --page docs/attacks.md` for these: {wrong}"


def test_every_cell_of_the_page_that_an_attack_does_not_reach_has_its_reason() -> None:
    page = (ROOT / "docs" / "attacks.md").read_text(encoding="utf-8")
    lines = [line.strip("| ").split(" | ") for line in page.partition(BEGIN)[2].partition(END)[0].splitlines()]
    told = {(why[0], why[1], who) for why in lines if len(why) == 4 for who in why[2].split(", ")}
    low = [
        (row[0], row[2], who)
        for row in lines
        for who, cell in zip(list_observers(), row[3:], strict=len(row) == 7)
        if (share := re.search(r", (\d+)%", cell)) and int(share[1]) < 100 * ENOUGH - 1
    ]
    assert len(low) > 50
    assert [cell for cell in low if cell not in told] == []
