"""Opening a Zenoh session that talks to the given addresses and to nobody else."""

from __future__ import annotations

import json
import threading
from collections.abc import Sequence
from typing import Any, Literal

from consenso.errors import InputError
from consenso.transport.zenoh.tls import Credentials

LEASE_MS = 3000  # after this long a frozen party counts as gone


def endpoint(address: str) -> str:
    """An address `host:port` as Zenoh writes it."""
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal() or not 0 < int(port) < 1 << 16:
        raise InputError(f"address {address!r}: an address is host:port, such as 127.0.0.1:7447; write it so.")
    return f"tls/{address}"


def configuration(
    *,
    mode: Literal["peer", "client"],
    credentials: Credentials,
    access: dict[str, Any],
    listen: Sequence[str] = (),
    connect: Sequence[str] = (),
    limit: int,
) -> dict[str, Any]:
    """The configuration of Zenoh: own addresses, addresses to dial, who may send what, and how much at once."""
    return {
        "mode": mode,
        # Without these two, links form beyond the ones that are meant.
        "scouting": {"multicast": {"enabled": False}, "gossip": {"enabled": False}},
        "listen": {"endpoints": [endpoint(address) for address in listen]},
        "connect": {
            "endpoints": [endpoint(address) for address in connect],
            "timeout_ms": -1,
            "exit_on_failure": False,
            "retry": {"period_init_ms": 100, "period_max_ms": 1000, "period_increase_factor": 2},
        },
        "transport": {
            # Else large messages between processes of one machine go around TLS.
            "shared_memory": {"enabled": False},
            "link": {
                "protocols": ["tls"],
                "tx": {"lease": LEASE_MS},
                "rx": {"max_message_size": limit + (1 << 16)},
                "tls": credentials.config(),
            },
        },
        "access_control": access,
        "adminspace": {"enabled": False},
    }


def open_session(config: dict[str, Any], stop: threading.Event | None = None) -> Any:
    """An open session; always close it, or the interpreter hangs.

    A client waits here until its server is there, or until `stop` is set: then None.
    """
    import zenoh

    found: list[Any] = []
    done = threading.Event()

    def work() -> None:
        try:
            found.append(zenoh.open(zenoh.Config.from_json5(json.dumps(config))))
        except Exception as error:
            found.append(error)
        done.set()

    # In a thread of its own, since waiting inside Zenoh cannot be interrupted.
    threading.Thread(target=work, daemon=True).start()
    while not done.wait(0.2):
        if stop is not None and stop.is_set():
            return None
    if isinstance(found[0], Exception):
        why = str(found[0]).split(" at /")[0][:200]  # without the places in Zenoh's sources
        raise InputError(f"the network could not be opened ({why}); check addresses and certificates.") from found[0]
    return found[0]
