"""A node that becomes ready by what neighbours hand over asks them, also where it has nothing to hand on itself."""

from __future__ import annotations

import threading
from types import SimpleNamespace

import pytest

from consenso.transport.zenoh.graph import GraphPeer


def peer(*, ready: bool) -> GraphPeer:
    """Two neighbours, both of which handed over the same last key, so that nobody lacks anything."""
    made = object.__new__(GraphPeer)
    worker = SimpleNamespace(
        neighbours=(1, 2),
        sources=(1, 2),
        hears=0,
        done=False,
        ready=ready,
        disk=SimpleNamespace(names=lambda _: ["item/key"]),
    )
    made.worker = worker  # type: ignore[assignment]
    made._told, made._inbox, made._calls = {(1, "key"), (2, "key")}, {}, {}
    return made


def test_questions_that_are_due_are_work():
    waiting = peer(ready=True)
    assert waiting._work_is_there()
    waiting._calls = dict.fromkeys([("said", 1, 0), ("said", 2, 0)])  # type: ignore[assignment]
    assert not waiting._work_is_there()
    waiting._inbox = {(1, 0): b"", (2, 0): b""}
    assert waiting._work_is_there()


def test_a_node_that_lacks_something_asks_nothing():
    assert not peer(ready=False)._work_is_there()


@pytest.mark.parametrize("ready", [False, True])
def test_a_question_is_not_held_while_the_node_lacks_something(ready):
    """What it lacks may come from the neighbour that asks, behind the question."""
    asked = peer(ready=ready)
    held: list[bool] = []
    asked._stop, asked._failure = threading.Event(), []
    asked.worker.says, asked.worker.exchanges = -1, 1  # type: ignore[misc]
    asked.worker.get_message = lambda round_, other: None  # type: ignore[method-assign,assignment]
    asked.channel = SimpleNamespace(  # type: ignore[assignment]
        pause=lambda done, seconds: held.append(not done()), envelope=lambda other, kind: kind
    )
    assert asked._tell(asked.worker, 1, 0) == "later"
    assert held == [ready]
