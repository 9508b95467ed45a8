"""What is asked of a solver: a problem, a budget and the circumstances of the run. All of it is public."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

from consenso.errors import InputError
from consenso.privacy.calibrate import Mu, PureEpsilon, Target, calibrate_noise
from consenso.privacy.events import Gaussian
from consenso.privacy.observers import choose_trust
from consenso.problem import Problem
from consenso.schedules import Everyone, Schedule
from consenso.topology import Topology
from consenso.trust import Trust, mode_of


@dataclass(frozen=True, kw_only=True)
class Request:
    """Everything that a rule may look at."""

    problem: Problem
    target: Target | None  # None for a fit without privacy, which no rule looks at
    solver: str = "auto"  # or the one that is asked for by name
    trust: Trust | None = None
    schedule: Schedule | None = None
    topology: Topology | None = None  # of peers without a hub
    constant: float | None = None  # value of the last column where it is that of an intercept
    threshold: float | None = None  # where residuals are clipped, in standard deviations; None for the least excess
    effective: float | None = None  # how many directions rows fill, where that is public; None for all features
    penalty_follows: bool = False  # the penalty is stated for rows and slopes at their bounds (solvers.penalties)

    @property
    def limit(self) -> Target:
        """The target of a private fit."""
        assert self.target is not None, "a fit without privacy asks no rule"
        return self.target

    @property
    def is_central(self) -> bool:
        """Whether one curator holds all records."""
        return self.problem.parties == 1

    @property
    def gossips(self) -> bool:
        """Whether peers hear their neighbours only; those that sum on their graph learn as around a hub."""
        return self.topology is not None and not (self.trust and mode_of(self.trust).on_graph)

    @property
    def adds_own_noise(self) -> bool:
        """Whether every party hides its own records, so that a sum has the noise of all."""
        trust = self.trust or choose_trust(self.problem.parties)
        return mode_of(trust).noise_by == "party" and not self.is_central

    @property
    def takes_everyone(self) -> bool:
        """Whether every party takes part in every round."""
        return self.schedule is None or isinstance(self.schedule, Everyone)

    @cached_property
    def mu(self) -> float:
        """The budget as that of one Gaussian release: its mean may move by this many standard deviations."""
        target = self.limit
        if isinstance(target, Mu):
            return target.mu
        if isinstance(target, PureEpsilon):
            raise InputError(
                f"prepare(target={target}): the solvers add Gaussian noise, which is never differentially private "
                "with delta 0; use EpsilonDelta(epsilon=..., delta=...)."
            )
        return 1.0 / calibrate_noise(lambda multiplier: Gaussian(multiplier, 1.0), target)


class Rules(Protocol):
    """The public rules of one solver; a module with these names, of this package or of an entry point."""

    NAME: str
    PLACE: int  # the order in which solvers are listed, and chosen where they are expected to do alike

    def refusal(self, request: Request) -> str | None:
        """Why the solver cannot do this, as the end of a sentence; None when it can."""
        ...

    def excess(self, request: Request) -> float:
        """The expected excess risk (consenso.solvers.forecast), which "auto" minimises."""
        ...

    def recipe(self, request: Request) -> tuple[Any, int]:
        """The algorithm that the rules make for a request that is not refused, and its number of rounds."""
        ...
