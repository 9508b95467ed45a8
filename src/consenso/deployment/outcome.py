"""What a deployed run leaves in its folder: the model, the card, and a record of how it went."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from consenso.arrays import Array
from consenso.engine.run import Result
from consenso.engine.trace import Trace
from consenso.errors import InputError
from consenso.study import Study
from consenso.study.folder import CARD, CHECKPOINT, METRICS, MODEL, STUDY, TRACE, RunFolder
from consenso.study.rounds import show_rounds
from consenso.study.study import SCHEMA
from consenso.study.training import write_run
from consenso.version import __version__

RECORD = "run.json"
HANDED = "handed.bin"  # the model as the parties get it
SAMPLED = (
    "A party that did not answer in time counted as one that was not sampled: it added zero, and sums were divided by "
    "what the plan says. The guarantee is that of the card, no better: the schedule's draw protects a party, not its "
    "silence, and every round is charged as planned."
)
DROPPED = (
    "Parties that did not answer in time dropped out of the secure sum of their round, at most {dropped} of them in "
    "one, and their noise shares are missing there. The card lets {planned} parties, counted together, drop out or "
    "work with the server: its guarantee holds if no more than {left} of the others work with the server."
)
COMPLETE = "Every party that a round asked answered in it; the guarantee is that of the card."


def prepare(out: Path, *, again: str | None = None) -> RunFolder:
    """The folder of a run, new or gone on with; a complete one is refused unless it is that of the run `again`."""
    folder = RunFolder(path=out)
    if folder.complete and (again is None or _run_in(out) != again):
        raise InputError(f"--out {out}: a run is complete there; name another folder.")
    known = {STUDY, SCHEMA, CARD, MODEL, TRACE, METRICS, RECORD, HANDED, CHECKPOINT}
    if out.exists() and (not out.is_dir() or any(item.name not in known for item in out.iterdir())):
        raise InputError(f"--out {out}: it holds something else than a run; name another folder.")
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"--out {out}: cannot be written ({error.strerror}); choose another place.") from None
    return folder


def keep_model(folder: RunFolder, model: bytes) -> None:
    """Keep the model as the parties get it, for those who come after the end."""
    draft = folder.path / f"{HANDED}.new"
    draft.write_bytes(model)
    draft.replace(folder.path / HANDED)


def read_kept_model(folder: RunFolder) -> tuple[bytes, int | None]:
    """The model of a run that has ended, as the parties get it, and the number of its rounds, None for a secret one."""
    try:
        rounds = json.loads((folder.path / RECORD).read_text(encoding="utf-8"))["rounds"]
        return (folder.path / HANDED).read_bytes(), None if rounds is None else int(rounds)
    except (OSError, ValueError, KeyError, TypeError):
        raise InputError(f"--out {folder.path}: a run is complete there; name another folder.") from None


def _run_in(out: Path) -> str | None:
    try:
        return str(json.loads((out / RECORD).read_text(encoding="utf-8"))["run"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def write(
    study: Study, folder: RunFolder, model: Array, *, rounds: int, run: str, missing: Mapping[str, list[int]]
) -> Path:
    """Write what may be shown of a run that has ended."""
    result = Result(plan=study.plan(), model=model, rounds=rounds, entries=(), trace=Trace())
    folder.write_json(RECORD, record_of(study, rounds=rounds, run=run, missing=missing))
    return write_run(study, folder, result, study.evaluation_records(), traced=False).folder


def record_of(study: Study, *, rounds: int, run: str, missing: Mapping[str, list[int]]) -> dict[str, Any]:
    """How a run went, and what that means for the guarantee."""
    return {
        "format": 1,
        "run": run,
        "study": study.digest,
        "version": __version__,
        "parties": list(study.parties),
        "rounds": show_rounds(study.plan(), rounds),
        "missing": {name: list(which) for name, which in missing.items()},
        "guarantee": _say_guarantee(study, missing),
    }


def _say_guarantee(study: Study, missing: Mapping[str, list[int]]) -> str:
    """What silence means for the guarantee. In a secure sum a party that is away adds no noise, sampled or not."""
    plan = study.plan()
    if not missing:
        return COMPLETE
    if not plan.mode.has_secure_sum:
        return SAMPLED
    dropped = max(Counter(round_ for rounds in missing.values() for round_ in rounds).values())
    return DROPPED.format(dropped=dropped, planned=plan.colluders, left=plan.colluders - dropped)
