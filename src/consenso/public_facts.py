"""The public facts that a step may use: the problem's constants, who takes part, which round it is, who is beside whom.

Nothing here is ever computed from records. Planning, running and accounting read the same object.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from consenso.arrays import Array, IntArray
from consenso.problem import Problem


@dataclass(frozen=True, kw_only=True)
class PublicFacts:
    """Public facts of a cohort at one moment. Arrays have the cohort's parties as their first axis."""

    problem: Problem
    cohort: IntArray  # indices of the parties of this cohort
    round: int = 0
    rounds: int = 1  # the number of rounds that is charged
    rate: float = 1.0  # expected share of the parties that take part in a round
    noise: Mapping[str, float] = field(default_factory=dict)  # noise scale of each release as the hub hears it
    degrees: IntArray | None = None  # neighbours of each party of the cohort, on a graph

    @classmethod
    def everyone(
        cls, problem: Problem, *, rounds: int, rate: float = 1.0, degrees: IntArray | None = None
    ) -> PublicFacts:
        """PublicFacts of all parties before the first round."""
        cohort = np.arange(problem.parties, dtype=np.int64)
        return cls(problem=problem, cohort=cohort, rounds=rounds, rate=rate, degrees=degrees)

    def at(self, round_: int) -> PublicFacts:
        """The same cohort in another round."""
        if type(self) is not PublicFacts:  # facts that note what is read of them
            return replace(self, round=round_)
        facts = object.__new__(PublicFacts)
        vars(facts).update(vars(self), round=round_)
        return facts

    def is_before(self, round_: int) -> bool:
        """Whether this round comes before another.

        A declaration that asks this, and does not read `round`, is asked once for all rounds with the same answer.
        """
        return self.round < round_

    def only(self, cohort: IntArray) -> PublicFacts:
        """PublicFacts of some parties, given by their indices in the whole federation; `self` must be of everyone."""
        degrees = None if self.degrees is None else self.degrees[cohort]
        return replace(self, cohort=cohort, degrees=degrees)

    @property
    def parties(self) -> int:
        """How many parties the federation has, whatever the size of this cohort."""
        return self.problem.parties

    @property
    def expected_parties(self) -> float:
        """How many parties a round is expected to have: the only normaliser of a sampled sum."""
        return self.rate * self.parties

    @property
    def dim(self) -> int:
        """Length of a model vector."""
        return self.problem.dim

    @property
    def sizes(self) -> IntArray:
        """Public sizes of the cohort's parties."""
        return self.problem.sizes[self.cohort]

    @property
    def most(self) -> Array:
        """The most records that each of the cohort's parties may hold; infinite where no bound is public."""
        return self.problem.most[self.cohort]

    @property
    def scales(self) -> Array:
        """Public weight of each record's loss in its party's objective."""
        return self.problem.scales[self.cohort]

    @property
    def lipschitz(self) -> Array:
        """Lipschitz constants of the cohort's objectives."""
        return self.problem.lipschitz[self.cohort]

    @property
    def record_lipschitz(self) -> Array:
        """Lipschitz constants of one record's part in each party's objective."""
        return self.problem.record_lipschitz[self.cohort]

    @property
    def proxes_end(self) -> bool:
        """Whether a solver is proved to certify every prox: a loss without kinks has a method that needs no luck."""
        return bool(self.problem.loss.curvature_bound < np.inf)

    @property
    def record_prox_lipschitz(self) -> Array:
        """What one record counts for in a party's prox: its own part, or where a prox may not end the whole party's.

        A step that does not end is answered as without any of the party's records.
        """
        return self.record_lipschitz if self.proxes_end else self.lipschitz

    @property
    def smoothness(self) -> Array:
        """Smoothness constants of the cohort's objectives."""
        return self.problem.smoothness[self.cohort]

    def classes(self) -> IntArray:
        """One representative of each set of parties that no public fact tells apart (size, weight, degree)."""
        return self._classes

    @cached_property
    def _classes(self) -> IntArray:
        columns = [self.problem.sizes[self.cohort].astype(float), self.problem.scales[self.cohort]]
        if self.degrees is not None:
            columns.append(self.degrees.astype(float))
        if all((column == column[0]).all() for column in columns):
            return self.cohort[:1]
        _, first = np.unique(np.stack(columns, axis=1), axis=0, return_index=True)
        return self.cohort[np.sort(first)]
