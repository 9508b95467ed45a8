"""The laws, attacks and refusals have teeth: each planted fault is caught by what should catch it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from consenso.algorithms.consensus import ConsensusADMM
from consenso.testing import laws
from consenso.testing.planted import FAULTS, catch
from consenso.testing.planted.algorithms import small
from consenso.testing.planted.suite import BEGIN, END

PAGE = Path(__file__).parents[2] / "docs" / "attacks.md"


@pytest.mark.sweep(by=lambda fault: {"catcher": fault.catcher})
@pytest.mark.parametrize(
    "fault",
    [pytest.param(fault, marks=pytest.mark.slow) if fault.slow else fault for fault in FAULTS],
    ids=lambda fault: fault.name,
)
def test_a_planted_fault_is_caught(fault) -> None:
    found = catch(fault)
    assert found.caught, found.said


def test_there_are_many_ways_to_be_wrong_and_each_has_a_name() -> None:
    names = [fault.name for fault in FAULTS]
    assert len(set(names)) == len(names) >= 25
    assert {fault.kind for fault in FAULTS} == {"law", "attack", "refusal"}


def test_the_sound_algorithm_passes_where_the_faults_fail() -> None:
    for law in (laws.non_interference, laws.check_sensitivity, laws.ledger_equals_plan, laws.engines_agree):
        law(small(ConsensusADMM))


def test_a_fault_that_passes_is_reported() -> None:
    """What is sound, or is refused for another reason, does not count as caught."""
    harmless = replace(FAULTS[0], plant=lambda folder: None)
    assert not catch(harmless).caught
    assert catch(harmless).said == "nothing was raised"
    assert not catch(replace(FAULTS[-1], message="never said")).caught


def test_the_page_lists_every_fault() -> None:
    """Run `consenso audit --self-test --page docs/attacks.md`, which writes the table anew."""
    table = PAGE.read_text(encoding="utf-8").partition(BEGIN)[2].partition(END)[0]
    listed = [line.split(" | ")[0].removeprefix("| ") for line in table.splitlines() if line.startswith("| ")][2:]
    assert listed == [fault.name for fault in FAULTS]
    assert all(f"| {fault.catcher} | {fault.kind} |" in table for fault in FAULTS)


class CompilesAnotherRelaxation(ConsensusADMM):
    def compile_rounds(self, facts, records):
        return replace(self, relaxation=0.9 * self.relaxation).parent_rounds(facts, records)

    def parent_rounds(self, facts, records):
        return ConsensusADMM.compile_rounds(self, facts, records)


@pytest.mark.slow
def test_compiled_rounds_that_are_not_the_plain_ones() -> None:
    laws.compiled_rounds_agree(small(ConsensusADMM))
    with pytest.raises(AssertionError, match=r"hub\."):
        laws.compiled_rounds_agree(small(CompilesAnotherRelaxation))
