"""What one run proves, measured: three bounds on the same runs and scores, as text for a page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from consenso.algorithms.dp_sgd import DPSGD
from consenso.audit.guesses import mu_of_claim
from consenso.audit.neighbours import FAR, silence
from consenso.audit.one_run import OneRun, canaries, one_run, weigh
from consenso.conventions import LARGEST_DELTA
from consenso.losses import Huber
from consenso.planning.plan import plan
from consenso.privacy.calibrate import EpsilonDelta
from consenso.privacy.events import Gaussian, Pure
from consenso.privacy.observers import Public
from consenso.problem import Problem
from consenso.regularizers import NoPenalty

BEGIN, END = "<!-- table of one run: begin -->", "<!-- table of one run: end -->"
# Of the runs whose means are shown.
SEEDS = range(16)
# Rounds of the runs that are attacked.
ROUNDS = 4


@dataclass(frozen=True)
class Setting:
    """A claim, and where the canaries are."""

    epsilon: float
    canaries: int
    features: int | None  # None: no model, independent scores

    @property
    def what(self) -> str:
        """The setting in words."""
        if self.features is None:
            return "independent Gaussian scores"
        hidden = "an axis each" if self.features >= self.canaries else "random directions, which hide each other"
        return f"DPSGD, {self.features:,} features: {hidden}"


SETTINGS = (
    Setting(3.0, 2000, None),
    Setting(8.0, 2000, None),
    Setting(3.0, 2000, 2000),
    Setting(8.0, 2000, 2000),
    Setting(8.0, 500, 500),
    Setting(8.0, 500, 100),
)


def measure(setting: Setting, *, seeds: Sequence[int], confidence: float = 0.95) -> list[OneRun]:
    """One run for each seed."""
    delta = LARGEST_DELTA
    claim = Gaussian(std=1.0, sensitivity=mu_of_claim(Pure(setting.epsilon), delta))
    if setting.features is None:
        drawn = [draw(claim.sensitivity, setting.canaries, seed) for seed in seeds]
        return [weigh(scores, coins, delta=delta, confidence=confidence, claim=claim) for scores, coins in drawn]
    problem = Problem(
        loss=Huber(threshold=1.0),
        regularizer=NoPenalty(),
        features=setting.features,
        sizes=np.array([setting.canaries]),
        row_bound=1.0,
        target_bound=FAR,
    )
    made = plan(
        problem,
        DPSGD(step=1.0, averaging=0.0),
        rounds=ROUNDS,
        target=EpsilonDelta(epsilon=setting.epsilon, delta=delta),
        observer=Public(),
    )
    data = [silence(problem, int(size)) for size in problem.sizes]
    event = made.guarantee(Public(), delta).event
    return [
        one_run(
            made,
            data,
            canaries(problem, setting.canaries, seed=seed),
            delta=delta,
            confidence=confidence,
            seed=seed,
            view="model",
            claim=event,
        )
        for seed in seeds
    ]


def draw(mu: float, count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Independent scores of a Gaussian mechanism, and the coins of their canaries."""
    rng = np.random.default_rng(seed)
    coins = rng.integers(2, size=count).astype(bool)
    return (coins - 0.5) * mu + rng.normal(size=count), coins


def draw_coupled(mu: float, count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Scores and coins of canaries each of which is mu-GDP, whatever the others are, and which all show as much.

    The log likelihood ratio of a Gaussian pair has a size and a sign that is right with a chance that depends on the
    size. Here the sizes of all canaries are one draw, and the signs are independent.
    """
    rng = np.random.default_rng(seed)
    size = abs(mu * (rng.normal() + mu * (rng.random() < 0.5)) - mu**2 / 2)
    coins = rng.random(count) < 0.5
    right = rng.random(count) < 1 / (1 + np.exp(-size))
    # Ties would make thresholds fewer: what is added says nothing of the coins.
    return np.where(right == coins, size, -size) + 1e-6 * rng.normal(size=count), coins


def markdown(measured: Sequence[tuple[Setting, Sequence[OneRun]]]) -> str:
    """One row for each setting: means over its runs, and the share of the claim."""
    runs = measured[0][1]
    lines = [
        f"Epsilon at delta {runs[0].delta:g}, each bound with confidence {runs[0].confidence:g}; means over "
        f"{len(runs)} runs, and the share of the claim.",
        "",
        "| claimed | canaries | run | any mechanism (Steinke et al. 2023) | claimed curve (Mahloujifar et al. 2024) | "
        "Gaussian pair, if scores are independent |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for setting, found in measured:
        means = [float(np.mean([getattr(run, name) for run in found])) for name in ("lower", "within", "pair")]
        cells = [f"{mean:.2f}, {mean / setting.epsilon:.0%}" for mean in means]
        lines.append(f"| {setting.epsilon:g} | {setting.canaries:,} | {setting.what} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"
