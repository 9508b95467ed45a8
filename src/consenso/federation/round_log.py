"""The ledger of one round of a deployed party or hub, as rows of its journal: public numbers only."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from consenso.engine.release_records import Spent, add_part
from consenso.privacy.releaser import ReleaseRecord


class RoundLog:
    """Keeps the uses of the releaser; parts of one cost may not exceed the whole over the run."""

    def __init__(self, spent: Mapping[str, Mapping[str, float]]) -> None:
        self.releases: list[dict[str, Any]] = []
        self.spent: Spent = {name: dict(rounds) for name, rounds in spent.items()}

    def record(self, entry: ReleaseRecord) -> None:
        """Keep one use of the releaser."""
        add_part(self.spent, entry)
        scale, bound, share = float(np.max(entry.scale)), float(entry.bound), float(entry.share)
        self.releases.append({"name": entry.name, "scale": scale, "bound": bound, "share": share})
