"""Audits of one run with canaries, in place of thousands of runs."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from consenso.cli.attacked import show_progress

if TYPE_CHECKING:
    from consenso.planning.plan import Plan
    from consenso.study.audited import Audited


def attack_data(target: str | None, count: int | None, confidence: float, out: Path | None, as_json: bool) -> None:
    """One charged run of a study with canaries among its records."""
    from consenso.errors import InputError, write_count
    from consenso.privacy.rounding import round_up
    from consenso.study import Study
    from consenso.study.audited import AUDIT, audit_data

    if target is None or not target.endswith(".toml"):
        raise InputError("audit --data: name a study file; its data are run once with canaries among them.")
    study = Study.load(Path(target))
    folder = out or study.folder / f"runs/{Path(target).stem}-audit"
    with show_progress(hidden=as_json) as bar:
        task = bar.add_task("training with canaries", total=None)
        found = audit_data(
            study,
            folder,
            count=count,
            confidence=confidence,
            progress=lambda done, planned: bar.update(task, completed=done, total=planned),
        )
    run, above = found.run, found.run.refutes(found.claimed)
    if as_json:
        typer.echo((folder / AUDIT).read_text(encoding="utf-8").rstrip())
    else:
        verdict = "above the claim: a second run decides" if above else "not refuted"
        paid = "a simulation, charged to no ledger" if study.simulation else "charged like any run"
        if not study.simulation and study.privacy.ledger is None:
            paid = "charged to no ledger, as the study names none"
        typer.echo(
            f"{found.trained.card.algorithm}, public: claimed epsilon {round_up(found.claimed)} at delta "
            f"{run.delta:g}: {verdict}\n"
            f"proved with confidence {run.confidence:g}: at least {run.lower:.4g} of any mechanism, {run.within:.4g} "
            f"if the claimed curve's shape holds, {run.pair:.4g} if canaries do not hide each other\n"
            f"{run.right} of {run.guesses} guesses right, {write_count(run.canaries, 'canary')}; an attack that "
            f"attains the claim proves {found.ideal:.4g} with as many{_more(found)}\n"
            f"{folder}: {paid}"
        )
    if above:
        raise typer.Exit(1)


def _more(found: Audited) -> str:
    from consenso.audit.findings import ENOUGH

    return "" if found.ideal >= ENOUGH * found.claimed else "; --canaries asks for more"


def measure_one_run(page: Path) -> None:
    """Measure what one run proves, and write the table."""
    from consenso.audit.one_run_table import BEGIN, END, SEEDS, SETTINGS, markdown, measure
    from consenso.audit.table import write_into

    measured = [(setting, measure(setting, seeds=SEEDS)) for setting in SETTINGS]
    write_into(page, markdown(measured), (BEGIN, END))
    typer.echo(markdown(measured).rstrip())


def attack_once(plans: list[Plan], count: int, delta: float, confidence: float, seed: int, as_json: bool) -> None:
    """One run of each plan with canaries in the place of data, and a second one where a claim seems to be refuted."""
    from consenso.audit.one_run import audit_once

    first = [(plan, audit_once(plan, count, delta=delta, confidence=confidence, seed=seed)) for plan in plans]
    claims = sum(math.isfinite(claimed) for _, runs in first for _, claimed, _ in runs)
    surer = 1 - (1 - confidence) / max(1, 2 * claims)  # two bounds, of which either refutes
    report = []
    for plan, runs in first:
        doubted = any(run.refutes(claimed) for _, claimed, run in runs)
        second = audit_once(plan, count, delta=delta, confidence=surer, seed=seed + 1) if doubted else runs
        for (observer, claimed, before), (_, _, again) in zip(runs, second, strict=True):
            repeated = before.refutes(claimed)
            run = again if repeated else before
            report.append(
                {
                    "algorithm": type(plan.algorithm).__name__,
                    "observer": observer,
                    "view": run.view,
                    "claimed": claimed if math.isfinite(claimed) else None,
                    "lower": run.lower,
                    "within": run.within,
                    "pair": run.pair,
                    "confidence": run.confidence,
                    "canaries": run.canaries,
                    "guesses": run.guesses,
                    "right": run.right,
                    "refuted": run.refutes(claimed),
                    "first": {"lower": before.lower, "within": before.within, "confidence": before.confidence}
                    if repeated
                    else None,
                }
            )
    if as_json:
        typer.echo(json.dumps(report, indent=2))
    else:
        for each in report:
            verdict = "REFUTED" if each["refuted"] else "not refuted"
            typer.echo(
                f"{each['algorithm']}, {each['observer']}: claimed epsilon {each['claimed']}, at least "
                f"{each['within']:.4g} if its shape holds, {each['lower']:.4g} of any mechanism, {each['pair']:.4g} if "
                f"canaries do not hide each other, each with confidence {each['confidence']:.6g} "
                f"({each['right']} of {each['guesses']} guesses right, {each['canaries']} "
                f"canaries{_first_run(each)}): {verdict}"
            )
    if any(each["refuted"] for each in report):
        raise typer.Exit(1)


def _first_run(told: dict[str, Any]) -> str:
    first = told["first"]
    if first is None:
        return ""
    most = max(first["lower"], first["within"])
    return f"; a first run gave at least {most:.4g} with confidence {first['confidence']:g}"
