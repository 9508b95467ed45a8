"""Running cells: two processes with one thread each, results kept on disk so that an interrupted run resumes."""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from consenso.errors import InputError
from experiments import checkpoints
from experiments.definition import Cell
from experiments.results import Results, plain
from experiments.source import version

WORKERS = 2
SHIPPED = Path(__file__).parent / "shipped"  # results that come with the repository, by paper
THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")

Step = Callable[[Cell, bool], None]  # called for each cell that is done, with whether it was kept from before


def key(cell: Cell) -> str:
    """What a result is filed under: what is asked for, and the code that answers."""
    asked = f"{cell.work.__module__}.{cell.work.__qualname__}({cell.settings!r}) {version(cell.work.__module__)}"
    return hashlib.sha256(asked.encode()).hexdigest()[:32]


def kept(cell: Cell, folder: Path) -> Mapping[str, Any] | None:
    """The result of an earlier run, if this very code made it."""
    answer = _read(cell, folder)
    values: Mapping[str, Any] | None = answer and answer["values"]
    return values


def _read(cell: Cell, folder: Path) -> Mapping[str, Any] | None:
    """What was kept in a folder, or came with the repository for the paper that the folder is named by."""
    name = f"{key(cell)}.json"
    for path in (folder / name, SHIPPED / folder.name / name):
        if path.is_file():
            answer: Mapping[str, Any] = json.loads(path.read_text(encoding="utf-8"))
            return answer
    return None


def run_cells(
    cells: Sequence[Cell], folder: Path, *, workers: int = WORKERS, step: Step = lambda cell, kept: None
) -> Results:
    """The results of all cells, from `folder` where they are kept. With no workers they run in this process."""
    folder.mkdir(parents=True, exist_ok=True)
    found: dict[Cell, Mapping[str, Any]] = {}
    missing: list[Cell] = []
    for cell in dict.fromkeys(cells):
        values = kept(cell, folder)
        if values is None:
            missing.append(cell)
        else:
            found[cell] = values
            step(cell, True)
    # The longest first, so that no worker is left with a long cell at the end.
    missing.sort(key=lambda cell: -cell.seconds)
    if workers and missing:
        answers = _in_processes(missing, folder, workers)
    else:
        answers = ((cell, perform(cell, folder)) for cell in missing)
    for cell, answer in answers:
        _keep(cell, answer, folder)
        found[cell] = answer["values"]
        step(cell, False)
    return Results({cell: found[cell] for cell in dict.fromkeys(cells)})


def perform(cell: Cell, folder: Path) -> dict[str, Any]:
    """What a worker does; the values pass through JSON, so that fresh and kept results are alike."""
    began = time.process_time()  # a busy machine does not count
    with checkpoints.kept_in(folder / f"{key(cell)}.npz") as checkpoint:
        values = json.loads(json.dumps(plain(cell.work(**dict(cell.settings)))))
    return {"values": values, "seconds": checkpoint.seconds + time.process_time() - began}


def seconds_of_work(cells: Sequence[Cell], folder: Path) -> float:
    """What the kept results took to compute, on one core each."""
    answers = [_read(cell, folder) for cell in dict.fromkeys(cells)]
    return float(sum(answer["seconds"] for answer in answers if answer is not None))


def _in_processes(cells: Sequence[Cell], folder: Path, workers: int) -> Iterator[tuple[Cell, dict[str, Any]]]:
    others = set(multiprocessing.active_children())
    with _one_thread_each():
        context = multiprocessing.get_context("spawn")
        pool = ProcessPoolExecutor(workers, mp_context=context, initializer=_begin_worker)
        try:
            waiting = {pool.submit(perform, cell, folder): cell for cell in cells}
            while waiting:
                done, _ = wait(waiting, return_when=FIRST_COMPLETED)
                for future in done:
                    cell = waiting.pop(future)
                    yield cell, _answer(cell, future)
        except BaseException:  # interrupted, or a cell failed: what is under way is given up
            for worker in set(multiprocessing.active_children()) - others:
                worker.terminate()
            raise
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


def _begin_worker() -> None:
    """An interruption is the parent's to handle, and a worker does not outlive its parent."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_leave_with_parent, daemon=True).start()


def _leave_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _answer(cell: Cell, future: Future[dict[str, Any]]) -> dict[str, Any]:
    try:
        return future.result()
    except BrokenProcessPool as error:
        raise InputError(
            f"A worker process ended while {cell.name} was running, often for want of memory; run again to resume."
        ) from error
    except Exception as error:
        error.add_note(f"in the cell {cell.name}")
        raise


@contextmanager
def _one_thread_each() -> Iterator[None]:
    """Spawned processes read these when they import NumPy."""
    before = {name: os.environ.get(name) for name in THREADS}
    os.environ.update(dict.fromkeys(THREADS, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def _keep(cell: Cell, answer: Mapping[str, Any], folder: Path) -> None:
    """Written whole or not at all."""
    path = folder / f"{key(cell)}.json"
    draft = path.with_suffix(f".{os.getpid()}.part")
    draft.write_text(json.dumps({"cell": cell.name, **answer}), encoding="utf-8")
    draft.replace(path)
