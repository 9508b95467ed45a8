"""The ledger of a run in memory: every use of the releaser, in order."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import overload

from consenso.arrays import Array, IntArray
from consenso.errors import PrivacyError
from consenso.privacy.releaser import ReleaseRecord


@dataclass(frozen=True, eq=False)
class VisitRecords(Sequence[ReleaseRecord]):
    """The releases of consecutive rounds with one party each: two arrays, made into entries when they are looked at."""

    round: int  # the first
    name: str
    path: IntArray  # (rounds,)
    scales: Array  # (rounds,)

    def __len__(self) -> int:
        return len(self.path)

    @overload
    def __getitem__(self, index: int) -> ReleaseRecord: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[ReleaseRecord]: ...

    def __getitem__(self, index: int | slice) -> ReleaseRecord | Sequence[ReleaseRecord]:
        if isinstance(index, slice):
            return [self[k] for k in range(*index.indices(len(self)))]
        k = range(len(self))[index]
        return ReleaseRecord(self.round + k, self.name, self.path[k : k + 1], self.scales[k], 1.0, 1.0)


Spent = dict[str, dict[str, float]]  # shares of costs that are paid in parts: by release, by round


def add_part(spent: Spent, entry: ReleaseRecord) -> None:
    """Note a use of the releaser that is a part of one cost; all parts of a run may not exceed the whole."""
    if not entry.in_parts:
        return
    # Every party of a round makes the same part.
    rounds, at = spent.setdefault(entry.name, {}), str(entry.round)
    rounds[at] = max(entry.share, rounds.get(at, 0.0))
    if sum(rounds.values()) > 1 + 1e-9:
        raise PrivacyError(
            f"Release {entry.name!r}: its parts add up to {sum(rounds.values()):.6g} of the declared cost."
        )


class ReleaseRecords(Sequence[ReleaseRecord]):
    """Entries one by one and whole walks, in the order in which they were recorded."""

    def __init__(self, entries: Iterable[ReleaseRecord] = ()) -> None:
        self._parts: list[list[ReleaseRecord] | VisitRecords] = [list(entries)]
        self._starts = [0]  # of each part

    def append(self, entry: ReleaseRecord) -> None:
        """Record one use of the releaser."""
        last = self._parts[-1]
        if isinstance(last, VisitRecords):
            self._add([entry])
        else:
            last.append(entry)

    def extend(self, visits: VisitRecords) -> None:
        self._add(visits)

    def _add(self, part: list[ReleaseRecord] | VisitRecords) -> None:
        self._starts.append(len(self))
        self._parts.append(part)

    def __len__(self) -> int:
        return self._starts[-1] + len(self._parts[-1])

    def __iter__(self) -> Iterator[ReleaseRecord]:
        for part in self._parts:
            yield from part

    @overload
    def __getitem__(self, index: int) -> ReleaseRecord: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[ReleaseRecord]: ...

    def __getitem__(self, index: int | slice) -> ReleaseRecord | Sequence[ReleaseRecord]:
        if isinstance(index, slice):
            return [self[k] for k in range(*index.indices(len(self)))]
        k = range(len(self))[index]
        part = bisect_right(self._starts, k) - 1
        return self._parts[part][k - self._starts[part]]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ReleaseRecords):
            return NotImplemented
        return len(self) == len(other) and all(mine == theirs for mine, theirs in zip(self, other, strict=True))

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Entries({len(self)} uses of the releaser)"
