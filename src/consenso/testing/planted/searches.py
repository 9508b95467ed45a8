"""Attacks through a whole `PrivateSearchCV`: its draws, noisy scores and choice are the library's own.

Only the fits are made cheap: a noisy sum, than which no fit of the same mu shows more. In the first pair of neighbours
a record of the part that is fitted differs, and scores grow with the noisy sum, so that the search chooses by what it
must not tell. In the second one a record that is held out differs, and every fit is alike.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Literal
from unittest import mock

import numpy as np

from consenso.arrays import Array
from consenso.audit.bounds import evidence
from consenso.audit.families import curve_of
from consenso.estimators.logistic import PrivateLogisticRegression
from consenso.estimators.search import PrivateSearchCV, SearchPlan
from consenso.privacy.calibrate import EpsilonDelta, calibrate_noise
from consenso.privacy.earlier import Earlier
from consenso.privacy.events import Gaussian

Differs = Literal["fitted", "held out"]
# So few draws in the mean that more of them show. A number that is the same in every search is one that is known.
EPSILON, DELTA, DRAWS = 3.0, 1e-5, 1.05
ROWS = 400
# Scores grow with the noisy sum by so many records for each unit: much more than their own noise.
PACE = 20.0


@lru_cache(maxsize=8)
def _noise_of(epsilon: float, delta: float) -> float:
    return calibrate_noise(lambda multiplier: Gaussian(multiplier, 1.0), EpsilonDelta(epsilon=epsilon, delta=delta))


class _NoisySum(PrivateLogisticRegression):
    """The noisy sum of the first column, which one record moves by 1; with alpha = 0 predictions do not follow it."""

    def fit(self, X: Any, y: Any) -> _NoisySum:  # type: ignore[override]
        noise = _noise_of(self.epsilon, self.delta)
        self.sum_ = float(X[:, 0].sum() + noise * np.random.default_rng(self.random_state).normal())
        self.guarantee_: Any = SimpleNamespace(event=Gaussian(noise, 1.0))
        self.notes_: tuple[str, ...] = ()
        return self

    def predict(self, X: Any) -> Any:
        """Right for so many of the records, all of which are of class 1."""
        right = len(X) / 2 + PACE * self.sum_ * float(self.alpha or 0.0)
        return (np.arange(len(X)) < right).astype(int)


def attack_search(differs: Differs, runs: int, seed: int = 0, confidence: float = 0.99) -> tuple[float, float]:
    """The epsilon that searches prove and the one that is claimed; an AssertionError if the claim is refuted."""
    plan = SearchPlan.calibrate(EPSILON, DELTA, DRAWS, simulation=True)
    # Every search makes the same plan.
    with mock.patch.object(SearchPlan, "calibrate", return_value=plan):
        zero, one = (_search_often(differs, world, runs, seed) for world in (0, 1))
    shown = evidence(zero, one, delta=DELTA, confidence=confidence)
    proved, claimed = shown.epsilon(DELTA)[0], plan.promise.epsilon(DELTA)
    refuted = proved > claimed or shown.refutes(curve_of(plan.event))
    assert not refuted, f"REFUTED: {proved:.3g} of {claimed:.3g}"
    return proved, claimed


def _search_often(differs: Differs, world: int, runs: int, seed: int) -> Array:
    """What an attacker scores of each search in one world."""
    fitted = differs == "fitted"
    model = _NoisySum(classes=[0, 1], row_bound=1.0, alpha=float(fitted))

    def make(state: int) -> PrivateSearchCV:
        return PrivateSearchCV(
            model,
            {"alpha": [model.alpha]},
            epsilon=EPSILON,
            delta=DELTA,
            draws=DRAWS,
            validation=0.5,
            random_state=state,
        )

    train, held = make(0)._split(ROWS)
    rows, labels = np.zeros((ROWS, 1)), np.ones(ROWS, dtype=int)
    rows[train[0], 0] = float(fitted and world)
    labels[held[0]] = 1 if fitted else 1 - world
    found = np.empty(runs)
    for run in range(runs):
        search = make((2 * seed + world) * runs + run).fit(rows, labels)
        # A record that is held out, and was predicted rightly, makes the score smaller when it is changed.
        found[run] = search.best_estimator_.sum_ if fitted else -search.best_score_
    return found


def search_a_known_number(folder: Path) -> None:
    """Take the best of a hundred fits, and pay for a number that is hidden and small in the mean."""
    with mock.patch("consenso.estimators.search._draw_count", return_value=100):
        attack_search("fitted", 100)


def search_without_noise(folder: Path) -> None:
    """Tell the exact score of the fit that was chosen."""
    with mock.patch.object(Earlier, "release", lambda self, time, exact, *rest: exact):
        attack_search("held out", 100)
