"""How long an audit of each of the demo's studies takes, and one run on its own data with canaries.

Run `python -m benchmarks audit`. Processor time of the whole command with its processes, imports included: what a busy
machine changes little. On two processors the clock shows about half of it, since runs are shared.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.measure import Figure, program_seconds
from consenso.demo.studies import write_studies

EPSILON = 1.0
# A minute of two processors.
LIMIT = 120.0


def run() -> Iterator[Figure]:
    """Seconds of user and system time."""
    with tempfile.TemporaryDirectory() as folder:
        for name, path in write_studies(Path(folder), EPSILON).items():
            yield Figure(f"consenso audit, {name}", _cost(str(path)), "s", limit=LIMIT, note="of two processors")
            yield Figure(f"consenso audit --data, {name}", _cost(str(path), "--data"), "s", limit=LIMIT)


def _cost(*arguments: str) -> float:
    return program_seconds("-m", "consenso", "audit", *arguments)
