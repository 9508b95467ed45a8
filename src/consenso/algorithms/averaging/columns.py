"""What DualAveraging finds out before its steps: centres, sizes and scales of columns, directions, clips.

All of it is post-processing; rows are never seen here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import expit

from consenso.algorithms.averaging import noisy_squares
from consenso.algorithms.averaging.centring import (
    LEAST_SCALE,
    MOST_DIRECTIONS,
    NARROWEST_WIDTH,
    SHORTEST_CLIP,
)
from consenso.algorithms.averaging.column_sizes import find_level, find_trace
from consenso.algorithms.averaging.directions import (
    LENGTHS_SHARE,
    PASSES,
    RANGE_SHARE,
    Pass,
    find_least,
    least_worth,
    most_directions,
    shrink,
    start_directions,
)
from consenso.algorithms.averaging.hub import Hub
from consenso.algorithms.averaging.sketch import SKETCH_SHARE, measure_strength
from consenso.algorithms.preconditioning import noise_levels, target_counts
from consenso.algorithms.shape import require_positive
from consenso.arrays import Array
from consenso.errors import InputError
from consenso.problem import Problem
from consenso.public_facts import PublicFacts
from consenso.regularizers import L2, NoPenalty, Unpenalized

# Shares of the squared budget.
MEAN_SHARE, SQUARES_SHARE, LENGTH_SHARE = 0.01, 0.02, 0.04
# Centred rows are shortened to this part of their typical length: most of them then weigh alike, and noise is less.
CLIP = 0.7
# Exponent of the scales of columns: 1 gives all of them one size, as far as they stand out.
SCALING = 1.0
# What of the slopes of labels is given up where noise is loud, first and in the last part of the steps. Narrow slopes
# let all records speak alike until they are learnt, with little noise, and make scores too long that are learnt well;
# what noise does not hide, an intercept first of all, falls back in the last part.
GIVEN_UP, GIVEN_UP_LATE, LATE_PART = 0.7, 0.3, 0.1
# No column has less than this part of its variance across the directions.
LEAST_ACROSS = 0.05
# Columns are taken for no emptier than this part of the squared row bound.
EMPTIEST = 1e-8


@dataclass(frozen=True, kw_only=True)
class AveragedColumns:
    """Settings, and what the releases before the steps tell."""

    clip: float | None = None
    width: float | None = None
    smoothing: float = 0.0
    scaling: float = SCALING
    directions: int = 0
    target_bins: int = 0
    counts_share: float = target_counts.SHARE
    constant: float = 0.0
    lengths: bool = False

    def __post_init__(self) -> None:
        require_positive(self, clip=self.clip)
        if self.width is not None and not NARROWEST_WIDTH <= self.width <= 1:
            raise InputError(f"DualAveraging(width={self.width}): a width lies in [{NARROWEST_WIDTH:g}, 1].")
        if not 0 <= self.scaling <= 1:
            raise InputError(f"DualAveraging(scaling={self.scaling}): an exponent between 0, for none, and 1.")
        if not 0 <= self.directions <= MOST_DIRECTIONS or self.directions != int(self.directions):
            raise InputError(f"DualAveraging(directions={self.directions}): from 0, for none, to {MOST_DIRECTIONS}.")
        if not 0 <= self.smoothing < np.inf:
            raise InputError(f"DualAveraging(smoothing={self.smoothing}): smoothing is a finite number, 0 for none.")
        target_counts.check_settings(self, 0)

    @property
    def noise_weights(self) -> Mapping[str, float]:
        """Multipliers of the releases relative to that of a single release with the whole budget."""
        parts = {"mean": MEAN_SHARE, "squares": SQUARES_SHARE}
        if self.directions:
            parts |= {"lengths": LENGTHS_SHARE, "sketch": SKETCH_SHARE, "range": RANGE_SHARE}
        if self.target_bins:
            parts |= {"targets": self.counts_share}
        if self.lengths:
            parts |= {"length": LENGTH_SHARE}
        spent = sum(parts.values()) + parts.get("lengths", 0.0)  # which are released twice
        return {name: part**-0.5 for name, part in (parts | {"gradient": 1 - spent}).items()}

    def first_releases(self, problem: Problem) -> tuple[str, ...]:
        """What is released in the rounds before the steps."""
        targets = ("targets",) if self.target_bins and problem.loss.targets == "real" else ()
        directions = ("lengths", "sketch", *PASSES * ("range",), "lengths") if self._count(problem) else ()
        return (*targets, *free_columns(problem) * ("mean",), "squares", *directions)

    def _count(self, problem: Problem) -> int:
        """How many directions are looked for."""
        wanted = self.directions if square_of(problem) is not None else 0
        return most_directions(wanted, problem.features, free_columns(problem))

    def other_rounds(self, problem: Problem) -> int:
        """Rounds that are no steps."""
        return len(self.first_releases(problem)) + self._asks_length(problem)

    def _asks_length(self, problem: Problem) -> bool:
        return self.lengths and problem.loss.is_likelihood

    def _kind(self, facts: PublicFacts) -> str:
        if self._asks_length(facts.problem) and not facts.is_before(facts.rounds - 1):
            return "length"
        first = enumerate(self.first_releases(facts.problem))
        return next((kind for place, kind in first if facts.is_before(place + 1)), "gradient")

    def _steps(self, facts: PublicFacts) -> int:
        return max(1, facts.rounds - self.other_rounds(facts.problem))

    def _early_steps(self, facts: PublicFacts, hub: Hub) -> int:
        """Steps in the rounds of the passes, where these do not look for directions."""
        return PASSES if self._count(facts.problem) and not hub.looks else 0

    def start(self, facts: PublicFacts) -> Hub:
        bound, count = facts.problem.row_bound, self._count(facts.problem)
        zero = np.zeros(facts.dim + count * facts.problem.outputs)
        return Hub(
            shift=np.empty(0),
            scales=np.empty(0),
            directions=np.empty((0, 0)),
            shrinks=np.empty(0),
            looks=count > 0,
            found=np.zeros(count),
            astray=0.0,
            variances=np.full(facts.problem.features + count, bound**2),
            likely=np.full(facts.problem.features + count, bound**2),
            length=bound,
            clip=bound,
            width=1.0,
            spread=0.0,
            step=1.0,
            taken=0,
            gradient=zero,
            u=zero,
            variance=zero,
            chance=zero,
            kept=np.ones_like(zero),
            factor=1.0,
        )

    def _take_targets(self, facts: PublicFacts, hub: Hub, counts: Array) -> Hub:
        """Steps start at the constant model, and residuals are clipped by their spread around it."""
        problem, u = facts.problem, hub.u
        found = target_counts.read_constant_model(problem, counts, facts.noise["targets"])
        spread = found.spread
        if self.constant and free_columns(problem):
            u = u.copy()
            u[facts.dim - 1] = found.scores[0] / self.constant
        else:
            spread = float(np.hypot(spread, found.scores[0]))
        unit = self.smoothing or noise_levels.slope_limit(problem)
        return replace(hub, u=u, spread=min(1.0, spread / unit))

    def _measure(self, facts: PublicFacts, hub: Hub, squares: Array, noise: float) -> Hub:
        """Variances around the mean, the length of a typical row, and what follows from both."""
        bound = facts.problem.row_bound
        last = float(np.clip(squares[-1], 0.0, bound**2))
        around = squares - (np.square(hub.shift) * last if hub.shift.size else 0.0)
        variances = np.clip(around, max(noise, EMPTIEST * bound**2), bound**2)
        scales = self._scales(facts, variances, around, noise)
        likely = np.clip(noisy_squares.expect(around, noise), EMPTIEST * bound**2, bound**2)
        likely = np.append(likely, hub.likely[len(variances) :])
        variances = np.append(variances, hub.variances[len(variances) :])
        hub = replace(hub, scales=scales, variances=variances, likely=likely, width=self._width(facts, hub))
        return self._clip(facts, hub, find_trace(around, scales, noise))

    def _clip(self, facts: PublicFacts, hub: Hub, squared: float, part: float = CLIP) -> Hub:
        """Rows of this mean squared length are shortened to a part of it."""
        bound = facts.problem.row_bound
        length = float(np.sqrt(np.clip(squared, (SHORTEST_CLIP * bound) ** 2, bound**2)))
        longest = bound * (1 + float(np.linalg.norm(hub.shift)))
        clip = part * length if self.clip is None else self.clip
        return replace(hub, length=length, clip=float(np.clip(clip, SHORTEST_CLIP * bound, longest)))

    def _shorten(self, facts: PublicFacts, hub: Hub, squares: Array, noise: float) -> Hub:
        """The length of a typical row; the second time, what lies along directions is made smaller."""
        problem, least = facts.problem, EMPTIEST * facts.problem.row_bound**2
        across = max(float(squares[-1]) + noise, least)
        if not hub.directions.size:
            start = start_directions(problem.features, self._count(problem), free_columns(problem))
            hub = replace(hub, directions=start, shrinks=np.ones(start.shape[1]))
            return self._clip(facts, hub, across, part=1.0)
        along = np.clip(squares[:-1], max(noise, least), problem.row_bound**2)
        across += float(along @ (1 - hub.found))
        shrinks = np.maximum(shrink(along, across, hub.found), LEAST_SCALE)
        strong = shrinks < 1
        columns, scales = hub.variances[: problem.features], np.square(hub.scales)
        taken = np.square(hub.directions) @ np.where(strong, along, 0.0)
        left = np.maximum(columns - taken / scales, LEAST_ACROSS * columns)
        astray = float(np.max(hub.astray * np.where(strong, along, 0.0)))
        likely = np.append(hub.likely[: problem.features] * left / columns, along)
        hub = replace(hub, shrinks=shrinks, astray=astray, variances=np.append(left, along), likely=likely)
        return self._clip(facts, hub, across + float(np.square(shrinks) @ np.where(strong, along, 0.0)))

    def _decide(self, facts: PublicFacts, hub: Hub, moment: Array, noise: float) -> Hub:
        """Directions are looked for where rows have so much along them that passes find it and are worth it."""
        features, square = facts.problem.features, hub.clip**2
        turned = facts.noise.get("range", 0.0) / facts.problem.records * PASSES**0.5
        found = find_least(turned, features, self._count(facts.problem))
        if measure_strength(moment / square, noise, found) >= least_worth(self._range_part()):
            return hub
        return self._clip(facts, replace(hub, looks=False), hub.length**2)

    def _range_part(self) -> float:
        """Of the budget that is left after the sketch for passes and steps."""
        range_, gradient = (self.noise_weights[name] ** -2 for name in ("range", "gradient"))
        return range_ / (range_ + gradient)

    def _turn(self, facts: PublicFacts, hub: Hub, products: Array, noise: float) -> Hub:
        """Directions after one more pass."""
        problem = facts.problem
        shape = problem.features, self._count(problem)
        products = products[: shape[0] * shape[1]].reshape(shape)
        found = Pass.read(products, noise * hub.clip**2 * PASSES**0.5, free_columns(problem))
        turned = float(np.max(found.astray * found.found))
        return replace(hub, directions=found.vectors, found=found.found, astray=turned)

    def _scales(self, facts: PublicFacts, variances: Array, around: Array, noise: float) -> Array:
        """What columns are multiplied with; the free one keeps its share of a row.

        Columns that noise may have made large are left alone: see `find_level`.
        """
        if not self.scaling:
            return np.ones(len(variances)) if self._count(facts.problem) else np.empty(0)
        rest = len(variances) - free_columns(facts.problem)
        scales = np.ones(len(variances))
        least = max(float(variances[:rest].min()), find_level(rest) * noise)
        scales[:rest] = np.minimum(least / variances[:rest], 1.0) ** (self.scaling / 2)
        # Noise of the whole row costs (columns + 1 / share^2) (1 + share^2): least at this share of the free column.
        share = rest**-0.25
        scales[rest:] = share * np.sqrt(find_trace(around[:rest], scales[:rest], noise) / variances[rest:])
        return np.clip(scales, LEAST_SCALE, 1.0)

    def _width(self, facts: PublicFacts, hub: Hub) -> float:
        """Where slopes are clipped: those of labels by the noise, residuals by the spread of the targets."""
        if self.width is not None:
            return self.width
        if hub.spread:
            return max(NARROWEST_WIDTH, noise_levels.FIRST_CLIP * hub.spread)
        if self.smoothing or facts.problem.loss.targets == "real":
            return 1.0
        levels = noise_levels.NoiseLevels.of(facts, self._curvature(facts, hub), facts.problem.features)
        late = hub.taken >= (1 - LATE_PART) * self._steps(facts) + self._early_steps(facts, hub)
        return min(1.0, self._rarity(facts, hub) * levels.slopes_without(GIVEN_UP_LATE if late else GIVEN_UP))

    def _rarity(self, facts: PublicFacts, hub: Hub) -> float:
        """The largest slope of the constant model, over that for even labels: from 1 to 2.

        Where a label is rare the slopes of its records are long, and what is given up of them all but silences it.
        """
        if not (self.constant and free_columns(facts.problem)) or facts.problem.outputs > 1:
            return 1.0
        return 2 * float(expit(abs(self.constant * hub.u[facts.dim - 1])))

    def _curvature(self, facts: PublicFacts, hub: Hub) -> float:
        return noise_levels.curvature_of(facts.problem.loss, self.smoothing * hub.width)


def square_of(problem: Problem) -> float | None:
    """The strength of a regularizer that is a square of all columns but the free one, 0 for none; else None."""
    regularizer = problem.regularizer
    inner = regularizer.inner if isinstance(regularizer, Unpenalized) and free_columns(problem) else regularizer
    if isinstance(inner, L2):
        return inner.strength
    return 0.0 if isinstance(inner, NoPenalty) else None


def free_columns(problem: Problem) -> int:
    """1 if the regularizer leaves the last column alone, and no other."""
    regularizer = problem.regularizer
    return int(isinstance(regularizer, Unpenalized) and regularizer.last == problem.outputs and problem.features > 1)
