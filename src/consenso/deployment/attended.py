"""Running a server or a party in the foreground: status shown, Ctrl-C and SIGTERM stop it where it can go on later."""

from __future__ import annotations

import logging
import signal
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

from consenso.deployment.handshakes import told_handshakes
from consenso.deployment.status import Status, StatusPort
from consenso.deployment.view import shown
from consenso.runtime.zenoh.star import Stopped


class Runnable(Protocol):
    """A server, a party or a peer."""

    status: Status

    def run(self) -> Path:
        """Run to the end; the folder that was written."""
        ...

    def stop(self) -> None:
        """Stop where it can go on later."""
        ...


def attended(
    make: Callable[[], Runnable], *, as_json: bool, port: int | None, echo: Callable[[str], None]
) -> Path | None:
    """Run what is made to the end and show how it stands; None when it was stopped. The port is taken first."""
    logging.basicConfig(level=logging.WARNING, format="consenso: %(message)s")
    served = None if port is None else StatusPort(port)
    try:
        with told_handshakes():
            return _attended(make(), as_json=as_json, port=served, echo=echo)
    finally:
        if served is not None:
            served.close()


def _attended(
    runnable: Runnable, *, as_json: bool, port: StatusPort | None, echo: Callable[[str], None]
) -> Path | None:
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

    def wish(number: int, frame: Any) -> None:
        # Not in the handler itself: it may interrupt whoever holds the lock that stopping needs.
        threading.Thread(target=runnable.stop, daemon=True).start()

    for number in before:
        signal.signal(number, wish)
    try:
        with shown(runnable.status, as_json=as_json, port=port, echo=echo):
            return runnable.run()
    except Stopped:
        runnable.status.turned("stopped")
        return None
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
