"""Ports of 127.0.0.1 for servers that tests start."""

from __future__ import annotations

import contextlib
import fcntl
import os
import random
import socket
import tempfile
from functools import cache

# Below those that the system gives to connections: whoever dials such a port before its server listens may be given it
# as its own, is then connected to itself, and the server never gets it.
LOWEST, HIGHEST = 20_000, 32_000
_random = random.SystemRandom()
_given: set[int] = set()


@cache
def _locks() -> int:
    """A file of which a process locks a byte for each port that it was given, until it ends."""
    return os.open(os.path.join(tempfile.gettempdir(), f"consenso-ports-{os.getuid()}"), os.O_RDWR | os.O_CREAT, 0o600)


def free_port() -> int:
    """A port on which nobody listens, and which no other test is given: its server may start much later."""
    while True:
        port = _random.randint(LOWEST, HIGHEST)
        if port in _given:
            continue
        with contextlib.closing(socket.socket()) as found, contextlib.suppress(OSError):
            fcntl.lockf(_locks(), fcntl.LOCK_EX | fcntl.LOCK_NB, 1, port)
            found.bind(("127.0.0.1", port))
            _given.add(port)
            return port
