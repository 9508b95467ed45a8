"""How a run stands, for its operator: rounds, who is there, bytes, time left, what was charged. Public figures only."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import resources
from typing import Any, Literal

from consenso.errors import InputError
from consenso.pages import STYLE
from consenso.planning.plan import Plan
from consenso.privacy.card.depths import observer_name
from consenso.study import Study
from consenso.study.folder import finite
from consenso.transport.zenoh.channel import Channel

State = Literal["starting", "waiting", "running", "ended", "stopped"]
Listener = Callable[[str], None]
LOCAL = ("127.0.0.1", "localhost", "::1")


def budget_of(plan: Plan, delta: float) -> dict[str, float | str]:
    """Epsilon of the whole run for every observer: all of it is charged when a run begins."""
    return {observer.key: finite(plan.guarantee(observer, delta).epsilon(delta)) for observer in plan.observers()}


@dataclass
class LiveStatus:
    """What `serve`, `join` and `peer` know of their run; several threads write, others read."""

    role: str
    name: str
    run: str
    rounds: int
    delta: float
    simulation: bool
    budget: Mapping[str, float | str] = field(default_factory=dict)
    state: State = "starting"
    round: int = 0
    up: dict[str, bool] = field(default_factory=dict)
    missing: dict[str, int] = field(default_factory=dict)
    channel: Channel | None = None
    listeners: list[Listener] = field(default_factory=list)
    _begun: float = field(default_factory=time.monotonic)
    _first: tuple[float, int] | None = None

    @classmethod
    def of(cls, study: Study, *, role: str, name: str, run: str, done: int, others: Iterable[str]) -> LiveStatus:
        """Of a run of a study of which `done` rounds are over, before any of the others is there."""
        plan, delta = study.plan(), study.privacy.delta
        return cls(
            role=role,
            name=name,
            run=run,
            rounds=plan.rounds,
            delta=delta,
            simulation=study.simulation,
            budget=budget_of(plan, delta),
            round=done,
            up=dict.fromkeys(others, False),
        )

    def note_presence(self, who: str, here: bool) -> None:
        """Somebody came or went."""
        self.up[who] = here
        self._tell("up" if here else "down")

    def note_refusal(self, who: str, reason: str) -> None:
        """Somebody refuses, or is refused."""
        self._tell("refused")

    def note_round(self, round_: int, missing: tuple[str, ...] = ()) -> None:
        """`round_` rounds are done; some did not answer in the last of them."""
        now = time.monotonic()
        self._first = self._first or (now, round_)
        self.round, self.state = round_, "running"
        for name in missing:
            self.missing[name] = self.missing.get(name, 0) + 1
        self._tell("round")

    def set_state(self, state: State) -> None:
        """The run is in another state."""
        self.state = state
        self._tell(state)

    def snapshot(self) -> dict[str, Any]:
        """All of it as JSON values."""
        channel = self.channel
        return {
            "role": self.role,
            "name": self.name,
            "run": self.run[:16],
            "state": self.state,
            "round": self.round,
            "rounds": self.rounds,
            "seconds": round(time.monotonic() - self._begun, 3),
            "seconds_left": self._seconds_left(),
            "parties": {name: "up" if here else "down" for name, here in sorted(self.up.items())},
            "missing": dict(self.missing),
            "refused": {channel.identity.others[k]: v for k, v in dict(channel.refusals).items()} if channel else {},
            "bytes_sent": channel.traffic.sent if channel else 0,
            "bytes_received": channel.traffic.received if channel else 0,
            "charged": {
                "delta": self.delta,
                "epsilon": dict(self.budget),
                "who": {observer: observer_name(observer) for observer in self.budget},
            },
            "simulation": self.simulation,
        }

    def _seconds_left(self) -> float | None:
        if self._first is None or self.state == "ended":
            return 0.0 if self.state == "ended" else None
        since, done = time.monotonic() - self._first[0], self.round - self._first[1]
        return None if done < 1 else round(since / done * (self.rounds - self.round), 3)

    def _tell(self, event: str) -> None:
        for listener in self.listeners:
            listener(event)


def live_page() -> str:
    """The page that looks at a status, and goes on looking."""
    page = resources.files("consenso.deployment").joinpath("live.html").read_text(encoding="utf-8")
    return page.replace("/*STYLE*/", STYLE)


class StatusPort:
    """Serves a status on loopback: a page to a browser that asks for `/`, JSON to everybody else.

    The port is taken at once, so that one that is in use is an error before a run starts. A request that names another
    host is refused: a site may point its own name at this machine.
    """

    def __init__(self, port: int) -> None:
        self._status: LiveStatus | None = None
        self._thread: threading.Thread | None = None
        shown = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                named = self.headers.get("Host", "").rsplit(":", 1)[0].strip("[]")
                if named not in LOCAL:
                    self._answer(421, "text/plain", b"This page is for the machine that it runs on.\n")
                elif self.path == "/" and "text/html" in self.headers.get("Accept", ""):
                    self._answer(200, "text/html; charset=utf-8", live_page().encode())
                else:
                    told = {} if shown._status is None else shown._status.snapshot()
                    self._answer(200, "application/json", json.dumps(told).encode())

            def _answer(self, code: int, kind: str, content: bytes) -> None:
                self.send_response(code)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(content)))
                self.send_header("Cache-Control", "no-store")
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, format: str, *arguments: Any) -> None:  # noqa: A002
                """Nobody needs to know who looked."""

        try:
            self._server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
        except (OSError, OverflowError) as error:
            raise InputError(
                f"--status-port {port}: the port cannot be used ({error}); name one that is free, or 0 for any."
            ) from None
        self._server.daemon_threads = True
        self.port = int(self._server.server_address[1])

    def show(self, status: LiveStatus) -> None:
        """Answer with this status from now on."""
        self._status = status
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    def close(self) -> None:
        if self._thread is not None:
            self._server.shutdown()
        self._server.server_close()
