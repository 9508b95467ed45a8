"""What a running training tells about itself, for whoever watches its folder: public figures only."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from consenso.planning.plan import Plan
from consenso.study.folder import STATUS, RunFolder, finite

if TYPE_CHECKING:
    from consenso.study.study import Study

SECONDS = 0.5  # between two notes, so that a fast run is not slowed down


@dataclass(kw_only=True)
class StatusFile:
    """Notes of a run in its folder: the round, the time left, the charge, and the movement where it is covered."""

    folder: RunFolder
    study: Study
    plan: Plan
    began: float = field(default_factory=time.monotonic)
    first: int | None = None
    told: float = 0.0

    def tell(self, done: int, planned: int, movement: list[float], *, last: bool = False) -> None:
        """Note a round, if the last note is old enough or this is the last one."""
        now = time.monotonic()
        if self.first is None:
            self.first, self.began = done, now
        if not last and now - self.told < SECONDS:
            return
        self.told = now
        passed = done - self.first
        left = None if last or not passed else (now - self.began) / passed * (planned - done)
        self.folder.write_json(
            STATUS,
            {
                "state": "complete" if last else "training",
                "done": done,
                "planned": planned,
                "parties": self.plan.parties,
                "seconds_left": left,
                "budget": self._budget,
                "movement": [finite(value) for value in movement],
            },
        )

    @cached_property
    def _budget(self) -> dict[str, float | str]:
        """What the whole run is charged for the observer that it is meant to withstand: at once, whatever happens."""
        if self.study.privacy.exact:
            return {}
        observer, delta = self.study.observer, self.study.privacy.delta
        return {observer.key: finite(self.plan.guarantee(observer, delta).epsilon(delta))}
