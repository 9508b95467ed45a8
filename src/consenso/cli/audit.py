"""`consenso audit`: attack what a study or an algorithm promises."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from consenso.cli.attacked import draw_each, show_attacked, show_progress
from consenso.cli.completing import complete_targets
from consenso.cli.one_run import attack_data, attack_once, measure_one_run
from consenso.conventions import LARGEST_DELTA

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

    from consenso.audit.attack import Effort
    from consenso.audit.findings import Finding
    from consenso.audit.table import Attacked
    from consenso.planning.plan import Plan


def register(app: typer.Typer) -> None:
    app.command(name="audit", rich_help_panel="Privacy")(attack)


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
    enough: Annotated[
        float,
        typer.Option(help="The share of a claim, or of what can be proved, at which an attack ends early.", min=0.1),
    ] = 0.85,
    seed: Annotated[int, typer.Option(help="Of the simulated noise.")] = 0,
    workers: Annotated[
        int | None, typer.Option(help="Processes; as many as there are processors, if left out.", min=1)
    ] = None,
    canaries: Annotated[
        int | None, typer.Option(help="Run once, with so many canaries, instead of thousands of times.", min=1)
    ] = None,
    data: Annotated[
        bool,
        typer.Option("--data", help="Run a study on its own data, with canaries among the records; its ledger pays."),
    ] = False,
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
        Path | None,
        typer.Option(help="A page whose table of attacks is written anew, or the rows of one.", show_default=False),
    ] = None,
) -> None:
    """Attack every guarantee of a plan and compare the epsilon that the attack proves with the one that is reported.

    No data are needed: a guarantee holds for all data, and the attacker chooses the worst. The noise is simulated.

    A claim that is exactly attained is refuted by chance once in twenty attacks at confidence 0.95. So a claim that is
    refuted is attacked again with new noise, and the second attack decides. Its confidence is such that all claims of
    the command together are called refuted by chance with a probability of at most 0.05.

    With --data the study is run once on its own data, some records of which give way to canaries: the run is charged to
    the ledger and written like any other, its card says so, and what guessing the canaries proves stands in audit.json.
    With --canaries and --page the table of one-run bounds is measured anew.

    With --self-test faults are planted instead: wrong noise, wrong bounds, misuses of ledger and masks. Each must be
    caught by the law, attack or refusal that is there for it.

    Where an attack stays below a claim, the value for linear losses is computed, if it can be: then either the attack
    is weak or the claim is loose, and the command says which.

    Exit codes: 0 no claim was refuted, every planted fault was caught, every cell of a page has its reason; 1
    otherwise; 2 bad input.

    Example: consenso audit ConsensusADMM --observer server --trials 20000 --out audit/
    """
    from consenso.audit.attack import Effort, confirm
    from consenso.audit.processes import count_processors
    from consenso.audit.table import list_unexplained, markdown, write_into
    from consenso.errors import InputError

    _check_options(unit, adjacency, delta, confidence)
    if quick and not self_test:
        raise InputError("audit --quick: it leaves out planted faults that need an attack; give --self-test, too.")
    if self_test:
        _plant(quick, page, as_json)
        return
    if data:
        attack_data(target, canaries, confidence, out, as_json)
        return
    if canaries is not None and page is not None:
        measure_one_run(page)
        return
    if canaries is not None:
        attack_once(_plans(target, everything, own_loss), canaries, delta, confidence, seed, as_json)
        return
    attacked: list[Attacked] = []
    plans = _plans(target, everything, own_loss)
    processes = workers or count_processors()
    effort = Effort(
        trials=trials,
        slow_trials=slow_trials,
        confidence=confidence,
        seed=seed,
        workers=processes if len(plans) == 1 else 1,  # several plans are shared as wholes
        enough=None if enough >= 1 else enough,
    )
    with show_progress(hidden=as_json) as bar:
        task = bar.add_task("attacking", total=len(plans))
        one = partial(_attack, effort=effort, observer=observer, unit=unit, adjacency=adjacency, delta=delta)
        for place, found in enumerate(_attack_each(plans, one, processes, partial(_move, bar, task))):
            bar.update(task, completed=place + 1)
            if found is None:
                continue
            attacked.append(found)
            if not as_json and not _list_doubted(found):
                show_attacked(found)
    claims = sum(bool(finding.trials) for each in attacked for finding in each.findings)
    for place, found in enumerate(attacked):
        if _list_doubted(found):
            attacked[place] = replace(found, findings=confirm(found.plan, found.findings, effort.again(claims)))
            if not as_json:
                show_attacked(attacked[place])
        if out is not None:
            draw_each(attacked[place], out)
    findings = [(each, finding) for each in attacked for finding in each.findings]
    report = [finding.to_json() | {"setting": each.setting} for each, finding in findings]
    if as_json:
        typer.echo(json.dumps(report, indent=2))
    if out is not None:
        (out / "findings.json").write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
    if page is not None:
        write_into(page, markdown(attacked, None if everything else page))
    unexplained = list_unexplained(attacked)
    for finding in unexplained:
        typer.secho(f"no reason is known: {finding.sentence()}", fg=typer.colors.RED, err=True)
    refuted = [finding for _, finding in findings if finding.refuted]
    for finding in refuted:
        typer.secho(finding.sentence(), fg=typer.colors.RED, err=True)
    if refuted or (page is not None and unexplained):
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


def _move(bar: Progress, task: TaskID, place: int, share: float) -> None:
    bar.update(task, completed=place + share)


def _list_doubted(found: Attacked) -> bool:
    return any(finding.refuted for finding in found.findings)


def _check_options(unit: str | None, adjacency: str | None, delta: float, confidence: float) -> None:
    from consenso.errors import InputError
    from consenso.privacy.relations import RELATIONS

    if unit not in (None, "record", "party"):
        raise InputError(f"audit(--unit {unit}): a unit is record or party.")
    if adjacency not in (None, *RELATIONS):
        raise InputError(f"audit(--adjacency {adjacency}): an adjacency is one of {', '.join(RELATIONS)}.")
    if not 0 < delta < 1:
        raise InputError(f"audit(--delta {delta}): a delta lies in (0, 1); 1e-5 is usual.")
    if not 0 < confidence < 1:
        raise InputError(f"audit(--confidence {confidence}): a confidence lies in (0, 1); 0.95 is usual.")


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


def _attack_each(
    plans: list[Plan], attack: Callable[..., Attacked | None], workers: int, move: Callable[[int, float], None]
) -> Iterator[Attacked | None]:
    """What attacking each plan gave, in their order; in processes of their own if there are several workers."""
    if min(workers, len(plans)) == 1:
        yield from (attack(plan, tell=partial(move, place)) for place, plan in enumerate(plans))
        return
    from consenso.audit.processes import share_among
    from consenso.audit.table import Attacked

    for plan, findings in zip(plans, share_among(partial(_find, attack), plans, workers), strict=True):
        yield None if findings is None else Attacked(plan=plan, findings=findings)


def _find(attack: Callable[..., Attacked | None], plan: Plan) -> list[Finding] | None:
    """What comes back from another process; the plan, which has worked there, stays."""
    found = attack(plan)
    return None if found is None else found.findings


def _attack(
    plan: Plan,
    effort: Effort,
    observer: list[str] | None,
    unit: Any,
    adjacency: Any,
    delta: float,
    tell: Callable[[float], None] | None = None,
) -> Attacked | None:
    from consenso.audit.attack import audit, list_targets
    from consenso.audit.table import Attacked
    from consenso.privacy.observers import parse
    from consenso.testing.brackets import bracket

    wanted = None
    if observer:
        # A server is no observer of a run without one; a peer is one whoever it is.
        there = {each.key for each in plan.observers()}
        wanted = [each for each in map(parse, observer) if each.key in there or each.insiders]
        if not wanted:
            return None
    chosen = {"observers": wanted, "unit": unit, "adjacency": adjacency, "delta": delta}
    known = bracket(plan, list_targets(plan, **chosen))
    if plan.rounds == 1:
        effort = replace(effort, slow_trials=None)  # one round is quick, also if it cannot be taken with others
    found = audit(plan, effort, **chosen, known=known, tell=tell)
    return Attacked(plan=plan, findings=found)
