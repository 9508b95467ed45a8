"""Where the tests find real data: the folder named by CONSENSO_DATA, with the files listed in docs/data.md.

Property tests draw the same examples in every run, so that a failure is a change: few of them, and three times as many
in `make test-all`, which sets HYPOTHESIS_PROFILE=many. HYPOTHESIS_PROFILE=explore draws new ones.
"""

from __future__ import annotations

import gc
import os
import shutil
import tempfile
import uuid
import zlib
from collections.abc import Iterator
from functools import wraps
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from numba.core.compiler_lock import global_compiler_lock
from numba.core.dispatcher import Dispatcher
from tests.selection import cover, label

# A test says how many examples it takes only where one of them takes long. No deadline: a machine may be busy.
FEW = 20
settings.register_profile("few", derandomize=True, database=None, deadline=None, max_examples=FEW)
settings.register_profile("many", settings.get_profile("few"), max_examples=3 * FEW)
settings.register_profile("explore", print_blob=True, deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "few"))

ROOM = 4 << 30  # bytes; the files of a whole run are a few hundred million


def keep_files_in_memory() -> None:
    """Ledgers and the disks of parties wait at every commit until the disk has it, often twenty milliseconds.

    Nobody reads the files of a test after it. What commits must survive is tested by killing processes, which lose
    nothing that was written, wherever it was written to.
    """
    memory = Path("/dev/shm")
    if "TMPDIR" not in os.environ and os.access(memory, os.W_OK) and shutil.disk_usage(memory).free > ROOM:
        os.environ["TMPDIR"] = tempfile.tempdir = str(memory)


def share_what_is_compiled() -> None:
    """Of the workers of one run one compiles a kernel, and the others wait until they can read it from disk.

    They start together, and each would compile the same kernels, a minute of work, before the first has kept them. Two
    that need two kernels compile both at once: every kernel, and every kernel that another one calls, has a byte of a
    file, which is locked while it is compiled. No two wait for each other, since no kernel is called by one it calls.
    """
    try:
        import fcntl
    except ImportError:  # not on Windows
        return
    path = Path(__file__).parent / "__pycache__" / "kernels.lock"
    path.parent.mkdir(exist_ok=True)
    locks = path.open("w")  # open to the end: a process that closes a file gives up its locks
    compile_one, held = Dispatcher.compile, set[int]()

    @wraps(compile_one)
    def compile_in_turn(self: Any, signature: Any) -> Any:
        place = zlib.crc32(f"{self.py_func.__module__}.{self.py_func.__qualname__}".encode())
        with global_compiler_lock:  # one thread at a time, as Numba has it anyway: these locks belong to processes
            if place in held:  # with another signature
                return compile_one(self, signature)
            fcntl.lockf(locks, fcntl.LOCK_EX, 1, place)
            held.add(place)
            try:
                return compile_one(self, signature)
            finally:
                held.remove(place)
                fcntl.lockf(locks, fcntl.LOCK_UN, 1, place)

    Dispatcher.compile = compile_in_turn


def pytest_configure(config: pytest.Config) -> None:
    """Each worker begins to collect elsewhere, and finds compiled what others have read: half of the work is that."""
    here = Path(__file__).parent
    worker = os.environ.get("PYTEST_XDIST_WORKER")
    if worker and [config.invocation_params.dir / each for each in config.args] == [here]:
        modules = sorted(map(str, here.rglob("test_*.py")))
        start = int(worker.removeprefix("gw")) * len(modules) // int(os.environ["PYTEST_XDIST_WORKER_COUNT"])
        config.args = [*modules[start:], *modules[:start]]


keep_files_in_memory()
if "PYTEST_XDIST_WORKER" in os.environ:
    share_what_is_compiled()


@pytest.hookimpl(wrapper=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> Iterator[None]:
    items.sort(key=lambda item: item.path)  # the same for all workers
    leave_out_of_sweeps(items)
    yield  # what is not asked for is taken out
    items[:] = order(items)


def leave_out_of_sweeps(items: list[pytest.Item]) -> None:
    """Of a test that is marked `sweep`, what is not needed to cover its parameters is slow.

    sweep(by): what is covered, a function of the parameters, where these are made from others.
    """
    sweeps: dict[Any, list[Any]] = {}
    for item in items:
        if item.get_closest_marker("sweep"):
            sweeps.setdefault((item.path, item.originalname), []).append(item)
    for sweep in sweeps.values():
        point_of = sweep[0].get_closest_marker("sweep").kwargs.get("by", dict)
        points = [point_of(**item.callspec.params) for item in sweep]
        covering = cover([{name: label(value) for name, value in point.items()} for point in points])
        for place, item in enumerate(sweep):
            if place not in covering:
                item.add_marker("slow")


def order(items: list[pytest.Item]) -> list[pytest.Item]:
    """Every worker begins with its share of the modules that take long, and those come in one piece.

    Workers get equal parts of the list, and who is done takes over the second half of what another has left. So what is
    taken over, and what a run ends with, are short tests, and a fixture that took long is not made again elsewhere.
    """
    workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    modules: dict[Path, list[pytest.Item]] = {item.path: [] for item in items if takes_long(item)}
    rest, ordered = [item for item in items if item.path not in modules], list[pytest.Item]()
    for item in items:
        if item.path in modules:
            modules[item.path].append(item)
    first_waiting = sorted(modules.values(), key=lambda module: not any(map(waits, module)))
    for worker in range(workers):
        first = [item for module in first_waiting[worker::workers] for item in module]
        part = (len(items) - len(ordered)) // (workers - worker)
        many = max(0, part - len(first)) if worker < workers - 1 else len(rest)
        ordered += [*first, *rest[:many]]
        del rest[:many]
    return ordered


def waits(item: pytest.Item) -> bool:
    return item.get_closest_marker("waits") is not None


def takes_long(item: pytest.Item) -> bool:
    slow_itself = item.get_closest_marker("slow") and not item.get_closest_marker("sweep")
    return bool(slow_itself) or waits(item)


def pytest_collection() -> None:
    """What is imported and collected stays to the end: looking for garbage in it is a sixth of the work."""
    gc.disable()


def pytest_collection_finish() -> None:
    """Later collections of garbage need not walk through it either."""
    gc.collect()
    gc.freeze()
    gc.enable()


@pytest.fixture(autouse=True)
def state_folder(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Tokens of runs without a ledger are kept for one test, not in the home of whoever runs the tests."""
    folder = tmp_path_factory.getbasetemp() / f"state-{uuid.uuid4().hex}"
    monkeypatch.setenv("CONSENSO_STATE", str(folder))
    return folder


@pytest.fixture(scope="session")
def data_dir() -> Path:
    folder = os.environ.get("CONSENSO_DATA")
    if not folder:
        pytest.skip("CONSENSO_DATA is not set: it names the folder with the real data sets")
    return Path(folder)
