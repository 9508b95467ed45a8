"""Noisy proximal descent on losses of a score, many settings at once: the rival that every loss and trust has."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from benchmarks.utility.classical import multiplier
from benchmarks.utility.development_sets import Development
from consenso.arrays import Array
from consenso.shards.constant import constant_for, whole_bound, with_constant

STEPS = (15, 60, 160)
# Labels want longer steps and clip less.
RATES, CLIPS = (0.5, 2.0, 8.0), (1.0, 0.3, 0.1, 0.03)
RATES_OF_LABELS, CLIPS_OF_LABELS = (8.0, 32.0, 128.0), (1.0, 0.3)
# Seeds on which a setting is chosen; those on which it is measured are others.
TUNING = (1000, 1001)

Slopes = Callable[[Array, Array, Array], Array]  # of scores (rows, settings), targets (rows, 1), clips (1, settings)


@dataclass(frozen=True, kw_only=True)
class Setting:
    """rate: times gradients of rows of length 1 over their clip. level: of the 1-norm, over the largest gradient."""

    steps: int
    rate: float
    clip: float
    follows: bool = False  # Adam's steps
    level: float = 0.0


def grid(
    levels: tuple[float, ...] = (0.0,), rates: tuple[float, ...] = RATES, clips: tuple[float, ...] = CLIPS
) -> list[Setting]:
    """All settings, plain and with Adam."""
    every = itertools.product(STEPS, rates, clips, (False, True), levels)
    return [
        Setting(steps=steps, rate=rate, clip=clip, follows=follows, level=level)
        for steps, rate, clip, follows, level in every
    ]


@dataclass(frozen=True, eq=False)
class Descent:
    """A table whose rows have length 1 at most, with a constant column, and slopes of a loss; targets within 1."""

    table: Development
    slopes: Slopes
    targets: Array

    def fit(self, settings: list[Setting], epsilon: float, delta: float, seed: int, louder: float) -> Array:
        """Models of settings that take equally many steps, (features + 1, settings): averages of the late half.

        louder: what noise has beyond that of a curator who adds or removes a record.
        """
        rows, rng = self._rows(self.table.X), np.random.default_rng([seed, 5])
        steps, many = settings[0].steps, len(settings)
        rates, clips, levels = (
            np.array([[getattr(each, name) for each in settings]]) for name in ("rate", "clip", "level")
        )
        follows = np.array([[each.follows for each in settings]])
        noise = louder * multiplier(epsilon, delta) * math.sqrt(steps) / len(rows)
        model = np.zeros((rows.shape[1], many))
        first, second, late = model.copy(), model.copy(), model.copy()
        for step in range(steps):
            found = rows.T @ self.slopes(rows @ model, self.targets[:, None], clips) / len(rows) / clips
            found += noise * rng.normal(size=model.shape)
            first, second = 0.9 * first + 0.1 * found, 0.99 * second + 0.01 * found**2
            size = np.sqrt(second / (1 - 0.99 ** (step + 1))) + 1e-12
            adam = 0.02 * first / (1 - 0.9 ** (step + 1)) / size
            model = model - rates * np.where(follows, adam, found)
            threshold = rates * np.where(follows, 0.02, 1.0) * levels
            model[:-1] -= np.clip(model[:-1], -threshold, threshold)
            late += model if step >= steps // 2 else 0.0
        return late / (steps - steps // 2)

    def predict(self, models: Array) -> Array:
        """Scores of the test part in units of the targets, (rows, settings)."""
        return self._rows(self.table.X_test) @ models

    def measure_best(
        self,
        settings: list[Setting],
        loss: Callable[[Array], float],
        epsilon: float,
        delta: float,
        seeds: int,
        louder: float = 1.0,
    ) -> list[float]:
        """Losses on the test part, seed by seed, of the setting that is best there."""
        found: dict[Setting, float] = {}
        for steps in sorted({each.steps for each in settings}):
            some = [each for each in settings if each.steps == steps]
            totals = np.zeros(len(some))
            for seed in TUNING:
                scores = self.predict(self.fit(some, epsilon, delta, seed, louder))
                totals += [loss(column) for column in scores.T]
            found.update(zip(some, totals, strict=True))
        best = min(found, key=lambda each: found[each] if math.isfinite(found[each]) else math.inf)
        fits = (self.fit([best], epsilon, delta, seed, louder) for seed in range(seeds))
        return [loss(self.predict(model)[:, 0]) for model in fits]

    def _rows(self, X: Array) -> Array:
        bound = self.table.row_bound
        constant = constant_for(bound)
        rows: Array = with_constant(np.asarray(X), bound, constant, "descent") / whole_bound(bound, constant)
        return rows
