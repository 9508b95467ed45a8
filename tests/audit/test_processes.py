"""Work that is shared among processes."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import time

import numba
import numpy as np
import pytest
import threadpoolctl

from consenso.algorithms.preconditioned import PreconditionedFixedPoint
from consenso.audit.attack import list_targets
from consenso.audit.copies import Stacking
from consenso.audit.neighbours import unkind
from consenso.audit.processes import count_processors, share_among
from consenso.audit.simulate import simulate
from consenso.testing.attacks import list_attacked_plans


def sleep_or_square(number: int) -> int:
    if number < 0:
        time.sleep(1000)
    return number**2


def interrupt_parent(number: int) -> int:
    if number == 1:  # while the second task may not be handed out yet
        os.kill(os.getppid(), signal.SIGINT)
    time.sleep(1000)
    return number


def test_results_come_in_the_order_of_their_tasks() -> None:
    assert list(share_among(sleep_or_square, range(20), 2)) == [number**2 for number in range(20)]
    assert count_processors() >= 1


def count_threads(_: int) -> list[int]:
    pools = threadpoolctl.threadpool_info()
    return [numba.config.NUMBA_NUM_THREADS, *(pool["num_threads"] for pool in pools)]


def test_processes_share_the_processors() -> None:
    """Two processes with two threads each on two processors take twice the processor time."""
    for workers in (1, 2, count_processors() + 1):
        (threads,) = share_among(count_threads, [0], workers)
        assert len(threads) > 1
        assert set(threads) <= set(range(1, max(1, count_processors() // workers) + 1))


@pytest.fixture
def _interruptible():
    """A process in which tests are shared out may ignore interruptions."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("_interruptible")
def test_nobody_waits_for_a_process_after_an_interruption() -> None:
    """Without it the thousand seconds of either process would be waited for."""
    with pytest.raises(KeyboardInterrupt):
        list(share_among(interrupt_parent, [1, 2], 2))
    assert multiprocessing.active_children() == []


def test_nor_after_an_end_before_the_last_result() -> None:
    shared = share_among(sleep_or_square, [3, -1, -1], 2)
    assert next(shared) == 9
    shared.close()
    assert multiprocessing.active_children() == []


def test_runs_that_are_shared_are_the_same_runs_and_are_told_of() -> None:
    plan = next(iter(list_attacked_plans(PreconditionedFixedPoint.example())))
    targets = [target for target in list_targets(plan) if target.watch is not None]
    query = targets[0].query
    pair = next(iter(unkind(plan.problem, query.unit, query.adjacency, query.party)))
    watches = [target.watch for target in targets if target.watch is not None]
    pickle.dumps((plan, pair, watches))  # where processes do not inherit what there is
    told: list[float] = []
    alone, shared = (
        simulate(plan, pair, watches, trials=3, seed=1, stacking=Stacking.NOTHING, workers=workers, tell=told.append)
        for workers in (1, 2)
    )
    assert told[:6] == told[6:] == pytest.approx([each / 6 for each in range(1, 7)])
    for one, other in zip(alone, shared, strict=True):
        for mine, theirs in zip(one, other, strict=True):
            assert np.array_equal(mine, theirs)
