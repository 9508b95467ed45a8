"""What a run is called on the network and on disks: the study, the code and the label that its operators accepted."""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Mapping
from pathlib import Path

from consenso.engine.checkpoint import fingerprint
from consenso.engine.codec import VERSION
from consenso.engine.ledger_charge import LedgerCharge
from consenso.errors import InputError
from consenso.federation.budget_guard import BudgetGuard, LedgerGuard, NoBudget
from consenso.federation.disk import Disk
from consenso.privacy.ledger import Ledger
from consenso.study import Study
from consenso.version import __version__


def run_of(study: Study, label: str) -> str:
    """Hash of the study, of the version of this library and of the label: whoever differs in any of them is refused.

    A label tells repeated runs of one study apart; each is charged on its own.
    """
    accepted = [study.digest, __version__, VERSION, label]
    return hashlib.sha256(json.dumps(accepted).encode()).hexdigest()


def names_of(study: Study) -> dict[int, str]:
    """The parties by number."""
    return dict(enumerate(study.parties))


def place_of(study: Study, name: str) -> int:
    """The number of a party."""
    if name not in study.parties:
        raise InputError(f"party {name!r}: the study names {', '.join(study.parties[:8])}; use one of these names.")
    return study.parties.index(name)


def disk_of(study: Study, folder: Path, *, owner: str, label: str) -> Disk:
    """The folder in which one owner keeps a run; it is made, or gone on with."""
    disk = Disk(folder, owner=owner, run=run_of(study, label), fingerprint=fingerprint(study.plan()))
    if disk.read_bytes("nonce") is None:
        # A folder that was lost and made anew is another reservation: what left before cannot be told apart any more.
        disk.commit({"nonce": secrets.token_hex(8).encode()})
    return disk


def guard_of(study: Study, disk: Disk, ledger: Path | None, *, label: str) -> BudgetGuard:
    """The party's own ledger: named, or the one that the study names beside itself; none in a simulation."""
    plan = study.plan()
    named = study.privacy.ledger
    if ledger is None and named is not None:
        ledger = study.folder / named
    if ledger is None:
        return NoBudget(plan)
    nonce = (disk.read_bytes("nonce") or b"").decode()
    charge = LedgerCharge(ledger=Ledger.open(ledger), run_id=f"{run_of(study, label)[:16]}-{nonce}")
    return LedgerGuard(plan, charge)


def read_addresses(path: Path, names: Mapping[int, str]) -> dict[int, str]:
    """Addresses `name = "host:port"` of a TOML file, by number of the party."""
    import tomllib

    try:
        addresses = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(
            f"{path}: a file with the addresses of the peers is needed ({error.strerror}); write a line "
            'name = "host:port" for each of them.'
        ) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f'{path}: not TOML: {error}; write a line name = "host:port" for each peer.') from None
    numbers = {name: party for party, name in names.items()}
    unknown = [name for name in addresses if name not in numbers]
    if unknown or not all(isinstance(address, str) for address in addresses.values()):
        raise InputError(f"{path}: every line is the name of a party of the study and its address; correct the file.")
    return {numbers[name]: address for name, address in addresses.items()}
