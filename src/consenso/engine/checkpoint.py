"""Checkpoints: everything that is needed to go on, written so that a crash leaves the old one or the new one.

A checkpoint belongs to one plan on one problem and to its rows in their order; another problem, algorithm, graph,
schedule or noise, and other rows, are refused. A seeded run resumes to the identical result. A run with safe noise
cannot draw the same noise again, so rounds that were begun after the last checkpoint count as run and are not repeated:
the journal beside the checkpoint says how many there were. Only the last checkpoint of such a run, and only one copy of
it, goes on: see `consenso.engine.continuation`.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
from pathlib import Path
from typing import Any

import numpy as np

from consenso.engine.codec import decode, encode
from consenso.engine.continuation import LIVE, Continuation, Held, Tokens, UserTokens, draws_private_noise
from consenso.engine.in_process import InProcessRun
from consenso.engine.ledger_charge import LedgerCharge
from consenso.engine.release_records import ReleaseRecords
from consenso.engine.row_binding import ROWS, bind_rows, check_rows
from consenso.errors import InputError
from consenso.planning.plan import Plan
from consenso.privacy.ledger.anchors import sync_folder
from consenso.privacy.releaser import ReleaseRecord
from consenso.shards import Cohort


def fingerprint(plan: Plan) -> str:
    """Hash of everything public that determines a run."""
    problem = plan.problem
    facts = {
        "algorithm": repr(plan.algorithm),
        "loss": repr(problem.loss),
        "regularizer": repr(problem.regularizer),
        "features": problem.features,
        "sizes": hashlib.sha256(np.ascontiguousarray(problem.sizes).tobytes()).hexdigest(),
        "bounds": [problem.row_bound, problem.target_bound],
        "unit": [problem.unit, problem.adjacency, problem.weighting],
        "rounds": plan.rounds,
        "schedule": repr(plan.schedule),
        "noise": repr(sorted(plan.noise.items())),
        "sampler": [plan.sampler.name, getattr(plan.sampler, "seed", None)],
        "trust": [plan.trust, plan.shares, plan.equal_noise],
        "graph": plan.topology.digest if plan.topology else None,
    }
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()


class Checkpoint:
    """A folder with the last complete round of a run and a journal of the rounds that were begun.

    The file holds the parties' exact states. It is private, like the data, and readable by its owner only.
    """

    def __init__(self, folder: Path, plan: Plan, cohort: Cohort, charge: LedgerCharge | None = None) -> None:
        self.folder, self.plan, self.fingerprint = folder, plan, fingerprint(plan)
        self._file, self._journal, self._cohort = folder / "checkpoint.npz", folder / "journal", cohort
        self._meta: dict[str, Any] = json.loads(self._read("meta")) if self._file.exists() else {}
        self._rows: dict[str, str] | None = self._meta.get(ROWS)
        # A run without a ledger is known by a name of its own.
        self._name: str = self._meta.get("name") or secrets.token_hex(16)
        self._live = continuation_of(plan, charge, self._name, self._meta.get(LIVE))

    @property
    def fresh(self) -> bool:
        """Whether nothing was begun here before."""
        return self._live.fresh and not self._journal.exists()

    def begin(self, round_: int) -> None:
        """Note on disk, before anything leaves, that a round is begun."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with self._journal.open("a") as journal:
            journal.write(f"{round_}\n")
            journal.flush()
            os.fsync(journal.fileno())

    def open(self, run: InProcessRun) -> None:
        """Become the one continuation of the run, before the first draw; PrivacyError where another copy went on."""
        self._live.open(lambda held: self._write(run, held))

    def save(self, run: InProcessRun) -> None:
        """Write a complete round; atomic. What follows from it may be shown when the call returns."""
        self._live.store(lambda held: self._write(run, held))

    def _write(self, run: InProcessRun, held: Held) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        if self._rows is None:
            self._rows = bind_rows(self._cohort)
        meta = {
            "fingerprint": self.fingerprint,
            "name": self._name,
            LIVE: dict(held),
            ROWS: self._rows,
            "round": run.round,
            "previous": None if run.previous is None else run.previous.tolist(),
            "shares": run.shares,
            "coins": run.coins,
            "entries": [
                [e.round, e.name, np.asarray(e.scale).tolist(), e.bound, e.share, _cohort(e, self.plan)]
                for e in run.entries
            ],
        }
        parts = {"state": encode(run.state), "meta": json.dumps(meta).encode()}
        if run.hub is not None:
            parts["hub"] = encode(run.hub)
        temporary = self._file.with_suffix(".tmp")
        # States of parties are exact and private: nobody but the owner may read the file.
        with open(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as out:
            arrays = {name: np.frombuffer(blob, dtype=np.uint8) for name, blob in parts.items()}
            np.savez(out, allow_pickle=False, **arrays)
            out.flush()
            os.fsync(out.fileno())
        temporary.replace(self._file)
        sync_folder(self.folder)
        self._journal.unlink(missing_ok=True)

    def load(self, run: InProcessRun) -> None:
        """Put a run where it was saved; it stays at its start where nothing was."""
        if self._meta:
            self._load(run)
        # Rounds whose noise cannot be drawn again: what they released is charged and is not released anew.
        begun = [int(line) for line in self._journal.read_text().split()] if self._journal.exists() else []
        if begun and self.plan.sampler.private:
            run.round = max(run.round, max(begun) + 1)

    def _load(self, run: InProcessRun) -> None:
        meta = self._meta
        if meta["fingerprint"] != self.fingerprint:
            raise InputError(
                f"checkpoint {str(self._file)!r}: it belongs to another problem, algorithm, graph, noise or version; "
                "resume with the plan it was made with, or start in another folder."
            )
        if self._rows is not None:
            check_rows(self._rows, self._cohort, self.folder)
        everyone = np.arange(self.plan.parties, dtype=np.int64)
        run.entries = ReleaseRecords(
            ReleaseRecord(
                round=round_,
                name=name,
                cohort=everyone if cohort is None else np.array(cohort, dtype=np.int64),
                scale=np.array(scale) if isinstance(scale, list) else scale,
                bound=bound,
                share=share,
            )
            for round_, name, scale, bound, share, cohort in meta["entries"]
        )
        run.state = decode(type(run.state), self._read("state"))
        run.hub = None if run.hub is None else decode(type(run.hub), self._read("hub"))
        run.round, run.coins, run.shares = meta["round"], meta["coins"], meta["shares"]
        run.previous = None if meta["previous"] is None else np.array(meta["previous"], dtype=np.int64)

    def _read(self, part: str) -> bytes:
        with np.load(self._file, allow_pickle=False) as parts:
            return bytes(parts[part].tobytes())


def continuation_of(plan: Plan, charge: LedgerCharge | None, name: str, held: Held | None) -> Continuation:
    """The one continuation of a run in this process; nothing is guarded where no noise protects."""
    if not draws_private_noise(plan):
        return Continuation(None, name, held)
    tokens: Tokens = UserTokens() if charge is None else charge.ledger
    return Continuation(tokens, name if charge is None else charge.run_id, held)


def _cohort(entry: ReleaseRecord, plan: Plan) -> list[int] | None:
    """Everyone is the common case and is not written out."""
    return None if len(entry.cohort) == plan.parties else [int(party) for party in entry.cohort]
