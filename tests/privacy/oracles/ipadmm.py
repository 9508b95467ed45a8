"""IPADMM: several noisy linearised steps of a node per round, all of which its neighbours may see."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from tests.privacy.oracles.rates import require_rate

from consenso.conventions import Unit
from consenso.privacy.events import Adjacency, Event, Gaussian, Sampled, repeat
from consenso.privacy.theorems.preconditions import require, require_count, require_positive
from consenso.privacy.theorems.theorem import GAUSSIAN_RUN, Assumption


def inner_step_sensitivity(
    *,
    gradient_bound: float,
    penalty: float,
    degree: int,
    proximity: float,
    records: int,
    adjacency: Adjacency,
    rate: float = 1.0,
) -> float:
    """How far one record moves an inner step whose denominator is 2 penalty degree + proximity.

    `proximity` is the one of the step that is taken, not of the step before. A minibatch is divided by the fixed number
    rate * records.
    """
    require_positive("inner_step_sensitivity", gradient_bound=gradient_bound, proximity=proximity)
    require_count("inner_step_sensitivity", records=records)
    require_rate("inner_step_sensitivity", rate=rate)
    worlds = 1 if adjacency == "add-remove" else 2
    return worlds * gradient_bound / ((2 * penalty * degree + proximity) * rate * records)


@dataclass(frozen=True, kw_only=True)
class IPADMMSteps:
    """rounds * inner_steps Gaussian mechanisms of noise `multiplier` (std over the sensitivity of `adjacency`).

    Exact when all inner iterates are seen; showing only averages gains nothing that can be claimed.
    """

    citation: ClassVar[str] = "Huang and Gong, IPADMM, accounted exactly"
    section: ClassVar[str] = "ipadmm"

    multiplier: float
    rounds: int
    inner_steps: int
    adjacency: Adjacency = "replace-one"
    unit: Unit = "record"

    def __post_init__(self) -> None:
        require_positive("IPADMMSteps", multiplier=self.multiplier)
        require_count("IPADMMSteps", rounds=self.rounds, inner_steps=self.inner_steps)

    def event(self) -> Event:
        """One Gaussian mechanism per inner step."""
        return repeat(Gaussian(self.multiplier, 1.0), self.rounds * self.inner_steps)

    def assumptions(self) -> tuple[Assumption, ...]:
        """Bounded gradients and the right denominator."""
        return _assumptions()


@dataclass(frozen=True, kw_only=True)
class MinibatchIPADMM:
    """The same with Poisson minibatches that the node draws and keeps to itself.

    `multiplier` is the noise over the largest contribution of one record, that is over the add-remove sensitivity of a
    step; replace-one is accounted as both worlds contributing.
    """

    citation: ClassVar[str] = "Huang and Gong, IPADMM, minibatches accounted by Theorem P"
    section: ClassVar[str] = "ipadmm"

    multiplier: float
    rate: float
    rounds: int
    inner_steps: int
    adjacency: Adjacency = "replace-one"
    unit: Unit = "record"
    scheme: Literal["poisson", "fixed-size", "with-replacement"] = "poisson"

    def __post_init__(self) -> None:
        require_positive("MinibatchIPADMM", multiplier=self.multiplier)
        require_rate("MinibatchIPADMM", rate=self.rate)
        require_count("MinibatchIPADMM", rounds=self.rounds, inner_steps=self.inner_steps)
        require(
            self.scheme == "poisson",
            f"MinibatchIPADMM(scheme={self.scheme!r}): records must enter by independent coins (with replacement one "
            "record can appear many times); draw Poisson minibatches.",
        )

    def event(self) -> Event:
        """One sampled Gaussian per inner step."""
        steps = self.rounds * self.inner_steps
        if self.rate == 1:
            return repeat(Gaussian(self.multiplier, 1.0 if self.adjacency == "add-remove" else 2.0), steps)
        return repeat(Sampled(self.multiplier, 1.0, self.rate, self.adjacency), steps)

    def assumptions(self) -> tuple[Assumption, ...]:
        """Bounded gradients, the right denominator, hidden minibatches."""
        hidden = Assumption(
            "Minibatches are drawn afresh for every inner step, never shown, and divided by a fixed number.", "ipadmm"
        )
        return (hidden, *_assumptions())


def _assumptions() -> tuple[Assumption, ...]:
    return (
        Assumption("Every record's gradient is bounded, by the loss or by clipping each record.", "ipadmm"),
        Assumption(
            "The sensitivity was computed from the denominator that the step really uses (the new proximity).", "ipadmm"
        ),
        Assumption("Everything a node computes starts from noisy iterates; nodes hold disjoint data.", "ipadmm"),
        *GAUSSIAN_RUN,
    )
