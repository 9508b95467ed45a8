"""What a benchmark reports, and how it takes times: calls take turns, and the best of each counts."""

from __future__ import annotations

import resource
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Figure:
    """A measured number with the limit that it is held to, if there is one."""

    name: str
    value: float
    unit: str = "ratio"
    limit: float | None = None
    at_most: bool = True
    note: str = ""

    @property
    def kept(self) -> bool:
        """Whether the limit is kept."""
        if self.limit is None:
            return True
        return self.value <= self.limit if self.at_most else self.value >= self.limit


def seconds(call: Callable[[], Any]) -> float:
    """How long a call takes."""
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def processor_seconds(call: Callable[[], Any]) -> float:
    """How much processor time a call takes, of all threads: what a busy machine hardly changes."""
    start = time.process_time()
    call()
    return time.process_time() - start


def best(
    *calls: Callable[[], Any], repeats: int = 7, measure: Callable[[Callable[[], Any]], float] = seconds
) -> list[float]:
    """The shortest time of each call, in seconds; one call each, which may compile, is not counted."""
    times = [[measure(call) for call in calls] for _ in range(repeats + 1)]
    return [min(column) for column in zip(*times[1:], strict=True)]


def program_seconds(*arguments: str) -> float:
    """How much processor time a fresh interpreter takes with these arguments, and the processes that it starts."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (after.ru_utime - before.ru_utime) + (after.ru_stime - before.ru_stime)
