"""The ledger of one round of a deployed party or hub, as rows of its journal: public numbers only."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from consenso.errors import PrivacyError
from consenso.privacy.releaser import ReleaseRecord

Spent = dict[str, dict[str, float]]  # shares of costs that are paid in parts: by release, by round


class RoundLog:
    """Keeps the uses of the releaser; parts of one cost may not exceed the whole over the run."""

    def __init__(self, spent: Mapping[str, Mapping[str, float]]) -> None:
        self.releases: list[dict[str, Any]] = []
        self.spent: Spent = {name: dict(rounds) for name, rounds in spent.items()}

    def record(self, entry: ReleaseRecord, *, in_parts: bool) -> None:
        """Keep one use of the releaser."""
        if in_parts:
            rounds = self.spent.setdefault(entry.name, {})
            rounds[str(entry.round)] = max(entry.share, rounds.get(str(entry.round), 0.0))
            if sum(rounds.values()) > 1 + 1e-9:
                raise PrivacyError(
                    f"Release {entry.name!r}: its parts add up to {sum(rounds.values()):.6g} of the declared cost."
                )
        scale, bound, share = float(np.max(entry.scale)), float(entry.bound), float(entry.share)
        self.releases.append({"name": entry.name, "scale": scale, "bound": bound, "share": share})
