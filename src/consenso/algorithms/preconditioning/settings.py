"""Settings of PreconditionedFixedPoint: which releases there are, what they cost, and in which round each is due."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from consenso.algorithms.preconditioning import length_laws, target_counts
from consenso.algorithms.shape import require_positive
from consenso.errors import InputError
from consenso.public_facts import PublicFacts

# Of the budget of the second moments the first release gets this much: the second one is the one that counts.
FIRST_SHARE = 1 / 3
# Of the budget: counts of slopes; and, of that of the gradients, the steps before those.
SIZES_SHARE, WARMUP_SHARE = 0.03, 0.15
# Of the budget of the gradients: the length of a model of labels.
LENGTH_SHARE = 0.04


@dataclass(frozen=True, kw_only=True)
class WhitenedSettings:
    """What the rules of a solver choose (`PreconditionedFixedPoint` says what each is), checked."""

    moment_releases: int = 1
    share: float = 0.1
    steps: int | None = None
    fewest_steps: int = 6
    clip: float | None = None
    counts: bool = False
    counts_share: float = target_counts.SHARE
    target_bins: int = target_counts.BINS
    constant: float = 0.0
    warmup_steps: int = 0
    smoothing: float = 0.0
    threshold: float | None = None
    follows: bool = False
    lengths: bool = False
    length_share: float = LENGTH_SHARE
    damping: bool = True
    averaging: bool = True

    def __post_init__(self) -> None:
        require_positive(self, clip=self.clip)
        if self.moment_releases not in (0, 1, 2):
            raise InputError(
                f"PreconditionedFixedPoint(moment_releases={self.moment_releases}): the second moment is released 0 "
                "to 2 times."
            )
        for name in ("share", "length_share"):
            if not 0 < getattr(self, name) < 1:
                given = f"PreconditionedFixedPoint({name}={getattr(self, name)})"
                raise InputError(f"{given}: a share of the budget lies in (0, 1).")
        target_counts.check_settings(self)
        if not 0 <= self.smoothing < np.inf:
            raise InputError(f"PreconditionedFixedPoint(smoothing={self.smoothing}): a width is finite, 0 for none.")
        if (self.steps is not None and self.steps < 1) or self.fewest_steps < 1:
            raise InputError("PreconditionedFixedPoint(steps=..., fewest_steps=...): at least one step is taken.")
        require_positive(self, threshold=self.threshold)
        if not 0 <= self.warmup_steps < (self.steps or self.fewest_steps):
            raise InputError(
                f"PreconditionedFixedPoint(warmup_steps={self.warmup_steps}): steps must follow; take fewer."
            )

    @property
    def noise_weights(self) -> Mapping[str, float]:
        """Multipliers of the releases relative to that of a single release with the whole budget."""
        parts = {
            "targets": self.counts_share if self.counts else 0.0,
            "second moment": self.share if self.moment_releases else 0.0,
            "slopes": SIZES_SHARE if self.warmup_steps else 0.0,
        }
        parts["gradient"] = 1 - sum(parts.values())
        return {name: part**-0.5 for name, part in parts.items() if part}

    @property
    def other_rounds(self) -> int:
        """Rounds that are no steps."""
        return self.counts + self.moment_releases + (self.warmup_steps > 0) + self.lengths

    @property
    def length_numbers(self) -> int:
        """How many numbers tell of the length of the model in the end."""
        return length_laws.NUMBERS if self.lengths else 0

    def _kind(self, facts: PublicFacts) -> str:
        if self.counts and facts.is_before(1):
            return "targets"
        if facts.is_before(self.counts + self.moment_releases):
            return "second moment"
        sizes = self.counts + self.moment_releases + self.warmup_steps
        return (
            "slopes" if self.warmup_steps and facts.is_before(sizes + 1) and not facts.is_before(sizes) else "gradient"
        )

    def _count_moments(self, round_: int) -> int:
        """How many second moments were released before a round."""
        return round_ - self.counts
