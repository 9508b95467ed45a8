"""`python -m tests.deployment.kills --kills 1000`: kill -9 at random moments over all engines, and look what is left.

Runs of an engine are seeded and charged in turn. A seeded one must end with the model of an undisturbed one, bit for
bit. A charged one draws noise that cannot be drawn again: each party has a ledger of its own, which must be charged
exactly what an undisturbed run costs, once. In both every journal must have each step exactly once, and all parties end
with the same model. The table says how many processes of which engine were killed in which rounds, and what was lost.
With `--keep` what was seen is written down after every run, and a later command goes on from there; with `--add` what
other commands, with other seeds, have kept is counted as well.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from tests.deployment.conftest import SCHEMA, Federation, study_text, table_text
from tests.deployment.test_faults import NAMES, Watched, steps
from tests.ports import free_port

from consenso.audit.table import write_into
from consenso.deployment import certs
from consenso.engine.ledger_charge import LedgerCharge
from consenso.federation.budget_guard import LedgerGuard
from consenso.models import load_model
from consenso.privacy.ledger import Budget, Ledger
from consenso.study import Study
from consenso.study.training import model_with, train

BEGIN, END = "<!-- table of kills: begin -->", "<!-- table of kills: end -->"
GRAPH = (*NAMES, "oak")
ROUNDS = 120  # of a run
PATIENCE = 3600.0  # seconds that no machine needs
BUDGET = Budget(observer="eavesdropper", unit="record", adjacency="replace-one", epsilon=1000.0, delta=1e-5)
CHARGED, SEEDED = "multiplier = 2.0", "multiplier = 2.0\nseed = 7"


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
    ledgers: int = 0  # of charged runs
    lost_charges: int = 0
    repeated_charges: int = 0

    @property
    def is_clean(self) -> bool:
        wrong = self.other_models + self.lost_steps + self.repeated_steps + self.lost_charges + self.repeated_charges
        return wrong == 0


def federation(folder: Path, authority: Path, parties: tuple[str, ...], *, charged: bool, **changes: Any) -> Federation:
    folder.mkdir()
    (folder / "certs").symlink_to(authority)
    made = Federation(folder)
    made.write("schema.toml", SCHEMA)
    made.write("study.toml", study_text(parties=parties, privacy=CHARGED if charged else SEEDED, **changes))
    for seed, name in enumerate(parties):
        made.write(f"{name}.csv", table_text(seed))
        if charged:
            Ledger.create(folder / f"{name}.ledger", dataset=name, budgets=[BUDGET])
    made.write("addresses.toml", "".join(f'{name} = "127.0.0.1:{free_port()}"\n' for name in parties))
    return made


def count_steps(report: Report, done: list[int]) -> None:
    """Steps that are missing in a journal, and those that are there twice."""
    counts = Counter(done)
    report.lost_steps += ROUNDS - len(counts)
    report.repeated_steps += sum(count - 1 for count in counts.values())


def own_ledger(made: Federation, name: str) -> tuple[str, ...]:
    """What a party says of its ledger, where there is one."""
    return ("--ledger", f"{name}.ledger") if (made.folder / f"{name}.ledger").exists() else ()


def count_charges(report: Report, made: Federation, name: str, begun: int = 1) -> None:
    """Compare a ledger with one that the plan is charged to once. begun: how often a run was begun anew on it."""
    ledger = Ledger.open(made.folder / f"{name}.ledger")
    undisturbed = Ledger.create(made.folder / f"{name}.once.ledger", dataset=name, budgets=[BUDGET])
    LedgerGuard(Study.load(made.folder / "study.toml").plan(), LedgerCharge(ledger=undisturbed, run_id="once")).open()
    spent, once = (each.balances()[0].spent for each in (ledger, undisturbed))
    committed = [run for run in ledger.runs() if run.state == "committed"]
    report.ledgers += 1
    report.lost_charges += not ledger.verify().sound or not committed or spent < once
    report.repeated_charges += len(committed) > 1 or len(ledger.runs()) > begun or (begun == 1 and spent > once)


def count_models(report: Report, made: Federation, models: list[np.ndarray]) -> None:
    """Models that are not those of an undisturbed run, or of the others where noise cannot be drawn again."""
    charged = any(made.folder.glob("*.ledger"))
    expected = models[0] if charged else made.train()
    report.other_models += sum(not np.array_equal(model, expected) for model in models)


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
    clients = {name: partial(made.join, name, *own_ledger(made, name)) for name in NAMES}
    disturb(report, made, {"server": made.serve} | clients, chance, most)
    count_models(report, made, [made.model("run"), *(made.model(f"{name}.run") for name in NAMES)])
    for name in NAMES:
        count_steps(report, steps(made, name))
        if own_ledger(made, name):
            count_charges(report, made, name)


def kill_peers(report: Report, made: Federation, chance: random.Random, most: int, walk: bool = False) -> None:
    names = [path.stem for path in sorted(made.folder.glob("*.csv"))]
    disturb(report, made, {name: partial(made.peer, name, *own_ledger(made, name)) for name in names}, chance, most)
    count_models(report, made, [made.model(f"{name}.run") for name in names])
    done = [steps(made, name) for name in names]
    for name in names:
        if own_ledger(made, name):
            count_charges(report, made, name)
    for each in [[step for own in done for step in own]] if walk else done:
        count_steps(report, each)


def kill_training(report: Report, made: Federation, chance: random.Random, most: int) -> None:
    """`consenso train`, killed at random rounds and resumed until it is done."""
    study = Study.load(made.folder / "study.toml").change({"data.tables": {name: f"{name}.csv" for name in NAMES}})
    charged, out, starts = bool(own_ledger(made, NAMES[0])), made.folder / "out", 0
    budget = {"privacy.ledger": f"{NAMES[0]}.ledger"} if charged else {}
    study = study.change({"output.checkpoint": 1, **budget})
    made.write("here.toml", study.to_toml())
    moments = sorted(chance.sample(range(1, ROUNDS - 3), most))
    while not (out / "model.json").exists():
        begun = (out / "checkpoint" / "checkpoint.npz").exists()
        if not begun:  # killed before there was anything to go on from
            shutil.rmtree(out, ignore_errors=True)
            starts += 1
        process: Any = made.start("train", "here.toml", "--out", "out", *(["--resume"] if begun else []))
        while moments and process.poll() is None and _rounds(out) < moments[0]:
            time.sleep(0.002)
        time.sleep(chance.random() * 0.02)
        if moments and process.poll() is None:
            process.kill()
            report.kills["the one process"] += 1
            report.moments.append(_rounds(out) / ROUNDS)
            moments = [each for each in moments if each > _rounds(out)]
        code = process.wait(PATIENCE)
        assert code in (0, -signal.SIGKILL), made.tail(process)
    report.runs += 1
    if charged:
        count_charges(report, made, NAMES[0], begun=starts)
        return
    told = load_model(out).coefficients
    expected = train(Study.load(made.folder / "here.toml"), made.folder / "whole").parameters
    whole = model_with(study, expected.reshape(-1, study.problem().outputs), None).coefficients
    report.other_models += not np.array_equal(told, whole)


def _rounds(folder: Path) -> int:
    """The rounds that the status file of a run says are done."""
    try:
        return int(json.loads((folder / "status.json").read_text())["done"])
    except (OSError, ValueError, KeyError, TypeError):
        return 0


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
        "| engine | runs | killed | moments (quartiles of the run) | other models | steps lost | steps repeated "
        "| ledgers charged | charges lost | charged twice |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for report in reports:
        quartiles = np.quantile(report.moments, (0.25, 0.5, 0.75)) if report.moments else []
        when = ", ".join(f"{each:.0%}" for each in quartiles) or "-"
        whom = ", ".join(f"{count} {who}" for who, count in sorted(report.kills.items())) or "nobody"
        losses = f"{report.other_models} | {report.lost_steps} | {report.repeated_steps}"
        charges = f"{report.ledgers} | {report.lost_charges} | {report.repeated_charges}"
        lines.append(f"| {report.engine} | {report.runs} | {whom} | {when} | {losses} | {charges} |")
    return "\n".join(lines) + "\n"


def read_reports(path: Path | None) -> dict[str, Report]:
    """What an earlier command kept, or nothing yet."""
    reports = {name: Report(name) for name in ENGINES}
    if path is not None and path.exists():
        for each in json.loads(path.read_text()):
            reports[each["engine"]] = Report(**each | {"kills": Counter(each["kills"])})
    return reports


def add_reports(reports: dict[str, Report], path: Path) -> None:
    """Count what another command kept."""
    for name, other in read_reports(path).items():
        for each in fields(Report):
            if each.name != "engine":
                setattr(reports[name], each.name, getattr(reports[name], each.name) + getattr(other, each.name))


def keep_reports(path: Path, reports: dict[str, Report]) -> None:
    beside = path.with_name(path.name + ".new")
    beside.write_text(json.dumps([vars(report) for report in reports.values()], indent=1))
    beside.replace(path)


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.deployment.kills", description=__doc__)
    parser.add_argument("--kills", type=int, default=1000)
    parser.add_argument("--each", type=int, default=20, help="kills in one run")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="begin no run after so many")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--keep", type=Path, help="a file with what was seen, written after every run and read first")
    parser.add_argument("--add", type=Path, nargs="*", default=[], help="what was kept with other seeds")
    parser.add_argument("--page", type=Path, help="a page whose table is written anew")
    chosen = parser.parse_args(arguments)
    own = read_reports(chosen.keep)
    others = read_reports(None)
    for path in chosen.add:
        add_reports(others, path)
    end = time.monotonic() + chosen.seconds
    killed = lambda: sum(sum(each[name].kills.values()) for each in (own, others) for name in ENGINES)
    order = list(ENGINES)[chosen.seed % len(ENGINES) :] + list(ENGINES)[: chosen.seed % len(ENGINES)]
    with tempfile.TemporaryDirectory() as place:
        authority = Path(place) / "certs"
        certs.init(authority / "authority")
        for name in ("server", *GRAPH):
            certs.issue(authority / "authority", name, out=authority / name, hosts=["127.0.0.1"])
        while killed() < chosen.kills and time.monotonic() < end:
            name = min(order, key=lambda each: own[each].runs)
            kill, changes = ENGINES[name]
            chance = random.Random(f"{chosen.seed}, {name}, {own[name].runs}")
            charged = (chosen.seed + sum(each.runs for each in own.values())) % 2 == 1  # engines are odd in number
            made = federation(Path(place) / f"run-{killed()}", authority, charged=charged, rounds=ROUNDS, **changes)
            try:
                kill(own[name], made, chance, min(chosen.each, chosen.kills - killed()))
            finally:
                made.close()
            shutil.rmtree(made.folder)
            if chosen.keep is not None:
                keep_reports(chosen.keep, own)
            sys.stdout.write(f"{killed()} kills, {name}: {own[name].runs} runs\n")
            sys.stdout.flush()
    reports = own
    for path in chosen.add:
        add_reports(reports, path)
    table = markdown(list(reports.values()), chosen.kills)
    sys.stdout.write(table)
    if chosen.page is not None:
        write_into(chosen.page, table, (BEGIN, END))
    return int(not all(each.is_clean for each in reports.values()))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
