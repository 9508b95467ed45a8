"""State that was computed per row belongs to these rows in this order: other rows are refused.

The digest is keyed with a secret that stays beside the state, in a file that only its owner may read: without the key
it tells nothing about any row.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Mapping
from pathlib import Path

from consenso.errors import InputError
from consenso.shards import Cohort

ROWS = "rows"  # the name on a disk


def bind_rows(cohort: Cohort) -> dict[str, str]:
    """What is kept with a state, so that `check_rows` knows its rows again."""
    key = secrets.token_bytes(32)
    return {"key": key.hex(), "digest": cohort.keyed_digest(key)}


def check_rows(bound: Mapping[str, str], cohort: Cohort, folder: Path) -> None:
    """Refuse rows that are not those that a state was computed from."""
    if not hmac.compare_digest(cohort.keyed_digest(bytes.fromhex(bound["key"])), bound["digest"]):
        raise InputError(
            f"{folder}: the run was begun with other rows, or with these rows in another order, and what it keeps "
            "belongs to each of them; go on with the table as it was, or start a new run in another folder, which is "
            "charged anew."
        )
