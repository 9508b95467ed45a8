"""Running a server or a party in the foreground: status shown, Ctrl-C and SIGTERM stop it where it can go on later."""

from __future__ import annotations

import logging
import signal
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

from consenso.deployment.handshakes import log_handshakes
from consenso.deployment.status import LiveStatus, StatusPort
from consenso.deployment.view import show_status
from consenso.transport.zenoh.star import Stopped


class Runnable(Protocol):
    """A server, a party or a peer."""

    status: LiveStatus

    def run(self) -> Path:
        """Run to the end; the folder that was written."""
        ...

    def stop(self) -> None:
        """Stop where it can go on later."""
        ...


def run_in_foreground(
    make: Callable[[], Runnable], *, as_json: bool, port: int | None, echo: Callable[[str], None]
) -> Path | None:
    """Run what is made to the end and show how it stands; None when it was stopped. The port is taken first."""
    logging.basicConfig(level=logging.WARNING, format="consenso: %(message)s")
    served = None if port is None else StatusPort(port)
    try:
        with log_handshakes():
            return _run_attended(make(), as_json=as_json, port=served, echo=echo)
    finally:
        if served is not None:
            served.close()


def _run_attended(
    runnable: Runnable, *, as_json: bool, port: StatusPort | None, echo: Callable[[str], None]
) -> Path | None:
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

    def wish(number: int, frame: Any) -> None:
        # Not in the handler itself: it may interrupt whoever holds the lock that stopping needs.
        threading.Thread(target=runnable.stop, daemon=True).start()

    for number in before:
        signal.signal(number, wish)
    try:
        with show_status(runnable.status, as_json=as_json, port=port, echo=echo):
            return runnable.run()
    except Stopped:
        runnable.status.set_state("stopped")
        return None
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
