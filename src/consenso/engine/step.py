"""One step of one cohort: the releaser is opened for it, and closed with a check that every declared release was
made.
"""

from __future__ import annotations

from typing import Any, Protocol

from consenso.algorithms.shape import Algorithm
from consenso.privacy.releaser import PendingSums, ReleaseRecord, open_releaser
from consenso.privacy.run_spec import RunSpec
from consenso.public_facts import PublicFacts


class Recorder(Protocol):
    """Who keeps the ledger of a run."""

    def record(self, entry: ReleaseRecord, *, in_parts: bool) -> None:
        """Keep one use of the releaser; parts of one cost may not exceed the whole."""
        ...


class opened:  # noqa: N801 - reads as a verb where it is used
    """A context with the releaser of one step; leaving it checks that nothing declared is missing."""

    def __init__(
        self,
        algorithm: Algorithm,
        spec: RunSpec,
        facts: PublicFacts,
        largest: dict[str, float],
        pending: PendingSums,
        recorder: Recorder,
    ) -> None:
        releases = algorithm.releases(facts)
        in_parts = {release.name: release.parts for release in releases}
        self._door, self._close = open_releaser(
            spec.policy,
            facts,
            releases,
            largest=largest,
            pending=pending,
            record=lambda entry: recorder.record(entry, in_parts=in_parts[entry.name]),
        )

    def __enter__(self) -> Any:
        return self._door

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        if kind is None:
            self._close()
