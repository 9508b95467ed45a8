"""The sum of what the parties of a round send, in the order of the parties, whichever engine carries the messages."""

from __future__ import annotations

import dataclasses
from typing import Any

from consenso.algorithms.shape import HubAlgorithm
from consenso.arrays import Array
from consenso.facts import Facts
from consenso.privacy.release import Contribution, Sealed, Vault, open_sum, silent_share
from consenso.privacy.setting import Setting
from consenso.runtime.step import Recorder


class Sum:
    """Adds messages up one after the other; sealed contributions are opened when all are there."""

    def __init__(self, setting: Setting, facts: Facts, largest: dict[str, float], recorder: Recorder) -> None:
        self.setting, self.facts, self.largest, self.recorder = setting, facts, largest, recorder
        self.vault = Vault()
        self._kind: type[Any] | None = None
        self._plain: dict[str, Array] = {}
        self._sealed: dict[str, Contribution] = {}

    def add(self, up: Any, weight: float = 1.0) -> None:
        """The message of a cohort."""
        self._kind = type(up)
        for each in dataclasses.fields(up):
            value = getattr(up, each.name)
            if isinstance(value, Sealed):
                part = self.vault.take(value)
                part = dataclasses.replace(part, value=weight * part.value.sum(axis=0, keepdims=True))
                if each.name in self._sealed:
                    part = dataclasses.replace(part, value=self._sealed[each.name].value + part.value)
                self._sealed[each.name] = part
            else:
                summed = weight * value.sum(axis=0)
                self._plain[each.name] = self._plain[each.name] + summed if each.name in self._plain else summed

    def add_silence(self, facts: Facts) -> None:
        """The noise shares of parties that were not sampled."""
        for name, part in self._sealed.items():
            share = silent_share(self.setting.doorway, facts, part, self.largest).sum(axis=0, keepdims=True)
            self._sealed[name] = dataclasses.replace(part, value=part.value + share)

    def total(self, algorithm: HubAlgorithm) -> Any:
        """The summed message, each sealed sum opened."""
        assert self._kind is not None
        if not self._sealed:
            return self._kind(**self._plain)
        in_parts = {release.name: release.parts for release in algorithm.releases(self.facts)}
        opened = {
            name: open_sum(
                self.setting.doorway,
                self.facts,
                part,
                largest=self.largest,
                record=lambda entry: self.recorder.record(entry, in_parts=in_parts[entry.name]),
            )
            for name, part in self._sealed.items()
        }
        return self._kind(**self._plain, **opened)
