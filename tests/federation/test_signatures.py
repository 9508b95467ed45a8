"""What is passed on is believed with its author's signature only, in the run and under the name it was made for."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from consenso.deployment import certs
from consenso.engine.codec import MessageError
from consenso.errors import InputError
from consenso.federation.signatures import SIGNATURE_BYTES, Signatures
from consenso.transport.zenoh.tls import Credentials

NAMES = {0: "anna", 1: "bruno", 2: "carla"}
RUN, OTHER_RUN = "ab" * 32, "cd" * 32
CONTENT = bytes(range(200))


@pytest.fixture(scope="module")
def of(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Signatures]:
    folder = tmp_path_factory.mktemp("certs")
    for authority in ("own", "strange"):
        certs.init(folder / authority)

    def make(name: str, *, run: str = RUN, authority: str = "own", names: dict[int, str] = NAMES) -> Signatures:
        out: Path = folder / f"{authority}-{name}"
        if not out.exists():
            certs.issue(folder / authority, name, out=out)
        return Credentials.load(out, name=name).signatures(names, run)

    return make


def test_everybody_of_a_run_knows_who_signed(of) -> None:
    for party, name in NAMES.items():
        signature = of(name).sign("item x", CONTENT)
        assert len(signature) == SIGNATURE_BYTES
        for other in NAMES.values():
            assert of(other).author("item x", CONTENT, signature) == party
            of(other).check(party, "item x", CONTENT, signature)


# By what was done: the content that is shown, its name, its signature.
FORGERIES: dict[str, Callable[..., tuple[str, bytes, bytes]]] = {
    "no signature": lambda of: ("x", CONTENT, bytes(SIGNATURE_BYTES)),
    "a short one": lambda of: ("x", CONTENT, of("bruno").sign("x", CONTENT)[:100]),
    "nothing": lambda of: ("x", CONTENT, b""),
    "altered content": lambda of: ("x", CONTENT[:-1] + b"!", of("bruno").sign("x", CONTENT)),
    "under another name": lambda of: ("y", CONTENT, of("bruno").sign("x", CONTENT)),
    "moved between name and content": lambda of: ("x", CONTENT, of("bruno").sign("x\0", CONTENT[1:])),
    "of another run": lambda of: ("x", CONTENT, of("bruno", run=OTHER_RUN).sign("x", CONTENT)),
    "by another party": lambda of: ("x", CONTENT, of("carla").sign("x", CONTENT)),
    "by a party of another study": lambda of: ("x", CONTENT, of("dario", names={1: "dario"}).sign("x", CONTENT)),
    "by another authority": lambda of: ("x", CONTENT, of("bruno", authority="strange").sign("x", CONTENT)),
    "with somebody's certificate": lambda of: ("x", CONTENT, _swapped(of)),
}


def _swapped(of) -> bytes:
    """Carla's signature beside the certificate of Bruno, which is no secret."""
    carla, bruno = of("carla"), of("bruno")
    carla._own = bruno._own
    return carla.sign("x", CONTENT)


@pytest.mark.parametrize("forgery", FORGERIES)
def test_what_its_owner_has_not_signed_for_this_run_is_refused(of, forgery: str) -> None:
    what, content, signature = FORGERIES[forgery](of)
    with pytest.raises(MessageError) as refused:
        of("anna").check(1, what, content, signature)
    assert repr(CONTENT)[2:20] not in str(refused.value)


def test_every_bit_of_a_signature_counts(of) -> None:
    """Its padding and its lengths too: what is passed on has one form."""
    anna, signature = of("anna"), of("bruno").sign("x", CONTENT)
    for at in range(0, SIGNATURE_BYTES, 37):
        changed = bytearray(signature)
        changed[at] ^= 1
        with pytest.raises(MessageError):
            anna.check(1, "x", CONTENT, bytes(changed))


def test_a_folder_whose_signatures_nobody_would_believe_is_refused_at_once(of, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no party of this run"):
        of("dario")
    of("bruno")
    certs.init(tmp_path / "authority")
    folder = certs.issue(tmp_path / "authority", "bruno", out=tmp_path / "bruno")
    certs.init(tmp_path / "new")
    (folder / "ca.pem").write_bytes((tmp_path / "new" / "ca.pem").read_bytes())
    with pytest.raises(InputError, match="has not issued it"):
        Credentials.load(folder, name="bruno").signatures(NAMES, RUN)
