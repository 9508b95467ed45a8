"""Threads change how long something takes, and nothing else."""

from __future__ import annotations

import multiprocessing
import threading
from concurrent.futures import ThreadPoolExecutor

import numba
import numpy as np
import pytest

from consenso.losses import Logistic, Softmax
from consenso.threads import read_ahead, run_in_threads, run_together


@pytest.mark.parametrize("workers", [1, 2, 5])
def test_every_record_is_done_once(workers, monkeypatch):
    monkeypatch.setattr(numba.config, "NUMBA_NUM_THREADS", workers)
    ranges = []
    run_in_threads(lambda first, last: ranges.append((first, last)), 1003, 1e6)
    assert len(ranges) == workers
    done = [i for first, last in sorted(ranges) for i in range(first, last)]
    assert done == list(range(1003))


def test_few_records_get_no_thread(monkeypatch):
    monkeypatch.setattr(numba.config, "NUMBA_NUM_THREADS", 8)
    ranges = []
    run_in_threads(lambda first, last: ranges.append((first, last)), 1000, 100.0)
    assert ranges == [(0, 1000)]


def test_errors_come_out_of_threads(monkeypatch):
    monkeypatch.setattr(numba.config, "NUMBA_NUM_THREADS", 2)

    def fail(first: int, last: int) -> None:
        raise ValueError(f"{first}..{last}")

    with pytest.raises(ValueError, match=r"0\.\.5"):
        run_in_threads(fail, 10, 1e6)


@pytest.mark.parametrize("loss", [Logistic(), Softmax(classes=3)], ids=repr)
def test_threads_give_the_same_bits(loss, monkeypatch):
    rng = np.random.default_rng(2)
    records = 120_001 if loss.outputs == 1 else 20_001
    points = 5 * rng.normal(size=(records, loss.outputs)).reshape((records, -1) if loss.outputs > 1 else (records,))
    targets = rng.integers(0, 3, records) if loss.outputs > 1 else rng.choice([-1.0, 1.0], records)
    steps = 10.0 ** rng.uniform(-3, 3, records)
    results = []
    for workers in (1, 3):
        monkeypatch.setattr(numba.config, "NUMBA_NUM_THREADS", workers)
        results.append(loss.prox_slope(points, steps, targets))
    np.testing.assert_array_equal(*results)
    # Several callers at once, as in a server with one thread per party.
    with ThreadPoolExecutor(4) as pool:
        for result in pool.map(lambda _: loss.prox_slope(points, steps, targets), range(4)):
            np.testing.assert_array_equal(result, results[0])


def _slopes(queue):
    points = np.linspace(-5, 5, 120_001)
    queue.put(float(Logistic().prox_slope(points, 2.0, np.ones(120_001)).sum()))


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_forked_process_can_go_on(monkeypatch):
    monkeypatch.setattr(numba.config, "NUMBA_NUM_THREADS", 2)
    points = np.linspace(-5, 5, 120_001)
    expected = Logistic().prox_slope(points, 2.0, np.ones(120_001)).sum()
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    child = context.Process(target=_slopes, args=(queue,))
    child.start()
    assert queue.get(timeout=300) == expected
    child.join(timeout=300)
    assert child.exitcode == 0


@pytest.mark.parametrize("most", [0, 1])
def test_everything_is_done_once_where_no_thread_can_start(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """As within a limit on memory that leaves no room for a stack, or for one only."""
    start, started, done = threading.Thread.start, [], []

    def refuse(thread: threading.Thread) -> None:
        if len(started) >= most:
            raise RuntimeError("can't start new thread")
        started.append(thread)
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", refuse)
    run_together([lambda place=place: done.append(place) for place in range(5)])
    assert sorted(done) == list(range(5))
    assert len(started) == most
    started.clear()
    assert list(read_ahead(iter([1, 2, 3]))) == [1, 2, 3]
