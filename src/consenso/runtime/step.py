"""One step of one cohort: the door is opened for it, and closed with a check that every declared release was made."""

from __future__ import annotations

from typing import Any, Protocol

from consenso.algorithms.shape import Algorithm
from consenso.facts import Facts
from consenso.privacy.door import Entry, Vault, open_door
from consenso.privacy.setting import Setting


class Recorder(Protocol):
    """Who keeps the ledger of a run."""

    def record(self, entry: Entry, *, in_parts: bool) -> None:
        """Keep one use of the door; parts of one cost may not exceed the whole."""
        ...


class opened:  # noqa: N801 - reads as a verb where it is used
    """A context with the door of one step; leaving it checks that nothing declared is missing."""

    def __init__(
        self,
        algorithm: Algorithm,
        setting: Setting,
        facts: Facts,
        largest: dict[str, float],
        vault: Vault,
        recorder: Recorder,
    ) -> None:
        releases = algorithm.releases(facts)
        in_parts = {release.name: release.parts for release in releases}
        self._door, self._close = open_door(
            setting.doorway,
            facts,
            releases,
            largest=largest,
            vault=vault,
            record=lambda entry: recorder.record(entry, in_parts=in_parts[entry.name]),
        )

    def __enter__(self) -> Any:
        return self._door

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        if kind is None:
            self._close()
