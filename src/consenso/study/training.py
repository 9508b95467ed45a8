"""Training a study into a folder: planned and read before anything is spent, stopped and resumed without loss."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from consenso.arrays import Array
from consenso.engine.ledger_charge import LedgerCharge
from consenso.engine.run import Result, run
from consenso.engine.trace import Trace
from consenso.errors import ConsensoError, InputError
from consenso.models import Model, save_model
from consenso.planning.plan import Plan
from consenso.privacy.card import Card
from consenso.privacy.ledger import Ledger
from consenso.schedules import RandomStopping
from consenso.shards import Shards
from consenso.shards.cluster import ASSUMPTION
from consenso.study.folder import CARD, METRICS, TRACE, RunFolder
from consenso.study.metrics import compute_metrics
from consenso.study.rounds import describe_rounds, show_rounds
from consenso.study.status import StatusFile
from consenso.study.study import Study

if TYPE_CHECKING:
    from consenso.estimators.uncertainty import Estimate

#: A run is saved this often at most, so that a large state does not slow it down.
CHECKPOINTS = 50
#: Longer runs keep no trace: each round would have to stop to be looked at.
LONGEST_TRACE = 5000


@dataclass(frozen=True, kw_only=True)
class Trained:
    """What training leaves. Everything here may be shown to the observer that the study is for."""

    folder: Path
    model: Model
    card: Card
    rounds: dict[str, Any]  # see `consenso.study.rounds`
    metrics: dict[str, Any] | None
    parameters: Array  # the model as the engine has it, (dim,)


def train(
    study: Study,
    out: Path,
    *,
    resume: bool = False,
    progress: Callable[[int, int], None] | None = None,
    stop: Callable[[], bool] | None = None,
    client: Any = None,
    plant: Callable[[Shards], Shards] | None = None,
    told: Mapping[str, str] | None = None,
    watch: Callable[[int], None] | None = None,
) -> Trained:
    """Train a study in this process and write its folder. client: of a Dask cluster whose workers hold the table.

    plant: exchanges records before anything is charged, for an audit; told: what the card says of that. watch: told
    the rows of every batch that is added up, where rows are not in memory.

    Everything that can be wrong is found before the ledger is charged. `stop` is asked after each checkpoint; when it
    says yes, KeyboardInterrupt is raised and `resume=True` goes on from there. `progress` is not called where the
    number of rounds is a secret.
    """
    plan = study.plan()
    folder = RunFolder(path=out)
    ledger = _ledger(study)
    if resume:
        name = folder.resume(study.digest)
    elif out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise InputError(
            f"--out {out}: it exists and is not an empty folder; choose another, or go on with --resume if a run was "
            "stopped there."
        )
    shards, public = study.shards(client, watch), study.evaluation_records()
    if plant is not None:
        shards = plant(shards)
    if stop is not None and stop():
        raise KeyboardInterrupt
    if not resume:
        name = folder.begin(study)
    try:
        result, traced = _run(study, plan, shards, folder, ledger, name, progress, stop)
    except ConsensoError:
        # A budget that does not allow the run, for one: nothing began, and nothing is left behind.
        if not resume:
            folder.undo()
        raise
    said = dict(told or {}) if client is None else {"engine": ASSUMPTION, **(told or {})}
    trained = write_run(study, folder, result, public, traced=traced, said=said)
    folder.discard()
    return trained


def _run(
    study: Study,
    plan: Plan,
    shards: Shards,
    folder: RunFolder,
    ledger: Ledger | None,
    name: str,
    progress: Callable[[int, int], None] | None,
    stop: Callable[[], bool] | None,
) -> tuple[Result, bool]:
    charge = None if ledger is None else _charge(ledger, folder, name, study.digest)
    every = study.output.checkpoint or max(1, math.ceil(plan.rounds / CHECKPOINTS))

    traced = study.output.trace and plan.rounds <= LONGEST_TRACE and is_covered(study, plan)
    traced = traced and not isinstance(plan.schedule, RandomStopping)  # a trace is as long as the run
    history, status = Trace(), StatusFile(folder=folder, study=study, plan=plan)

    def after(done: int, planned: int) -> None:
        # Whoever watches a run learns its last round; a number that is a secret is told to nobody on the way, either.
        if show_rounds(plan, done) is not None:
            status.tell(done, planned, history.columns.get("model movement", []) if traced else [])
            if progress is not None:
                progress(done, planned)
        # At a checkpoint nothing is lost, whatever noise is drawn.
        if stop is not None and done % every == 0 and done < planned and stop():
            raise KeyboardInterrupt

    result = run(
        plan,
        shards,
        trace=traced,
        checkpoint=folder.checkpoint,
        every=every,
        progress=after,
        charge=charge,
        history=history,
    )
    shown = show_rounds(plan, result.rounds) or plan.rounds
    status.tell(shown, shown, history.columns.get("model movement", []) if traced else [], last=True)
    return result, traced


def is_covered(study: Study, plan: Plan) -> bool:
    """Whether the target's guarantee also holds against whoever sees all rounds, so that a trace may be shown."""
    delta = study.privacy.delta
    if study.privacy.exact:
        return True
    stated = plan.guarantee(study.observer, delta).epsilon(delta)
    watching = [who for who in plan.observers() if who.reads_messages]
    return all(plan.guarantee(who, delta).epsilon(delta) <= stated * (1 + 1e-9) for who in watching)


def model_of(study: Study, result: Result, card: Card) -> Model:
    """The model of a result, with everything that is needed to use it."""
    model = model_with(study, result.coefficients, card)
    found = _estimate(study, result)
    if found is None:
        return model
    scale = np.ones(len(found.coefficients))
    if model.intercept is not None:
        scale[-1] = study.constant
    return replace(model, estimates=scale * found.coefficients, standard_errors=scale * found.standard_errors)


def _estimate(study: Study, result: Result) -> Estimate | None:
    """What the rounds tell of the model's uncertainty, where their guarantee is the study's and formulas hold."""
    from consenso.estimators.uncertainty import estimate  # with scikit-learn, which is slow to import

    problem = result.plan.problem
    if result.evidence is None or problem.is_weighted or not is_covered(study, result.plan):
        return None
    try:
        return estimate(problem.loss, problem.records, study.constant, result.evidence)
    except InputError:
        return None


def model_with(study: Study, coefficients: Array, card: Card | None) -> Model:
    """The model with coefficients (features, outputs) of the study's problem, the constant feature's among them."""
    intercept = None
    if study.constant is not None:
        # The intercept is what the constant feature adds to a score.
        coefficients, intercept = coefficients[:-1], study.constant * coefficients[-1]
    return Model(
        loss=study.model.loss,
        coefficients=coefficients,
        intercept=intercept,
        features=study.data.plain_features,
        classes=study.data.classes,
        row_bound=study.data.bound,
        schema=study.data.schema,
        card=card,
        study=study.digest,
    )


def write_run(
    study: Study,
    folder: RunFolder,
    result: Result,
    public: Any,
    *,
    traced: bool,
    said: Mapping[str, str] | None = None,
) -> Trained:
    """Write what may be shown of a run that has ended, wherever it ran. The model comes last.

    A checkpoint stays: whoever ran it knows when nobody needs it any more.

    public: the test records that the study declares public, if any. traced: whether the result's trace is of the run.
    said: what the card says of the data beside the study's facts, such as where the rows were.
    """
    card = result.card(study.privacy.delta)
    if said:
        card = replace(card, data={**card.data, **said})
    model = model_of(study, result, card)
    metrics = None if public is None else compute_metrics(model, public)
    folder.write_study(study)
    folder.write_json(TRACE, _trace(result, traced=traced))
    if metrics is not None:
        folder.write_json(METRICS, metrics)
    card.save(folder.path / CARD)
    save_model(model, folder.path)
    told = describe_rounds(result.plan, result.rounds)
    return Trained(folder=folder.path, model=model, card=card, rounds=told, metrics=metrics, parameters=result.model)


def _trace(result: Result, *, traced: bool) -> dict[str, Any]:
    """What may be shown of the rounds: public figures of the plan, and columns that a guarantee covers."""
    history = result.trace
    columns = {name: values for name, values in history.columns.items() if history.audience[name] == "hub"}
    kept = len(next(iter(columns.values()), []))
    return {
        "format": 1,
        **describe_rounds(result.plan, result.rounds),
        "first round": result.rounds - kept if traced else 0,
        "noise": {name: float(scale) for name, scale in result.plan.facts.noise.items()},
        "columns": columns if traced else {},
        "traced": traced,
    }


def _ledger(study: Study) -> Ledger | None:
    name = study.privacy.ledger
    return None if name is None else Ledger.open(study.folder / name)


def _charge(ledger: Ledger, folder: RunFolder, name: str, digest: str) -> LedgerCharge:
    """The charge of a run."""
    state = next((run.state for run in ledger.runs() if run.run_id == name), None)
    if state == "released":  # it was stopped before anything was released, and starts anew
        name = folder.restart(digest)
    return LedgerCharge(ledger=ledger, run_id=name)
