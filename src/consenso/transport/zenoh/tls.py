"""The certificate of one party: who it is, and whom it believes."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from consenso.errors import InputError
from consenso.federation.signatures import Signatures

CA, CERTIFICATE, KEY = "ca.pem", "cert.pem", "key.pem"


@dataclass(frozen=True, kw_only=True)
class Credentials:
    """A folder with the authority's certificate, the own one, and its key."""

    folder: Path
    name: str  # the common name on the certificate

    @classmethod
    def load(cls, folder: Path, *, name: str | None = None) -> Credentials:
        """The credentials in a folder; InputError where they are missing, expired or somebody else's."""
        from cryptography import x509
        from cryptography.x509.oid import NameOID

        for file in (CA, CERTIFICATE, KEY):
            if not (folder / file).is_file():
                raise InputError(
                    f"{folder}: a folder of certificates has {CA}, {CERTIFICATE} and {KEY}, and {file} is not there; "
                    "make them with `consenso certs issue`."
                )
        try:
            found = x509.load_pem_x509_certificate((folder / CERTIFICATE).read_bytes())
            x509.load_pem_x509_certificate((folder / CA).read_bytes())
        except ValueError:
            raise InputError(f"{folder}: {CERTIFICATE} or {CA} is not a certificate; issue it anew.") from None
        names = found.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
        held = str(names[0].value) if len(names) == 1 else ""
        if name is not None and held != name:
            raise InputError(f"{folder}: the certificate is of {held!r} and not of {name!r}; use the own one.")
        now = datetime.datetime.now(datetime.UTC)
        if not found.not_valid_before_utc <= now <= found.not_valid_after_utc:
            raise InputError(f"{folder}: the certificate is not valid now; issue it anew.")
        if (folder / KEY).stat().st_mode & 0o077:
            raise InputError(f"{folder}: others can read {KEY}; take their rights away with chmod 600.")
        return cls(folder=folder, name=held)

    def signatures(self, names: Mapping[int, str], run: str) -> Signatures:
        """What signs with this certificate, and checks what other parties of the run signed."""
        folder = self.folder
        return Signatures(ca=folder / CA, certificate=folder / CERTIFICATE, key=folder / KEY, names=names, run=run)

    def config(self) -> dict[str, object]:
        """The part of a Zenoh configuration that names keys and certificates."""
        key, certificate = str(self.folder / KEY), str(self.folder / CERTIFICATE)
        return {
            "root_ca_certificate": str(self.folder / CA),
            "enable_mtls": True,
            "listen_private_key": key,
            "listen_certificate": certificate,
            "connect_private_key": key,
            "connect_certificate": certificate,
            "verify_name_on_connect": True,
        }
