"""Results of the paper that a module is about: kept ones in every run, fresh ones where time is no matter."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from experiments.reproduction import Reproduction, reproduce
from experiments.results import Results
from tests.experiments import stored

EITHER = ("stored", pytest.param("fresh", marks=pytest.mark.slow))


@pytest.fixture(scope="module")
def fresh(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, data_dir: Path) -> Results:
    """Computed by the present code, with the verdicts and objections of what is kept."""
    number = request.module.PAPER.number
    results = stored.compute(number, tmp_path_factory.mktemp("cells"))
    assert stored.decide(number, results) == stored.decide(number, stored.read(number)), (
        f"kept results are not those of this code: python -m tests.experiments.stored {number}"
    )
    return results


@pytest.fixture(scope="module", params=EITHER)
def origin(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture(scope="module")
def results(request: pytest.FixtureRequest, origin: str) -> Results:
    return request.getfixturevalue("fresh") if origin == "fresh" else stored.read(request.module.PAPER.number)


@pytest.fixture(scope="module")
def done(
    request: pytest.FixtureRequest, origin: str, results: Results, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Reproduction]:
    """The paper reproduced from these results; figures, which take longest, are drawn of fresh ones."""
    paper, out = stored.tiny(request.module.PAPER.number), tmp_path_factory.mktemp("out")
    stored.keep(results, out / "cells" / paper.number)
    undrawn = replace(paper, gather=lambda grid, found: replace(paper.gather(grid, found), figures=()))
    with stored.few_records():
        yield reproduce(paper if origin == "fresh" else undrawn, "tiny", out, workers=0, listed=(paper,))
