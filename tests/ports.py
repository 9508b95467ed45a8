"""Ports of 127.0.0.1 for servers that tests start."""

from __future__ import annotations

import contextlib
import random
import socket

# Below those that the system gives to connections: whoever dials such a port before its server listens may be given it
# as its own, is then connected to itself, and the server never gets it.
LOWEST, HIGHEST = 20_000, 32_000
_random = random.SystemRandom()


def free_port() -> int:
    """A port on which nobody listens."""
    while True:
        port = _random.randint(LOWEST, HIGHEST)
        with contextlib.closing(socket.socket()) as found, contextlib.suppress(OSError):
            found.bind(("127.0.0.1", port))
            return port
