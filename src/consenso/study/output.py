"""The [output] section: where a run is written and what it keeps of its rounds."""

from __future__ import annotations

from dataclasses import dataclass

from consenso.study.keys import Keys


@dataclass(frozen=True, kw_only=True)
class OutputSection:
    """folder: of the run, beside the study unless it is absolute. trace: keep how far the public model moved.

    checkpoint: rounds between two checkpoints; by default a fiftieth of the run.
    """

    folder: str | None = None
    trace: bool = True
    checkpoint: int | None = None


def read_output(keys: Keys) -> OutputSection:
    """The section; all of it may be left out."""
    section = OutputSection(
        folder=keys.text("folder"),
        trace=keys.flag("trace", True),
        checkpoint=keys.whole("checkpoint", least=1, what="the number of rounds between checkpoints"),
    )
    keys.finish()
    return section
