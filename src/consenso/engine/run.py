"""Running a plan on data, in this process."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from consenso.algorithms.evidence import Evidence
from consenso.algorithms.shape import Diagnoses, Finds, GivesEvidence, PeerAlgorithm
from consenso.arrays import Array
from consenso.engine.checkpoint import Checkpoint, continuation_of
from consenso.engine.in_process import InProcessRun
from consenso.engine.ledger_charge import LedgerCharge, charge_run
from consenso.engine.trace import Trace
from consenso.errors import InputError, PrivacyError
from consenso.planning.plan import Plan
from consenso.privacy.card import Card
from consenso.privacy.noise import NoNoise
from consenso.privacy.releaser import ReleaseRecord
from consenso.shards import Shards
from consenso.shards.stored import require_adding_up


@dataclass(frozen=True, kw_only=True)
class Result:
    """What a run leaves: the model, what was spent, and what was asked to be traced."""

    plan: Plan
    model: Array  # (dim,)
    rounds: int
    entries: Sequence[ReleaseRecord]
    trace: Trace
    findings: Mapping[str, float] = field(default_factory=dict)  # what the algorithm found out from releases
    evidence: Evidence | None = None  # what standard errors are made of

    def card(self, delta: float) -> Card:
        """The privacy card of the run: that of its plan, which charges the most that the run could spend."""
        return self.plan.card(delta)

    @property
    def coefficients(self) -> Array:
        """The model as (features, outputs)."""
        return self.model.reshape(self.plan.problem.features, self.plan.problem.outputs)


def run(
    plan: Plan,
    shards: Shards,
    *,
    trace: bool = False,
    diagnostics: bool = False,
    checkpoint: Path | None = None,
    every: int = 1,
    progress: Callable[[int, int], None] | None = None,
    one_by_one: bool = False,
    charge: LedgerCharge | None = None,
    history: Trace | None = None,
    start: Array | None = None,
) -> Result:
    """Run a plan.

    charge: the ledger that the run is charged to, before it releases anything; a budget that does not allow the plan is
    an error and nothing is spent. Of a run with private noise only the last checkpoint goes on, and one copy of it.

    trace: keep what the hub sees of each round (how far the model moved). diagnostics: also keep the exact objective
    and the distance between parties, which are private. checkpoint: a folder to resume from and to save to, every
    `every` rounds. start: a public or released model (dim,) that the hub starts from and shrinks towards, for
    algorithms whose hub has such a place. progress: called with the rounds done and the rounds planned, after each
    round or, where many are run at once, after the last of them. history: what is traced is added here, so that
    `progress` can look at it; with a checkpoint, once the round is saved.
    """
    _check(plan, shards)
    stride = 1 if trace or diagnostics else every if checkpoint is not None else None
    at = InProcessRun(plan, shards, one_by_one=one_by_one, stride=stride)
    if start is not None:
        at.hub = _start_from(at.hub, start)
    saved = Checkpoint(checkpoint, plan, shards.cohort(), charge) if checkpoint is not None else None
    if saved is not None:
        saved.load(at)
    history, before = Trace() if history is None else history, at.model
    rounds = at.rounds()
    unsaved, fresh = Trace(), saved is None or saved.fresh
    with charge_run(at, charge, open_=_opener(at, charge, saved), fresh=fresh):
        while True:
            if saved is not None and at.round < plan.rounds:
                saved.begin(at.round)
            if next(rounds, None) is None:
                break
            if trace or diagnostics:
                now = at.model
                unsaved.add("model movement", float(np.linalg.norm(now - before)), "hub")
                before = now
            if diagnostics:
                _diagnose(at, shards, unsaved)
            if saved is not None and at.round % every == 0:
                saved.save(at)
            if saved is None or at.round % every == 0:
                unsaved.move_to(history)
            if progress is not None:
                progress(at.round, plan.rounds)
        if saved is not None:
            saved.save(at)
        unsaved.move_to(history)
    facts, algorithm = plan.facts.at(at.round), plan.algorithm
    return Result(
        plan=plan,
        model=at.model,
        rounds=at.round,
        entries=at.entries,
        trace=history,
        findings=algorithm.findings(facts, at.hub) if isinstance(algorithm, Finds) else {},
        evidence=algorithm.evidence(facts, at.hub) if isinstance(algorithm, GivesEvidence) else None,
    )


def _start_from(hub: Any, model: Array) -> Any:
    if not (hasattr(hub, "x") and hasattr(hub, "origin")) or hub.x.shape != model.shape or not np.isfinite(model).all():
        raise InputError(
            f"run(start=... of shape {model.shape}): a finite model of the plan's dimension is needed, and an "
            "algorithm whose hub starts from a model."
        )
    return replace(hub, x=model.copy(), origin=model.copy())


def _opener(at: InProcessRun, charge: LedgerCharge | None, saved: Checkpoint | None) -> Callable[[], None]:
    """What makes this process the one continuation of the run."""
    if saved is not None:
        return lambda: saved.open(at)
    if charge is None:
        return lambda: None
    # Without a checkpoint nothing is kept: whoever comes with the same name again is refused.
    live = continuation_of(at.plan, charge, charge.run_id, None)
    return lambda: live.open(lambda held: None)


def objective(plan: Plan, shards: Shards, model: Array) -> float:
    """The exact objective at a model: private, for diagnostics and tests."""
    return float(shards.cohort().value(model).mean() + plan.problem.regularizer.value(model))


def _diagnose(at: InProcessRun, shards: Shards, history: Trace) -> None:
    history.add("objective", objective(at.plan, shards, at.model), "private")
    facts, algorithm = at.plan.facts.at(at.round), at.plan.algorithm
    if isinstance(algorithm, Diagnoses):
        for name, value in algorithm.diagnose(facts, at.hub, at.state, shards.cohort()).items():
            history.add(name, value, "private")
    if isinstance(algorithm, PeerAlgorithm):
        models = algorithm.models(facts, at.state)
        history.add("consensus violation", float(np.linalg.norm(models - models.mean(axis=0))), "private")


def _check(plan: Plan, shards: Shards) -> None:
    """Rows are scaled, and targets clipped, to the bounds of the problem that the shards were built for."""
    if shards.problem != plan.problem:
        raise InputError("run(shards=...): the shards belong to another problem; build them for the plan's problem.")
    if not plan.sampler_chosen and not all(isinstance(n, NoNoise) for n in plan.noise.values()):
        raise PrivacyError(
            "run(plan=...): no source of noise was chosen; plan with sampler=Safe() for noise that protects, or with "
            "sampler=Seeded(seed) for a simulation."
        )
    require_adding_up(plan.algorithm, shards)
    if len(shards.parties) != plan.parties:
        raise InputError(
            f"run(shards=...): rows of {len(shards.parties)} parties are here and the plan has {plan.parties}; "
            "all of them run in one process."
        )
