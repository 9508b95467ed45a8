"""Signatures of the parties of a run, made with their certificates, for what others pass on.

A line with mutual TLS shows who is at its other end, not who wrote what comes over it. So whatever is passed on (models
and where a walk starts on a graph, the public keys of a secure sum) carries the signature of its author and the
author's certificate, which the authority of this run must have issued. What is signed names the run and what it is: a
signature that was made for another run, or for something else, is refused.
"""

from __future__ import annotations

import datetime
import struct
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from consenso.engine.codec import MessageError
from consenso.errors import InputError

if TYPE_CHECKING:
    from cryptography import x509

# Bytes of every signature with its certificate, filled up with zeros. A certificate of `consenso certs` has about 500,
# one with an RSA key of 4096 bits about 1,500 and a signature of 512.
SIGNATURE_BYTES = 3072

_LENGTHS = struct.Struct("<HH")
_DOMAIN = b"consenso signature 1"


class Signatures:
    """Signs as one party of a run, and tells who signed what others pass on.

    ca, certificate, key: files in PEM. names: of all parties, as on their certificates. run: as on envelopes.
    """

    def __init__(self, *, ca: Path, certificate: Path, key: Path, names: Mapping[int, str], run: str) -> None:
        from cryptography import x509
        from cryptography.hazmat.primitives import serialization

        self._names, self._run = dict(names), run
        try:
            self._authorities = x509.load_pem_x509_certificates(ca.read_bytes())
            self._certificate = x509.load_pem_x509_certificate(certificate.read_bytes())
            self._key: Any = serialization.load_pem_private_key(key.read_bytes(), password=None)
        except (ValueError, TypeError):
            raise InputError(
                f"{certificate.parent}: its certificates and its key cannot be read; issue them anew."
            ) from None
        name = _name_on(self._certificate)
        if name not in self._names.values():
            raise InputError(f"{certificate}: the certificate is of {name!r}, who is no party of this run.")
        if not self._was_issued_here(self._certificate):
            raise InputError(f"{certificate}: {ca.name} has not issued it, so nobody would believe what it signs.")
        self.sign("", b"")  # a kind of key that cannot sign is refused here

    def sign(self, what: str, content: bytes) -> bytes:
        """The signature of this party under some content, with its certificate."""
        signature = _sign(self._key, self._statement(what, content))
        whole = _LENGTHS.pack(len(signature), len(self._own)) + signature + self._own
        if len(whole) > SIGNATURE_BYTES:
            raise InputError(
                f"a certificate and a signature of {len(whole)} bytes; at most {SIGNATURE_BYTES} can be passed on: use "
                "a certificate with an elliptic curve, such as those of `consenso certs issue`."
            )
        return whole.ljust(SIGNATURE_BYTES, b"\0")

    def author(self, what: str, content: bytes, signature: bytes) -> int:
        """The party that signed; MessageError where no party of this run signed this content for this run."""
        from cryptography.exceptions import InvalidSignature

        certificate, signed = self._read(signature)
        # An altered certificate may not even be readable: nothing is read of one that the authority did not issue.
        name = _name_on(certificate) if self._was_issued_here(certificate) else ""
        found = [party for party, known in self._names.items() if known == name]
        now = datetime.datetime.now(datetime.UTC)
        if not found:
            raise MessageError(f"{what}: no party of this run has signed it with a certificate of the run's authority.")
        if not certificate.not_valid_before_utc <= now <= certificate.not_valid_after_utc:
            raise MessageError(f"{what}: the certificate of {name!r} that signed it is not valid now.")
        try:
            _verify(certificate.public_key(), signed, self._statement(what, content))
        except (InvalidSignature, ValueError):
            raise MessageError(
                f"{what}: it is not what {name!r} signed in this run; it was made up or altered."
            ) from None
        return found[0]

    def check(self, party: int, what: str, content: bytes, signature: bytes) -> None:
        """Refuse what this party has not signed."""
        author = self.author(what, content, signature)
        if author != party:
            raise MessageError(f"{what}: it is {self._names[party]!r}'s, and {self._names[author]!r} signed it.")

    @cached_property
    def _own(self) -> bytes:
        from cryptography.hazmat.primitives import serialization

        return self._certificate.public_bytes(serialization.Encoding.DER)

    def _statement(self, what: str, content: bytes) -> bytes:
        # Each part is preceded by its length, so no two statements read the same.
        parts = [_DOMAIN, self._run.encode(), what.encode(), content]
        return b"".join(len(part).to_bytes(8, "little") + part for part in parts)

    def _read(self, signature: bytes) -> tuple[x509.Certificate, bytes]:
        from cryptography import x509

        try:
            first, second = _LENGTHS.unpack_from(signature)
            middle, end = _LENGTHS.size + first, _LENGTHS.size + first + second
            if end > len(signature) or any(signature[end:]) or len(signature) != SIGNATURE_BYTES:
                raise ValueError
            return x509.load_der_x509_certificate(signature[middle:end]), signature[_LENGTHS.size : middle]
        except (ValueError, struct.error):
            raise MessageError("what is passed on is not signed, and here it has to be.") from None

    def _was_issued_here(self, certificate: x509.Certificate) -> bool:
        return any(_was_issued(certificate, authority) for authority in self._authorities)


def _was_issued(certificate: x509.Certificate, authority: x509.Certificate) -> bool:
    from cryptography.exceptions import InvalidSignature

    try:
        certificate.verify_directly_issued_by(authority)
    except (InvalidSignature, ValueError, TypeError):
        return False
    return True


def _name_on(certificate: x509.Certificate) -> str:
    from cryptography.x509.oid import NameOID

    names = certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    return str(names[0].value) if len(names) == 1 else ""


def _sign(key: Any, statement: bytes) -> bytes:
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa

    made: bytes
    if isinstance(key, ec.EllipticCurvePrivateKey):
        made = key.sign(statement, ec.ECDSA(hashes.SHA256()))
    elif isinstance(key, rsa.RSAPrivateKey):
        made = key.sign(statement, padding.PKCS1v15(), hashes.SHA256())
    elif isinstance(key, ed25519.Ed25519PrivateKey):
        made = key.sign(statement)
    else:
        raise InputError(f"a key of kind {type(key).__name__}: sign with an elliptic curve, Ed25519 or RSA key.")
    return made


def _verify(key: Any, signature: bytes, statement: bytes) -> None:
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa

    if isinstance(key, ec.EllipticCurvePublicKey):
        key.verify(signature, statement, ec.ECDSA(hashes.SHA256()))
    elif isinstance(key, rsa.RSAPublicKey):
        key.verify(signature, statement, padding.PKCS1v15(), hashes.SHA256())
    elif isinstance(key, ed25519.Ed25519PublicKey):
        key.verify(signature, statement)
    else:
        raise ValueError("a kind of key that signs nothing")
