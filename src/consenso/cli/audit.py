"""`consenso audit`: attack what a study or an algorithm promises."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from consenso.cli.completing import complete_targets
from consenso.conventions import LARGEST_DELTA

if TYPE_CHECKING:
    from consenso.audit.attack import Effort
    from consenso.audit.findings import Finding
    from consenso.audit.table import Attacked
    from consenso.planning.plan import Plan


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(name="audit")(attack)


def attack(
    target: Annotated[
        str | None,
        typer.Argument(
            help="A study file, or the name of an algorithm.", autocompletion=complete_targets, show_default=False
        ),
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="Every algorithm.")] = False,
    observer: Annotated[
        list[str] | None, typer.Option(help="eavesdropper, server, public, peer:3, coalition:1,4; all if left out.")
    ] = None,
    trials: Annotated[int, typer.Option(help="Runs of either world.", min=100)] = 5000,
    slow_trials: Annotated[int, typer.Option(help="The same where runs cannot be taken together.", min=100)] = 200,
    unit: Annotated[str | None, typer.Option(help="record or party; the plan's own if left out.")] = None,
    adjacency: Annotated[
        str | None, typer.Option(help="replace-one, add-remove or blanked; the plan's own if left out.")
    ] = None,
    delta: Annotated[float, typer.Option(help="At which epsilons are compared.")] = LARGEST_DELTA,
    confidence: Annotated[float, typer.Option(help="That no true claim is called refuted.")] = 0.95,
    seed: Annotated[int, typer.Option(help="Of the simulated noise.")] = 0,
    canaries: Annotated[
        int | None, typer.Option(help="Run once, with so many canaries, instead of thousands of times.", min=1)
    ] = None,
    own_loss: Annotated[
        bool, typer.Option("--own-loss", help="Attack an algorithm's example as it is, not with linear losses.")
    ] = False,
    self_test: Annotated[
        bool,
        typer.Option("--self-test", help="Plant faults, and see that each is caught; with --page, list them there."),
    ] = False,
    quick: Annotated[bool, typer.Option("--quick", help="Of the planted faults those that take no attack.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Findings as JSON.")] = False,
    out: Annotated[Path | None, typer.Option(help="A folder for findings and figures.", show_default=False)] = None,
    page: Annotated[
        Path | None, typer.Option(help="A Markdown page whose table of attacks is written anew.", show_default=False)
    ] = None,
) -> None:
    """Attack every guarantee of a plan and compare the epsilon that the attack proves with the one that is reported.

    No data are needed: a guarantee holds for all data, and the attacker chooses the worst. The noise is simulated.

    A claim that is exactly attained is refuted by chance once in twenty attacks at confidence 0.95. So a claim that is
    refuted is attacked again with new noise, and the second attack decides. Its confidence is such that all claims of
    the command together are called refuted by chance with a probability of at most 0.05.

    With --self-test faults are planted instead: wrong noise, wrong bounds, misuses of ledger and masks. Each must be
    caught by the law, attack or refusal that is there for it.

    Exit codes: 0 no claim was refuted, every planted fault was caught; 1 otherwise; 2 bad input.

    Example: consenso audit ConsensusADMM --observer server --trials 20000 --out audit/
    """
    from consenso.audit.attack import Effort, confirm
    from consenso.audit.table import markdown, write_into
    from consenso.errors import InputError

    _check_options(unit, adjacency, delta)
    if quick and not self_test:
        raise InputError("audit --quick: it leaves out planted faults that need an attack; give --self-test, too.")
    if self_test:
        _plant(quick, page, as_json)
        return
    if canaries is not None:
        _once(_plans(target, everything, own_loss), canaries, delta, confidence, seed, as_json)
        return
    effort = Effort(trials=trials, slow_trials=slow_trials, confidence=confidence, seed=seed)
    attacked: list[Attacked] = []
    for plan in _plans(target, everything, own_loss):
        found = _attack(plan, effort, observer, unit, adjacency, delta)
        if found is None:
            continue
        attacked.append(found)
        if not as_json and not _list_doubted(found):
            _show(found)
    claims = sum(bool(finding.trials) for each in attacked for finding in each.findings)
    for place, found in enumerate(attacked):
        if _list_doubted(found):
            attacked[place] = replace(found, findings=confirm(found.plan, found.findings, effort.again(claims)))
            if not as_json:
                _show(attacked[place])
        if out is not None:
            _draw(attacked[place], out)
    findings = [(each, finding) for each in attacked for finding in each.findings]
    report = [finding.to_json() | {"setting": each.spec} for each, finding in findings]
    if as_json:
        typer.echo(json.dumps(report, indent=2))
    if out is not None:
        (out / "findings.json").write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
    if page is not None:
        write_into(page, markdown(attacked))
    refuted = [finding for _, finding in findings if finding.refuted]
    for finding in refuted:
        typer.secho(finding.sentence(), fg=typer.colors.RED, err=True)
    if refuted:
        raise typer.Exit(1)


def _plant(quick: bool, page: Path | None, as_json: bool) -> None:
    """Plant every fault, and list them on a page if one is given."""
    from consenso.audit.table import write_into
    from consenso.testing.planted import FAULTS, catch, markdown
    from consenso.testing.planted.suite import BEGIN, END

    report = []
    for fault in FAULTS:
        if quick and fault.slow:
            continue
        found = catch(fault)
        report.append({"fault": fault.name, "by": fault.catcher, "kind": fault.kind, "caught": found.caught})
        if not as_json:
            verdict = "caught" if found.caught else f"NOT CAUGHT ({found.said})"
            typer.echo(f"{fault.name}: {verdict} by {fault.catcher}, {found.seconds:.1f} s")
    missed = [each for each in report if not each["caught"]]
    typer.echo(
        json.dumps(report, indent=2) if as_json else f"{len(report) - len(missed)} of {len(report)} faults caught"
    )
    if page is not None:
        write_into(page, markdown(FAULTS), (BEGIN, END))
    if missed:
        raise typer.Exit(1)


def _list_doubted(found: Attacked) -> bool:
    return any(finding.refuted for finding in found.findings)


def _once(plans: list[Plan], count: int, delta: float, confidence: float, seed: int, as_json: bool) -> None:
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
                f"{each['within']:.4g} if its shape holds, {each['lower']:.4g} of any mechanism, each with confidence "
                f"{each['confidence']:.6g} ({each['right']} of {each['guesses']} guesses right, {each['canaries']} "
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


def _check_options(unit: str | None, adjacency: str | None, delta: float) -> None:
    from consenso.errors import InputError
    from consenso.privacy.relations import RELATIONS

    if unit not in (None, "record", "party") or adjacency not in (None, *RELATIONS):
        raise InputError(
            f"audit(--unit {unit}, --adjacency {adjacency}): a unit is record or party, an adjacency "
            f"{', '.join(RELATIONS)}."
        )
    if not 0 < delta < 1:
        raise InputError(f"audit(--delta {delta}): a delta lies in (0, 1); 1e-5 is usual.")


def _plans(target: str | None, everything: bool, own_loss: bool) -> list[Plan]:
    from consenso.algorithms import discover, find
    from consenso.errors import InputError

    if everything == (target is not None):
        raise InputError("audit: name a study file or an algorithm, or give --all; one of the two.")
    if target is not None and (target.endswith(".toml") or Path(target).is_file()):
        from consenso.study import Study

        return [Study.load(Path(target)).plan()]
    definitions = discover().values() if target is None else [find(target)]
    return [plan for definition in definitions for plan in _examples(definition, own_loss)]


def _examples(definition: Any, own_loss: bool) -> list[Plan]:
    from consenso.testing.attacks import list_attacked_plans
    from consenso.testing.plans import settings_of

    example = definition.example()
    return list(settings_of(example) if own_loss else list_attacked_plans(example))


def _attack(
    plan: Plan, effort: Effort, observer: list[str] | None, unit: Any, adjacency: Any, delta: float
) -> Attacked | None:
    from consenso.audit.attack import audit
    from consenso.audit.table import Attacked
    from consenso.privacy.observers import members, parse

    wanted = None
    if observer:
        # A server is no observer of a run without one; a peer is one whoever it is.
        there = {each.key for each in plan.observers()}
        wanted = [each for each in map(parse, observer) if each.key in there or members(each)]
        if not wanted:
            return None
    found = audit(plan, effort, observers=wanted, unit=unit, adjacency=adjacency, delta=delta)
    return Attacked(plan=plan, findings=found)


def _draw(attacked: Attacked, out: Path) -> None:
    from consenso.audit.plot import draw

    out.mkdir(parents=True, exist_ok=True)
    for finding in attacked.findings:
        if finding.evidence is not None:
            where = f"{finding.algorithm}-{attacked.spec}-{finding.observer}".replace(", ", "-").replace(":", "-")
            draw(finding, out / f"{where}.png")


def _show(attacked: Attacked) -> None:
    from rich.console import Console
    from rich.table import Table

    first = attacked.findings[0]
    scope = f"{first.unit}, {first.adjacency}: epsilon at delta {first.delta:g}"
    table = Table(title=f"{first.algorithm} ({attacked.spec}), {scope}", title_justify="left")
    for name in ("observer", "claimed", "proved", "share", "sense", "verdict"):
        table.add_column(name, no_wrap=True)
    for finding in attacked.findings:
        table.add_row(finding.observer, *_cells(finding))
    sure = sorted({finding.confidence for finding in attacked.findings if finding.trials})
    table.caption = f"proved: with confidence {' or '.join(f'{each:.6g}' for each in sure)}" if sure else None
    console = Console()
    console.print(table)
    for how in dict.fromkeys(_how(finding) for finding in attacked.findings if finding.trials):
        who = [finding.observer for finding in attacked.findings if _how(finding) == how]
        console.print(f"{', '.join(who)}: {how}", highlight=False)
    for finding in attacked.findings:
        if finding.first is not None:
            console.print(f"{finding.observer}: {finding.seen()}", highlight=False)


def _how(finding: Finding) -> str:
    return f"{finding.neighbours}; {finding.attack}; {finding.method}"


def _cells(finding: Finding) -> list[str]:
    if not finding.trials:
        return ["inf", "-", "-", "-", "nothing is claimed"]
    numbers = [f"{finding.claimed:.4g}", f"{finding.lower:.4g}", f"{finding.share:.0%}"]
    return [*numbers, finding.sense, "REFUTED" if finding.refuted else "not refuted"]
