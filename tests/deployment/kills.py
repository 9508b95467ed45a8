"""`python -m tests.deployment.kills --kills 1000`: kill -9 at random moments over all engines, and look what is left.

Every run must end with the model of an undisturbed one, bit for bit, and every journal must have each step exactly
once. The table says how many processes of which engine were killed in which rounds, and what was lost.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from tests.deployment.conftest import SCHEMA, Federation, free_port, study_text, table_text
from tests.deployment.test_faults import NAMES, Watched, steps

from consenso.audit.table import write_into
from consenso.deployment import certs
from consenso.models import load_model
from consenso.study import Study
from consenso.study.training import model_with, train

BEGIN, END = "<!-- table of kills: begin -->", "<!-- table of kills: end -->"
GRAPH = (*NAMES, "oak")
ROUNDS = 120  # of a run
PATIENCE = 3600.0  # seconds that no machine needs


@dataclass
class Report:
    """What killing the processes of one engine gave."""

    engine: str
    runs: int = 0
    kills: Counter[str] = field(default_factory=Counter)  # by whom
    moments: list[float] = field(default_factory=list)  # share of the run that was done
    other_models: int = 0
    lost_steps: int = 0
    repeated_steps: int = 0


def federation(folder: Path, authority: Path, parties: tuple[str, ...], **changes: Any) -> Federation:
    folder.mkdir()
    (folder / "certs").symlink_to(authority)
    made = Federation(folder)
    made.write("schema.toml", SCHEMA)
    made.write("study.toml", study_text(parties=parties, **changes))
    for seed, name in enumerate(parties):
        made.write(f"{name}.csv", table_text(seed))
    made.write("addresses.toml", "".join(f'{name} = "127.0.0.1:{free_port()}"\n' for name in parties))
    return made


def count_steps(report: Report, done: list[int]) -> None:
    """Steps that are missing in a journal, and those that are there twice."""
    counts = Counter(done)
    report.lost_steps += ROUNDS - len(counts)
    report.repeated_steps += sum(count - 1 for count in counts.values())


def disturb(report: Report, made: Federation, starts: dict[str, Any], chance: random.Random, most: int) -> None:
    """Kill somebody again and again while a run goes on, and wait for its end."""
    watched = Watched(starts)
    for moment in sorted(chance.sample(range(1, ROUNDS - 3), most)):
        if not watched.reach(moment, PATIENCE):
            break
        time.sleep(chance.random() * 0.02)
        victim = chance.choice(list(starts))
        watched.kill(victim)
        report.kills["server" if victim == "server" else "party"] += 1
        report.moments.append(moment / ROUNDS)
    made.wait(*watched.processes.values(), seconds=PATIENCE)
    report.runs += 1


def kill_hub(report: Report, made: Federation, chance: random.Random, most: int) -> None:
    starts = {"server": made.serve} | {name: partial(made.join, name) for name in NAMES}
    disturb(report, made, starts, chance, most)
    expected = made.train()
    report.other_models += not np.array_equal(made.model("run"), expected)
    for name in NAMES:
        report.other_models += not np.array_equal(made.model(f"{name}.run"), expected)
        count_steps(report, steps(made, name))


def kill_peers(report: Report, made: Federation, chance: random.Random, most: int, walk: bool = False) -> None:
    names = [path.stem for path in sorted(made.folder.glob("*.csv"))]
    disturb(report, made, {name: partial(made.peer, name) for name in names}, chance, most)
    expected = made.train()
    done = []
    for name in names:
        report.other_models += not np.array_equal(made.model(f"{name}.run"), expected)
        done.append(steps(made, name))
    for each in [[step for own in done for step in own]] if walk else done:
        count_steps(report, each)


def kill_training(report: Report, made: Federation, chance: random.Random, most: int) -> None:
    """`consenso train`, killed at random times and resumed until it is done."""
    study = Study.load(made.folder / "study.toml").change({"data.tables": {name: f"{name}.csv" for name in NAMES}})
    text = study.change({"output.checkpoint": 1}).to_toml()
    made.write("here.toml", text)
    expected = train(Study.load(made.folder / "here.toml"), made.folder / "whole").parameters
    killed = 0
    while not (made.folder / "out" / "model.json").exists():
        begun = (made.folder / "out" / "checkpoint" / "checkpoint.npz").exists()
        process: Any = made.start("train", "here.toml", "--out", "out", *(["--resume"] if begun else []))
        if killed < most:
            noted = made.folder / "out" / "checkpoint" / "checkpoint.npz"
            before = noted.stat().st_mtime_ns if begun else 0
            while process.poll() is None and not (noted.exists() and noted.stat().st_mtime_ns != before):
                time.sleep(0.002)
            time.sleep(chance.random() * 0.05)
            if process.poll() is None:
                process.kill()
                killed += 1
                report.kills["the one process"] += 1
                report.moments.append(_done(made.folder / "out"))
        process.wait(PATIENCE)
        if not begun and not (made.folder / "out" / "checkpoint" / "checkpoint.npz").exists():
            if (made.folder / "out" / "model.json").exists():
                break
            shutil.rmtree(made.folder / "out", ignore_errors=True)
    report.runs += 1
    told = load_model(made.folder / "out").coefficients
    whole = model_with(study, expected.reshape(-1, study.problem().outputs), None).coefficients
    report.other_models += not np.array_equal(told, whole)


def _done(folder: Path) -> float:
    """The share of the rounds that the status file of a run tells."""
    try:
        told = json.loads((folder / "status.json").read_text())
        return float(told["done"]) / ROUNDS
    except (OSError, ValueError, KeyError, TypeError):
        return float("nan")


Kill = Callable[[Report, Federation, random.Random, int], None]
ENGINES: dict[str, tuple[Kill, dict[str, Any]]] = {
    "one process (`train`, `--resume`)": (kill_training, {"parties": NAMES}),
    "server and clients": (kill_hub, {"parties": NAMES}),
    "peers": (
        kill_peers,
        {"parties": NAMES, "kind": "decentralized", "algorithm": "IPADMM", "setting": 'topology = "path"'},
    ),
    "a token among peers": (
        partial(kill_peers, walk=True),
        {"parties": NAMES, "kind": "decentralized", "setting": 'schedule = "random-walk"\ntopology = "ring"'},
    ),
    "sums on a graph": (
        kill_peers,
        {"parties": GRAPH, "kind": "decentralized", "algorithm": "DPSGD", "setting": 'topology = "ring"'},
    ),
}


def markdown(reports: list[Report], wanted: int) -> str:
    """One row for each engine."""
    total = sum(sum(report.kills.values()) for report in reports)
    lines = [
        f"{total:,} kills of {wanted:,} that were asked for, at random moments; runs of {ROUNDS} rounds.",
        "",
        "| engine | runs | killed | moments (quartiles of the run) | other models | steps lost | steps repeated |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for report in reports:
        known = [moment for moment in report.moments if not np.isnan(moment)]
        quartiles = np.quantile(known, (0.25, 0.5, 0.75)) if known else []
        when = ", ".join(f"{each:.0%}" for each in quartiles) or "-"
        whom = ", ".join(f"{count} {who}" for who, count in sorted(report.kills.items())) or "nobody"
        losses = f"{report.other_models} | {report.lost_steps} | {report.repeated_steps}"
        lines.append(f"| {report.engine} | {report.runs} | {whom} | {when} | {losses} |")
    return "\n".join(lines) + "\n"


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.deployment.kills", description=__doc__)
    parser.add_argument("--kills", type=int, default=1000)
    parser.add_argument("--each", type=int, default=20, help="kills in one run")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="begin no run after so many")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--page", type=Path, help="a page whose table is written anew")
    chosen = parser.parse_args(arguments)
    chance, reports = random.Random(chosen.seed), {name: Report(name) for name in ENGINES}
    end, number = time.monotonic() + chosen.seconds, 0
    killed = lambda: sum(sum(report.kills.values()) for report in reports.values())
    with tempfile.TemporaryDirectory() as place:
        authority = Path(place) / "certs"
        certs.init(authority / "authority")
        for name in ("server", *GRAPH):
            certs.issue(authority / "authority", name, out=authority / name, hosts=["127.0.0.1"])
        while killed() < chosen.kills and time.monotonic() < end:
            name = list(ENGINES)[number % len(ENGINES)]
            kill, changes = ENGINES[name]
            made = federation(Path(place) / f"run-{number}", authority, rounds=ROUNDS, **changes)
            try:
                kill(reports[name], made, chance, min(chosen.each, chosen.kills - killed()))
            finally:
                made.close()
            number += 1
            sys.stdout.write(f"{killed()} kills, {name}: {reports[name]}\n")
            sys.stdout.flush()
    table = markdown(list(reports.values()), chosen.kills)
    sys.stdout.write(table)
    if chosen.page is not None:
        write_into(chosen.page, table, (BEGIN, END))
    return int(any(each.other_models or each.lost_steps or each.repeated_steps for each in reports.values()))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
