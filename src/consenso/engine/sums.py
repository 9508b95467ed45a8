"""The sum of what the parties of a round send, in the order of the parties, whichever engine carries the messages."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from consenso.algorithms.shape import HubAlgorithm
from consenso.arrays import Array
from consenso.engine.fixed_point import GridColumn, Words, decode, encode_rows, grids_of
from consenso.engine.step import Recorder
from consenso.privacy.releaser import PendingSums, SumTerm, SumToken, open_sum, silent_share
from consenso.privacy.run_spec import Declaration, RunSpec
from consenso.public_facts import PublicFacts


class RoundSum:
    """Adds messages up one after the other; sealed contributions are opened when all are there.

    With a `declaration`, and where the trust is a secure sum, it adds whole steps of the grids that masked sums have,
    and so gives what a deployment gives, bit for bit. Values have their noise by then. Discrete noise lies on the grid,
    and nothing is rounded; a seeded simulation is rounded as its deployment rounds it.
    """

    def __init__(
        self,
        spec: RunSpec,
        facts: PublicFacts,
        largest: dict[str, float],
        recorder: Recorder,
        *,
        declaration: Declaration | None = None,
    ) -> None:
        self.spec, self.facts, self.largest, self.recorder = spec, facts, largest, recorder
        self.pending = PendingSums()
        self._kind: type[Any] | None = None
        self._fields: dict[str, _Total] = {}
        self._sealed: dict[str, SumTerm] = {}
        self._grids = None if declaration is None else grids_of(spec, declaration, facts.round)

    def add(self, up: Any, weight: float = 1.0) -> None:
        """The message of a cohort."""
        self._kind = type(up)
        for each in dataclasses.fields(up):
            value = getattr(up, each.name)
            if isinstance(value, SumToken):
                part = self._sealed[each.name] = self.pending.take(value)
                value = part.value
            if each.name not in self._fields:
                self._fields[each.name] = _Total(self._column(each.name, value))
            self._fields[each.name].add(value, weight)

    def add_silence(self, facts: PublicFacts) -> None:
        """The noise shares of parties that were not sampled."""
        for name, part in self._sealed.items():
            self._fields[name].add(silent_share(self.spec.policy, facts, part, self.largest))

    def total(self, algorithm: HubAlgorithm) -> Any:
        """The summed message, each sealed sum opened."""
        assert self._kind is not None
        summed = {name: field.value() for name, field in self._fields.items()}
        if not self._sealed:
            return self._kind(**summed)
        in_parts = {release.name: release.parts for release in algorithm.releases(self.facts)}
        for name, part in self._sealed.items():
            summed[name] = open_sum(
                self.spec.policy,
                self.facts,
                dataclasses.replace(part, value=summed[name][None]),
                largest=self.largest,
                record=lambda entry: self.recorder.record(entry, in_parts=in_parts[entry.name]),
            )
        return self._kind(**summed)

    def _column(self, name: str, value: Array) -> GridColumn | None:
        """How a field is summed in whole steps; None where it is summed as it is."""
        if self._grids is None or not np.issubdtype(value.dtype, np.floating):
            return None
        return self._grids.column(name, value, self._sealed.get(name))


class _Total:
    """The sum of one field over parties."""

    def __init__(self, column: GridColumn | None) -> None:
        self._column = column
        self._sum: Array | None = None
        self._words: Words | None = None

    def add(self, values: Array, weight: float = 1.0) -> None:
        """Values (parties, ...), each counted `weight` times."""
        if self._column is None:
            summed = weight * values.sum(axis=0)
            self._sum = summed if self._sum is None else self._sum + summed
        else:
            words: Words = encode_rows(weight * values, self._column).sum(axis=0, dtype=np.uint64)
            self._words = words if self._words is None else self._words + words

    def value(self) -> Array:
        """What all of it adds up to."""
        if self._column is not None and self._words is not None:
            return decode(self._words, self._column)
        assert self._sum is not None
        return self._sum
