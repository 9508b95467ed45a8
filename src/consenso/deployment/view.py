"""Showing a status while a run goes on: a panel in a terminal, plain lines elsewhere, or one JSON object a line."""

from __future__ import annotations

import contextlib
import json
import threading
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from consenso.deployment.status import LiveStatus, StatusPort
from consenso.privacy.card.text import cost_text

if TYPE_CHECKING:
    from rich.table import Table

OFTEN = 0.5  # seconds between two lines about rounds


@contextlib.contextmanager
def show_status(
    status: LiveStatus, *, as_json: bool, port: StatusPort | None, echo: Callable[[str], None]
) -> Iterator[None]:
    """Show a status until the block ends; with a port also on loopback. `echo` writes one line."""
    if port is not None:
        port.show(status)
    if as_json:
        status.listeners.append(_Throttled(status, lambda event, told: echo(_json(event, told))))
        yield
        return
    from rich.console import Console

    console = Console(stderr=True)
    if not console.is_terminal:
        status.listeners.append(_Throttled(status, lambda event, told: echo(_line(event, told))))
        yield
        return
    with _panel(console, status):
        yield


class _Throttled:
    """Passes events on; those about rounds not too often, but always the last one."""

    def __init__(self, status: LiveStatus, write: Callable[[str, dict[str, Any]], None]) -> None:
        self._status, self._write, self._last, self._mutex = status, write, 0.0, threading.Lock()

    def __call__(self, event: str) -> None:
        with self._mutex:
            now = time.monotonic()
            if event == "round" and now - self._last < OFTEN and self._status.round < self._status.rounds:
                return
            self._last = now
            self._write(event, self._status.snapshot())


def _json(event: str, told: dict[str, Any]) -> str:
    return json.dumps({"event": event, **told}, sort_keys=True)


def _line(event: str, told: dict[str, Any]) -> str:
    here = sum(state == "up" for state in told["parties"].values())
    left = "" if told["seconds_left"] is None else f", {told['seconds_left']:.1f} s left"
    sizes = f"{told['bytes_sent']} bytes sent, {told['bytes_received']} received"
    line = f"{event}: round {told['round']} of {told['rounds']}, {here} of {len(told['parties'])} there, {sizes}{left}"
    refused = "".join(f"; {name}: {why}" for name, why in told["refused"].items())
    return line + refused


@contextlib.contextmanager
def _panel(console: Any, status: LiveStatus) -> Iterator[None]:
    from rich.live import Live

    with Live(console=console, refresh_per_second=2, get_renderable=lambda: table_of(status.snapshot())):
        yield


def table_of(told: dict[str, Any]) -> Table:
    """A status as a table for a terminal."""
    from rich.table import Table

    who = told["name"] if told["name"] == told["role"] else f"{told['role']} {told['name']}"
    table = Table(title=f"{who}, run {told['run']}: {told['state']}", title_justify="left")
    table.add_column("what")
    table.add_column("now", overflow="fold")
    left = "not known yet" if told["seconds_left"] is None else f"{told['seconds_left']:.1f} s"
    table.add_row("rounds", f"{told['round']} of {told['rounds']}, time left {left}")
    table.add_row("there", ", ".join(name for name, state in told["parties"].items() if state == "up") or "nobody")
    table.add_row("away", ", ".join(name for name, state in told["parties"].items() if state == "down") or "nobody")
    table.add_row("bytes", f"{told['bytes_sent']:,} sent, {told['bytes_received']:,} received")
    if told["missing"]:
        table.add_row("missed", ", ".join(f"{name}: {count} rounds" for name, count in told["missing"].items()))
    for name, why in told["refused"].items():
        table.add_row("refused", f"{name}: {why}")
    for observer, epsilon in told["charged"]["epsilon"].items():
        table.add_row(f"charged, {observer}", cost_text(float(epsilon), told["charged"]["delta"]))
    if told["simulation"]:
        table.add_row("noise", "seeded: a simulation, which protects nobody")
    return table
