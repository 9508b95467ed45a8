"""Where rows are held while a command runs: in its own process, or on a Dask cluster."""

from __future__ import annotations

import contextlib
import enum
from collections.abc import Iterator
from typing import Annotated, Any

import typer


class Engine(enum.StrEnum):
    """Where rows are held."""

    process = "process"
    dask = "dask"


EngineOption = Annotated[Engine, typer.Option(help="Where the rows are: in this process, or on a Dask cluster.")]
SchedulerOption = Annotated[
    str | None, typer.Option(help="Address of the Dask scheduler; without it, two processes of this machine.")
]


@contextlib.contextmanager
def cluster(engine: Engine, scheduler: str | None) -> Iterator[Any]:
    """The client of a cluster, or None where rows are in this process."""
    from consenso.errors import InputError

    if engine is Engine.process:
        if scheduler is not None:
            raise InputError("--scheduler: only --engine dask has one; add it, or leave the address out.")
        yield None
        return
    from consenso.shards.cluster import connect

    with connect(scheduler) as client:
        yield client
