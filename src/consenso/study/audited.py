"""A run of a study on its own data with canaries among the records: trained, charged and written like any run.

Some records of every party give way to canaries, each of which is in one of two versions by a coin that is tossed here.
After the run the coins are guessed from the released model. Canaries are records within the public bounds, so the
guarantee of the plan holds for all other records as it does without them, and the ledger pays what any run pays. What
is proved depends on the model and on the coins, and on no other record but through the noise.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from consenso.audit.guesses import bound_ideally
from consenso.audit.one_run import Canaries, OneRun, canaries, guess_from_model
from consenso.errors import InputError
from consenso.privacy.observers import Public
from consenso.shards import Shards
from consenso.shards.stored import StoredShards
from consenso.study.folder import RunFolder
from consenso.study.study import Study
from consenso.study.training import Trained, train

AUDIT = "audit.json"
# Of the records, if nobody says how many canaries there are.
SHARE = 0.05
FEWEST = 20


@dataclass(frozen=True, kw_only=True)
class Audited:
    """A run with canaries: what it left, what is claimed of its model, and what guessing the coins proves."""

    trained: Trained
    claimed: float
    run: OneRun
    ideal: float  # what so many canaries prove where the claim is exactly true and none hides another


def audit_data(
    study: Study,
    out: Path,
    *,
    count: int | None = None,
    confidence: float = 0.95,
    progress: Callable[[int, int], None] | None = None,
) -> Audited:
    """Train a study into a folder with canaries among its records, and guess them. Everything wrong is found first."""
    plan, problem = study.plan(), study.problem()
    delta = study.privacy.delta
    if problem.unit == "person" or problem.is_weighted:
        raise InputError("audit --data: canaries are records of one row, and this study protects people; leave --data.")
    if study.privacy.exact:
        raise InputError("audit --data: a study without privacy claims nothing; give it an epsilon.")
    chosen_count = max(FEWEST, int(SHARE * problem.records)) if count is None else count
    # A study with a seed is a simulation, of which all can be drawn again; otherwise nobody can know the coins.
    rng = np.random.default_rng(study.privacy.seed)
    chosen = canaries(problem, chosen_count, seed=study.privacy.seed, constant=study.constant or 0.0)
    coins = rng.integers(2, size=len(chosen)).astype(bool)
    said = f"{len(chosen)} of {problem.records} records gave way to canaries of an audit"
    trained = train(
        study,
        out,
        progress=progress,
        plant=lambda shards: plant(shards, chosen, coins),
        told={"canaries": said},
    )
    claimed, run = guess_from_model(plan, trained.parameters, chosen, coins, delta=delta, confidence=confidence)
    event = plan.guarantee(Public(), delta).event
    ideal = bound_ideally(event, len(chosen), delta=delta, confidence=confidence)
    RunFolder(path=out).write_json(AUDIT, {"format": 1, "claimed": claimed, "ideal": ideal, **asdict(run)})
    return Audited(trained=trained, claimed=claimed, run=run, ideal=ideal)


def plant(shards: Shards, chosen: Canaries, coins: np.ndarray) -> Shards:
    """The first records of each party replaced by canaries, in the version that the coin says."""
    if isinstance(shards, StoredShards):
        raise InputError(
            "audit --data: the table stays in storage and is not changed; audit a part of it as a CSV file."
        )
    cohort = shards.cohort()
    matrix: Any = cohort._rows.matrix
    matrix = matrix.tolil(copy=True) if sparse.issparse(matrix) else np.array(matrix, dtype=np.float64)
    targets, offsets = np.array(cohort._targets), shards.offsets
    used = np.zeros(len(offsets) - 1, dtype=np.int64)
    for index, party in enumerate(chosen.parties):
        place = int(offsets[party] + used[party])
        if place >= offsets[party + 1]:
            raise InputError(
                "audit --data: canaries take the place of records, and a party has too few; ask for fewer."
            )
        rows, values = chosen.one if coins[index] else chosen.zero
        matrix[place], targets[place] = rows[index], values[index]
        used[party] += 1
    table = matrix.tocsr() if sparse.issparse(matrix) else matrix
    return Shards.build(shards.problem, table, targets, offsets, parties=shards.parties)
