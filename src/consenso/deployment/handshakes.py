"""Telling an operator who listens that somebody was turned away: Zenoh writes it to standard output, if at all."""

from __future__ import annotations

import contextlib
import logging
import os
import re
import sys
import threading
from collections.abc import Iterator
from typing import IO

log = logging.getLogger(__name__)

_LINE = re.compile(r"zenoh_link_tls\S*?:?\S* (?P<reason>.+)")
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")


def reason_in(line: str) -> str | None:
    """What a line of Zenoh's log says about a handshake that failed; None where it says nothing of the kind."""
    found = _LINE.search(_COLOURS.sub("", line))
    if found is None:
        return None
    # Its hint about open files is a guess that has nothing to do with certificates.
    reason = found["reason"].partition(" Hint:")[0].strip().rstrip(".")
    if reason.startswith("received fatal alert"):
        return f"somebody dialled and refuses the certificate here ({reason}); compare ca.pem on both sides"
    if "certificate" in reason:
        return (
            f"somebody dialled with a certificate that is refused here ({reason}); it needs one of the authority in "
            "ca.pem"
        )
    return None


@contextlib.contextmanager
def log_handshakes() -> Iterator[None]:
    """While the block runs, handshakes that fail are logged, each reason once; everything else is written as it was."""
    if os.name != "posix" or "RUST_LOG" in os.environ:  # whoever sets it wants Zenoh's own words
        yield
        return
    import zenoh

    zenoh.init_log_from_env_or("zenoh_link_tls=warn")
    sys.stdout.flush()
    before, real = sys.stdout, os.dup(1)
    read, write = os.pipe()
    os.dup2(write, 1)
    os.close(write)
    out = os.fdopen(os.dup(real), "w", encoding="utf-8", buffering=1)
    if _is_first(before):
        sys.stdout = out
    reader = threading.Thread(target=_read, args=(read, out), daemon=True)
    reader.start()
    try:
        yield
    finally:
        sys.stdout.flush()
        sys.stdout = before
        os.dup2(real, 1)  # closes the last end of the pipe that is written to
        os.close(real)
        reader.join(5.0)
        out.close()


def _is_first(stream: object) -> bool:
    try:
        return stream.fileno() == 1  # type: ignore[attr-defined, no-any-return]
    except (OSError, AttributeError, ValueError):
        return False


def _read(handle: int, out: IO[str]) -> None:
    known: set[str] = set()
    with os.fdopen(handle, encoding="utf-8", errors="replace") as lines:
        for line in lines:
            reason = reason_in(line)
            if reason is None:
                if "zenoh_link_tls" not in line:
                    out.write(line)
            elif reason not in known:
                known.add(reason)
                log.warning("%s", reason)
