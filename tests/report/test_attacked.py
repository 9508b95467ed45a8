"""The report's section on attacks."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from consenso.audit import Effort, audit
from consenso.errors import InputError
from consenso.report import read_run, report_html
from consenso.study import Study
from consenso.study.audited import audit_data

STUDY = """
title = "attacked"
[data]
dataset = "breast_cancer"
[model]
loss = "logistic"
regularizer = { kind = "l2", strength = 0.5 }
[privacy]
epsilon = 2.0
delta = 1e-5
seed = 3
[setting]
kind = "central"
algorithm = "DPSGD"
rounds = 3
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("runs") / "attacked"
    study = Study.parse(STUDY)
    audit_data(study, out, count=30)
    (out / "audit").mkdir()
    found = [finding.to_json() for finding in audit(study.plan(), Effort(trials=100))]
    (out / "audit" / "findings.json").write_text(json.dumps(found))
    return out


def test_every_attacked_claim_is_in_the_report(folder: Path) -> None:
    page = report_html(read_run(folder))
    section = page.partition("<h2>Attacked</h2>")[2].partition("<h2>")[0]
    assert section.count("not refuted") == 2
    assert "30 canaries were among the records of this run" in section
    assert "errors of the attacks with their intervals" in section
    assert "REFUTED" not in section
    # Two observers with the same promise have one claimed curve, and their common reason stands once.
    assert section.count(">claimed, ") == 1
    reasons = re.findall("<li>.*?: (.*?)</li>", section)
    assert len(reasons) == len(set(reasons))


def test_what_is_claimed_is_rounded_up_and_what_is_proved_down(folder: Path) -> None:
    path = folder / "audit" / "findings.json"
    kept = path.read_text()
    found = json.loads(kept)
    found[0] |= {"claimed": 1.17109, "lower": 0.071219}
    path.write_text(json.dumps(found))
    page = report_html(read_run(folder))
    path.write_text(kept)
    assert "<td class='number'>1.172</td><td class='number'>0.0712</td>" in page


def test_without_an_audit_there_is_no_section_and_a_spoilt_one_is_refused(folder: Path) -> None:
    (folder / "audit" / "findings.json").rename(folder / "audit" / "kept.json")
    (folder / "audit.json").rename(folder / "kept.json")
    assert "<h2>Attacked</h2>" not in report_html(read_run(folder))
    for spoilt in ("[1]", "{}", "[{}]", "nonsense"):
        (folder / "audit" / "findings.json").write_text(spoilt)
        with pytest.raises(InputError, match="not the findings of an audit"):
            read_run(folder)
    (folder / "audit" / "findings.json").unlink()
    (folder / "audit.json").write_text('{"claimed": "much"}')
    with pytest.raises(InputError, match="write it again"):
        report_html(read_run(folder))
