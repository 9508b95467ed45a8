"""Results of each paper's tests, on grids smaller than quick, as they are kept in this folder.

What follows from results (verdicts, objections, pages, drawings) is tested on these in every run, and on fresh ones,
which take minutes, in `make test-all`. There the kept results must also give the verdicts of the fresh ones. After a
change of a grid here, or of what cells return:

python -m tests.experiments.stored [000 ...]
"""

from __future__ import annotations

import gzip
import json
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from experiments.definition import Paper
from experiments.paper000 import reported
from experiments.paper000.definition import Grid as Grid000
from experiments.paper001.definition import Grid as Grid001
from experiments.paper002 import corrected, published
from experiments.paper002.definition import Grid as Grid002
from experiments.paper003.definition import Grid as Grid003
from experiments.paper004.definition import Grid as Grid004
from experiments.reproduction import papers
from experiments.results import Results
from experiments.running import run_cells

from consenso.datasets import load_adult
from experiments import adult_peers, running

FOLDER = Path(__file__).parent / "stored"
LOW, HIGH = reported.EPSILONS[3], reported.EPSILONS[6]
GRIDS = {
    "000": Grid000(
        epsilons=(LOW, HIGH),
        seeds=3,
        sphere_seeds=2,
        corrected_epsilons=(LOW, HIGH),
        corrected_seeds=2,
        ways=("central-admm", "federated-admm", "federated-sgd"),
        rounds=30,
        sphere_epsilons=(HIGH,),
        sphere_ways=("central-sgd",),
        walk_epsilons=(HIGH,),
        local_epsilons=(),
        visits=60,
    ),
    "001": Grid001(
        later=(2, 10, 50, 100, 200, 400),
        pairs=400,
        pair_seeds=1,
        coupled=60,
        convexities=(0.0, 0.1),
        stds=(0.0, 0.003, 0.03),
        seeds=2,
        members=600,
        positions=40,
        epsilons=(3.0, 30.0),
        guaranteed=120,
        guaranteed_seeds=2,
    ),
    "002": Grid002(epsilons=(1.0,), inners=(10,), compared=(1.0,), methods=("IPADMM", "DP-ADMM"), seeds=1),
    "003": Grid003(
        sets=("MNIST",),
        epsilons=(0.05, 5.0),
        images=2_000,
        exact_images=2_000,
        iterations=40,
        seeds=1,
        scalings=(1.0, 1000.0),
        scaled="MNIST",
        total_epsilons=(8.0,),
        total_images=2_000,
        total_seeds=1,
        carded=0.0,
    ),
    "004": Grid004(epsilons=(3.0, 100.0), seeds=1, carded=0.0),
}


def tiny(number: str) -> Paper:
    """The paper with this grid only."""
    return replace(papers()[number], grids={"tiny": GRIDS[number]})


@contextmanager
def few_records() -> Iterator[None]:
    """Paper 002 with a part of Adult: what is asserted of its results holds for any number of records."""

    def load_a_part(**asked):
        whole = load_adult(**asked)
        return replace(whole, X=whole.X[::32], y=whole.y[::32])

    caches = (corrected._data, published.records)
    with pytest.MonkeyPatch.context() as patch:
        for module in (adult_peers, published):
            patch.setattr(module, "load_adult", load_a_part)
        for cache in caches:
            cache.cache_clear()
        yield
    for cache in caches:
        cache.cache_clear()


def compute(number: str, folder: Path, *, group: str = "") -> Results:
    """The results of a fresh run, or of the groups whose names begin so."""
    cells = [cell for cell in tiny(number).cells_of("tiny") if cell.group.startswith(group)]
    with few_records():
        return run_cells(cells, folder, workers=0)


def read(number: str) -> Results:
    """The results that are kept; refused where they are not those of the present grid."""
    kept = json.loads(gzip.decompress((FOLDER / f"{number}.json.gz").read_bytes()))
    cells = {cell.name: cell for cell in tiny(number).cells_of("tiny")}
    assert list(kept) == list(cells), f"other cells than the grid's: python -m tests.experiments.stored {number}"
    return Results({cells[name]: values for name, values in kept.items()})


def keep(results: Results, folder: Path) -> None:
    """As a run keeps them, for one that begins with them."""
    folder.mkdir(parents=True)
    for cell, values in results.items():
        running._keep(cell, {"values": values, "seconds": 0.0}, folder)


def decide(number: str, results: Results) -> list[object]:
    """What follows: the state of every verdict, and whether objections stand and survive."""
    paper = tiny(number)
    verdicts = paper.gather(GRIDS[number], results).verdicts
    objections = [case.object_to(results) for case in paper.cases]
    return [*((v.source, v.state) for v in verdicts), *((o.stands, o.survives) for o in objections)]


def write(number: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        results = compute(number, Path(folder))
    text = json.dumps({cell.name: values for cell, values in results.items()})
    FOLDER.mkdir(exist_ok=True)
    (FOLDER / f"{number}.json.gz").write_bytes(gzip.compress(text.encode(), mtime=0))


if __name__ == "__main__":
    for each in sys.argv[1:] or GRIDS:
        write(each)
