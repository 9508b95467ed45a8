"""How long an audit of each of the demo's studies takes, and one run on its own data with canaries.

Run `python -m benchmarks audit` on a machine that does nothing else: what is limited is the clock, with two processes
and all imports. The processor time of the whole command, which other work changes less, stands beside it.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.measure import Figure, program_seconds, seconds
from consenso.demo.studies import write_studies

EPSILON = 1.0
LIMIT = 60.0


def run() -> Iterator[Figure]:
    """Seconds by the clock."""
    with tempfile.TemporaryDirectory() as folder:
        for name, path in write_studies(Path(folder), EPSILON).items():
            yield _clock(f"consenso audit, {name}", str(path), "--workers", "2")
            yield _clock(f"consenso audit --data, {name}", str(path), "--data")


def _clock(what: str, *arguments: str) -> Figure:
    used: list[float] = []
    clock = seconds(lambda: used.append(program_seconds("-m", "consenso", "audit", *arguments)))
    return Figure(what, clock, "s", limit=LIMIT, note=f"{used[0]:.0f} s of two processors")
