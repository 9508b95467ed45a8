"""Serving the page on loopback."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Callable
from pathlib import Path

from consenso.errors import InputError
from consenso.study import Study


def serve(
    study: Study, *, out: Path, run: Path | None = None, port: int = 0, ready: Callable[[str], None] | None = None
) -> None:
    """Serve until interrupted. `ready` is called with the address as soon as it answers; port 0 takes a free one."""
    try:
        import uvicorn
    except ImportError:
        raise InputError("consenso explore: the page needs the extra 'web'; pip install 'consenso[web]'.") from None
    from consenso.explorer.app import application

    study.plan()  # what cannot be planned is told at once
    with contextlib.closing(socket.socket(socket.AF_INET, socket.SOCK_STREAM)) as listening:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listening.bind(("127.0.0.1", port))
        except OSError as error:
            raise InputError(f"--port {port}: cannot listen there ({error.strerror}); choose another.") from None
        listening.listen()
        if ready is not None:
            ready(f"http://127.0.0.1:{listening.getsockname()[1]}/")
        config = uvicorn.Config(
            application(study, out=out, run=run), log_level="warning", access_log=False, lifespan="off"
        )
        with contextlib.suppress(KeyboardInterrupt):
            uvicorn.Server(config).run(sockets=[listening])
