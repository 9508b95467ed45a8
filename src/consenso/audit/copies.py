"""A trial axis beside the party axis: many runs of one plan as one cohort.

States and messages have their parties as first axis and algorithms are written for any cohort, so trials are more
parties: row t * parties + i is party i of trial t. The hub's state gets a trial axis in front where the definition's
`combine` broadcasts over it, and is kept trial by trial where it does not. Which of the two holds is not declared but
tried (`consenso.audit.simulate`).
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from enum import Enum
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from consenso.algorithms.shape import HubAlgorithm
from consenso.arrays import Array, IntArray
from consenso.errors import InputError
from consenso.public_facts import PublicFacts

_Number = TypeVar("_Number", np.float64, np.uint64)


class Stacking(Enum):
    """How many trials a step takes at once."""

    HUBS = "hubs and parties"
    PARTIES = "parties, hubs one by one"
    NOTHING = "one trial at a time"


@dataclass(frozen=True, eq=False)
class Copied:
    """Rows of a cohort that belong to several trials, those of a trial side by side."""

    trials: int
    trial_of_row: IntArray  # (rows,), ascending

    def sums(self, values: NDArray[_Number]) -> NDArray[_Number]:
        """Sums over the rows of each trial, (trials, ...)."""
        if len(values) and len(values) % self.trials == 0:
            each = len(values) // self.trials
            if self.trial_of_row[each - 1] == 0 and self.trial_of_row[-each] == self.trials - 1:
                counts = np.bincount(self.trial_of_row, minlength=self.trials)
                if (counts == each).all():
                    total: NDArray[_Number] = values.reshape(self.trials, each, *values.shape[1:]).sum(axis=1)
                    return total
        out = np.zeros((self.trials, *values.shape[1:]), dtype=values.dtype)
        if len(values):
            first = np.flatnonzero(np.diff(self.trial_of_row, prepend=-1))
            out[self.trial_of_row[first]] = np.add.reduceat(values, first, axis=0)
        return out

    def repeat_per_row(self, per_trial: Array) -> Array:
        """A value of each trial repeated for its rows."""
        return per_trial[self.trial_of_row]


def repeat_record(record: Any, count: int) -> Any:
    """A record with a trial axis in front of its arrays; numbers are the same in every trial."""
    changes = {
        each.name: np.repeat(value[None], count, axis=0)
        for each in dataclasses.fields(record)
        if isinstance(value := getattr(record, each.name), np.ndarray)
    }
    return dataclasses.replace(record, **changes)


def stack_records(records: list[Any]) -> Any:
    """Records of several trials as one; numbers must be the same in all of them."""
    changes: dict[str, Any] = {}
    for each in dataclasses.fields(records[0]):
        values = [getattr(record, each.name) for record in records]
        if isinstance(values[0], np.ndarray):
            changes[each.name] = np.stack(values)
        elif any(value != values[0] for value in values):
            raise InputError(f"stacked: the number {each.name!r} differs between trials; take one trial at a time.")
    return dataclasses.replace(records[0], **changes)


def at(record: Any, index: int | IntArray) -> Any:
    """One trial of a stacked record, or the rows of several."""
    changes = {
        each.name: value[index]
        for each in dataclasses.fields(record)
        if isinstance(value := getattr(record, each.name), np.ndarray) and value.ndim > 0
    }
    return dataclasses.replace(record, **changes)


class Hubs(Protocol):
    """The hubs of all trials."""

    def down(self, facts: PublicFacts) -> Any:
        """What they send, stacked (or as it is where trials are taken one at a time)."""
        ...

    def combine(self, facts: PublicFacts, total: Any, alive: IntArray) -> None:
        """Their step, from stacked sums, in the trials that still run."""
        ...

    def models(self, facts: PublicFacts) -> Array:
        """(trials, dim)."""
        ...

    def take_over(self, other: Any, trials: IntArray) -> None:
        """Become another's hubs in some trials."""
        ...


class StackedHubs:
    """One record with a trial axis."""

    def __init__(self, algorithm: HubAlgorithm, facts: PublicFacts, count: int) -> None:
        self._algorithm = algorithm
        self.value = repeat_record(algorithm.start(facts), count)

    def down(self, facts: PublicFacts) -> Any:
        return self._algorithm.down(facts, self.value)

    def combine(self, facts: PublicFacts, total: Any, alive: IntArray) -> None:
        self.value = self._algorithm.combine(facts, self.value, total)

    def models(self, facts: PublicFacts) -> Array:
        return self._algorithm.model(facts, self.value)

    def take_over(self, other: StackedHubs, trials: IntArray) -> None:
        changes = {}
        for each in dataclasses.fields(self.value):
            own, theirs = getattr(self.value, each.name), getattr(other.value, each.name)
            if isinstance(own, np.ndarray) and own.ndim > 0:
                own = own.copy()
                own[trials] = theirs[trials]
                changes[each.name] = own
        self.value = dataclasses.replace(self.value, **changes)


class ListedHubs:
    """A record for each trial."""

    def __init__(self, algorithm: HubAlgorithm, facts: PublicFacts, count: int, *, alone: bool) -> None:
        self._algorithm, self._alone = algorithm, alone
        self.value = [algorithm.start(facts) for _ in range(count)]

    def down(self, facts: PublicFacts) -> Any:
        sent = [self._algorithm.down(facts, hub) for hub in self.value]
        return sent[0] if self._alone else stack_records(sent)

    def combine(self, facts: PublicFacts, total: Any, alive: IntArray) -> None:
        for trial in alive:
            self.value[trial] = self._algorithm.combine(facts, self.value[trial], at(total, int(trial)))

    def models(self, facts: PublicFacts) -> Array:
        return np.stack([self._algorithm.model(facts, hub) for hub in self.value])

    def take_over(self, other: ListedHubs, trials: IntArray) -> None:
        """Records are never written to, so they can be shared."""
        for trial in trials:
            self.value[trial] = other.value[trial]


@dataclass(frozen=True, eq=False)
class CopiedNeighbourhood:
    """What the neighbours of each node said in each trial; of one node only if `node` is given."""

    said: Any  # message of all rows of all trials
    trials: int
    adjacency: sparse.csr_array
    metropolis: sparse.csr_array
    node: int | None = None

    def sum(self, name: str) -> Array:
        return self._product(self.adjacency, name)

    def mix(self, name: str) -> Array:
        """Metropolis average over the node and its neighbours."""
        return self._product(self.metropolis, name)

    def _product(self, matrix: sparse.csr_array, name: str) -> Array:
        values = getattr(self.said, name)
        nodes, size = matrix.shape[0], values.shape[1]
        # One sparse product for all trials: nodes first, then trials and coordinates side by side.
        flat = values.reshape(self.trials, nodes, size).transpose(1, 0, 2).reshape(nodes, -1)
        rows = matrix if self.node is None else matrix[[self.node]]
        out = np.asarray(rows @ flat).reshape(-1, self.trials, size).transpose(1, 0, 2)
        return np.ascontiguousarray(out).reshape(-1, size)
