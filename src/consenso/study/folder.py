"""The folder of a run: what is kept, what is public in it, and what must not outlive the run."""

from __future__ import annotations

import json
import math
import os
import shutil
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from consenso.errors import InputError
from consenso.study.study import SCHEMA, Study

STUDY, CARD, MODEL, TRACE, METRICS = "study.toml", "card.json", "model.json", "trace.json", "metrics.json"
CHECKPOINT, NOTE, STATUS = "checkpoint", "run.json", "status.json"


@dataclass(frozen=True, kw_only=True)
class RunFolder:
    """Paths of a run. `checkpoint` is private and exists only while the run is not complete."""

    path: Path

    @property
    def checkpoint(self) -> Path:
        """Where a run that was stopped goes on from."""
        return self.path / CHECKPOINT

    @property
    def complete(self) -> bool:
        """Whether a model and its card are there and nothing is left to do."""
        return (self.path / MODEL).exists() and (self.path / CARD).exists() and not self.checkpoint.exists()

    def begin(self, study: Study) -> str:
        """Make the folder of a new run and note which run it is; its name, for a ledger."""
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            if any(self.path.iterdir()):
                raise InputError(
                    f"--out {self.path}: the folder is not empty; choose another, or go on with --resume if a run was "
                    "stopped there."
                )
            # Checkpoints hold exact states of the parties: nobody else may even list them.
            self.checkpoint.mkdir(mode=0o700)
            self.write_study(study)
            return self.note(study.digest)
        except OSError as error:
            raise InputError(
                f"--out {self.path}: cannot be written ({error.strerror}); choose another place."
            ) from None

    def write_study(self, study: Study) -> None:
        """Write the study and its schema, as they are read from this folder."""
        (self.path / STUDY).write_text(study.move(self.path).to_toml(), encoding="utf-8")
        if study.data.schema is not None:
            (self.path / SCHEMA).write_text(study.data.schema.to_toml(), encoding="utf-8")

    def note(self, digest: str) -> str:
        """Name the run anew, in the checkpoint's folder."""
        name = f"{digest[:12]}-{uuid.uuid4().hex[:12]}"
        handle = os.open(self.checkpoint / NOTE, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            json.dump({"run": name, "study": digest}, file)
        return name

    def resume(self, digest: str) -> str:
        """The name of the run that was stopped here; InputError where there is none, or one of another study."""
        if self.complete:
            raise InputError(f"--resume {self.path}: that run is complete; look at it with consenso card.")
        try:
            noted = json.loads((self.checkpoint / NOTE).read_text(encoding="utf-8"))
            name, study = str(noted["run"]), str(noted["study"])
        except (OSError, ValueError, KeyError, TypeError):
            raise InputError(
                f"--resume {self.path}: no run was stopped in this folder; start one without --resume."
            ) from None
        if study != digest:
            raise InputError(
                f"--resume {self.path}: the run that was stopped here belongs to another study; resume with the study "
                "that it was begun with, or start in another folder."
            )
        return name

    def restart(self, digest: str) -> str:
        """Forget a run of which nothing was released, and name a new one."""
        shutil.rmtree(self.checkpoint)
        self.checkpoint.mkdir(mode=0o700)
        return self.note(digest)

    def undo(self) -> None:
        """Remove what `begin` made, unless a round was begun."""
        if {path.name for path in self.checkpoint.iterdir()} != {NOTE}:
            return
        self.discard()
        for name in (STUDY, SCHEMA):
            (self.path / name).unlink(missing_ok=True)
        self.path.rmdir()

    def write_json(self, name: str, content: dict[str, Any]) -> None:
        """Write a public document."""
        text = json.dumps(content, indent=2, sort_keys=True, allow_nan=False, default=_plain)
        (self.path / name).write_text(text + "\n", encoding="utf-8")

    def discard(self) -> None:
        """Remove the checkpoint: the run is complete."""
        shutil.rmtree(self.checkpoint, ignore_errors=True)


def _plain(value: Any) -> Any:
    return value.item() if hasattr(value, "item") else str(value)


def finite(value: float) -> float | str:
    """A number as JSON has it: one that is not finite is a text, as on cards."""
    return float(value) if math.isfinite(value) else str(float(value))
