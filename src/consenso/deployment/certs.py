"""A private certificate authority for those who have none: one certificate for the server and one for each party.

Whoever holds the authority's key can make certificates of any name. Keep its folder off the machines of the run.
"""

from __future__ import annotations

import datetime
import ipaddress
import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from consenso.errors import InputError
from consenso.transport.zenoh.tls import CA, CERTIFICATE, KEY

if TYPE_CHECKING:
    from cryptography import x509

CA_KEY = "ca-key.pem"
# Clocks of different machines differ.
SKEW = datetime.timedelta(minutes=10)


def init(folder: Path, *, name: str = "consenso", days: int = 3650) -> Path:
    """Make an authority; an existing one is never replaced."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import ec

    if (folder / CA_KEY).exists() or (folder / CA).exists():
        raise InputError(f"{folder}: an authority is there already; name another folder.")
    key = ec.generate_private_key(ec.SECP256R1())
    usage = x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=True,
        crl_sign=True,
        encipher_only=False,
        decipher_only=False,
    )
    made = (
        _builder(_name(name), _name(name), key.public_key(), days)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(usage, critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    _write(folder / CA_KEY, _key_text(key), secret=True)
    _write(folder / CA, _text(made), secret=False)
    return folder


def issue(authority: Path, name: str, *, out: Path, hosts: Iterable[str] = (), days: int = 365) -> Path:
    """Make the certificate of one party, valid for addresses under which others dial it; nothing is replaced."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import ExtendedKeyUsageOID

    if not name.strip() or len(name.encode()) > 64:
        raise InputError(f"certs issue {name!r}: a name has between 1 and 64 bytes; use the party's name in the study.")
    if not (authority / CA_KEY).is_file():
        raise InputError(f"{authority}: no authority is there; make one with `consenso certs init`.")
    if (out / KEY).exists() or (out / CERTIFICATE).exists():
        raise InputError(f"{out}: a certificate is there already; name another folder.")
    ca = x509.load_pem_x509_certificate((authority / CA).read_bytes())
    signer: Any = serialization.load_pem_private_key((authority / CA_KEY).read_bytes(), password=None)
    key = ec.generate_private_key(ec.SECP256R1())
    purposes = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH])
    addresses = x509.SubjectAlternativeName([_address(host) for host in dict.fromkeys(hosts) or ("localhost",)])
    made = (
        _builder(_name(name), ca.subject, key.public_key(), days)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(addresses, critical=False)
        .add_extension(purposes, critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(ca.public_key()), critical=False)  # type: ignore[arg-type]
        .sign(signer, hashes.SHA256())
    )
    out.mkdir(mode=0o700, parents=True, exist_ok=True)
    _write(out / KEY, _key_text(key), secret=True)
    _write(out / CERTIFICATE, _text(made), secret=False)
    _write(out / CA, (authority / CA).read_bytes(), secret=False)
    return out


def _builder(subject: x509.Name, issuer: x509.Name, public_key: Any, days: int) -> x509.CertificateBuilder:
    from cryptography import x509

    if days < 1:
        raise InputError(f"certs(days={days}): a certificate is valid for at least one day; give more.")
    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(public_key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - SKEW)
        .not_valid_after(now + datetime.timedelta(days=days))
    )


def _name(name: str) -> x509.Name:
    from cryptography import x509
    from cryptography.x509.oid import NameOID

    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _address(host: str) -> x509.GeneralName:
    from cryptography import x509

    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        pass
    if not host.isascii() or any(part in host for part in (":", "/", " ")) or not host:
        raise InputError(f"host {host!r}: a host is a name or an address without a port; write hospital-a.example.")
    return x509.DNSName(host)


def _text(certificate: x509.Certificate) -> bytes:
    from cryptography.hazmat.primitives import serialization

    return certificate.public_bytes(serialization.Encoding.PEM)


def _key_text(key: Any) -> bytes:
    from cryptography.hazmat.primitives import serialization

    text: bytes = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return text


def _write(path: Path, content: bytes, *, secret: bool) -> None:
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600 if secret else 0o644), "wb") as file:
        file.write(content)
