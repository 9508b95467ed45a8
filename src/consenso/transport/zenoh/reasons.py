"""Why a link does not come about: Zenoh dials again for ever and tells nobody that a certificate is refused."""

from __future__ import annotations

import contextlib
import logging
import socket
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping

from consenso.transport.zenoh.tls import CA, CERTIFICATE, KEY, Credentials

log = logging.getLogger(__name__)

FIRST_LOOK, NEXT_LOOK, PATIENCE = 2.0, 10.0, 3.0  # seconds


def refusal(credentials: Credentials, address: str) -> str | None:
    """Which certificate is refused, and by whom, when this address is dialled; None where none is, or nobody answers.

    Shakes hands once, as Zenoh would, and says nothing afterwards.
    """
    host, _, port = address.rpartition(":")
    host = host.strip("[]")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    try:
        context.load_verify_locations(credentials.folder / CA)
        context.load_cert_chain(credentials.folder / CERTIFICATE, credentials.folder / KEY)
        with (
            socket.create_connection((host, int(port)), PATIENCE) as plain,
            context.wrap_socket(plain, server_hostname=host) as link,
        ):
            # The other side looks at this side's certificate last, and refuses it where an answer would come.
            link.settimeout(PATIENCE)
            with contextlib.suppress(TimeoutError):
                link.recv(1)
    except ssl.SSLCertVerificationError as error:
        return (
            f"the certificate at {address} is refused here ({error.verify_message}); both sides need certificates of "
            f"one authority, whose {CA} is the same, and one that names this address"
        )
    except ssl.SSLError as error:
        return (
            f"the own certificate is refused at {address} ({error.reason or 'handshake failed'}); ask for one of the "
            f"authority that the other side believes, and compare {CA}"
        )
    except OSError:
        return None
    return None


@contextlib.contextmanager
def watch_links(credentials: Credentials, addresses: Mapping[str, str], is_up: Callable[[str], bool]) -> Iterator[None]:
    """While the block runs, log why links by name do not come about; each reason once."""
    over = threading.Event()

    def watch() -> None:
        known: dict[str, str | None] = {}
        pause = FIRST_LOOK
        while not over.wait(pause):
            pause = NEXT_LOOK
            for name, address in addresses.items():
                if is_up(name) or over.is_set():
                    continue
                reason = refusal(credentials, address)
                if reason is not None and known.get(name) != reason:
                    log.warning("%s: %s", name, reason)
                known[name] = reason

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
