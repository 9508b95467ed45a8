"""When a claim is reproduced: one definition for all papers, which uses the spread over seeds.

A claim is *reproduced* when it holds in the corrected runs, or, where there are none, in the published ones; it holds
*only with the flaw* when it holds in published runs and fails in corrected ones; otherwise it is *not reproduced*.
Where the spread over the seeds leaves open whether it holds, it is *undecided*: a small grid may leave open what a
large one decides, and contradicts it no more often than LEVEL allows.

A comparison holds when the confidence interval of the mean difference shows a gain of at least MATERIAL, and fails when
it shows less. A number agrees with a reported one when the whole interval of its mean lies within OPEN of it, and
disagrees when all of it lies outside.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, TypeAlias

import numpy as np
from scipy.stats import t as student

from consenso.arrays import Array
from experiments.outcome import State

Answer: TypeAlias = Literal["yes", "no", "unclear"]

LEVEL = 0.95  # of intervals
# What papers leave open (starts, shares, stopping, rounding) moves their numbers by about as much as this.
OPEN = 0.1
MATERIAL = 0.01  # of the larger number: what a figure can show


def decide(*, published: Answer | bool, corrected: Answer | bool | None = None) -> State:
    """The state of a claim that holds, or not, in published runs and, where there are any, in corrected ones."""
    wrong = _answer(published)
    right = wrong if corrected is None else _answer(corrected)
    if right == "yes":
        return "reproduced"
    if "unclear" in (right, wrong):
        return "undecided"
    return "only with the flaw" if wrong == "yes" else "not reproduced"


def below(ones: Array, others: Array, *, paired: bool = False) -> Answer:
    """Whether the mean of `ones` is below that of `others`, over seeds; `paired` if both used the same draws."""
    low, high = difference(ones, others, paired=paired)
    gain = -MATERIAL * abs(float(np.mean(others)))
    return "yes" if high < gain else "no" if low > gain else "unclear"


def at_or_below(ones: Array, others: Array, *, paired: bool = False) -> Answer:
    """Whether the mean of `ones` is not above that of `others` by more than OPEN of it."""
    return below(np.asarray(ones), (1 + OPEN) * np.asarray(others), paired=paired)


def near(found: Array | float, told: float) -> Answer:
    """Whether a number, or the mean of a number over seeds, agrees with a reported one."""
    low, high = (found, found) if isinstance(found, int | float) else interval(found)
    slack = OPEN * abs(told)
    if told - slack <= low and high <= told + slack:
        return "yes"
    return "no" if high < told - slack or low > told + slack else "unclear"


def everywhere(answers: Iterable[Answer | bool]) -> Answer:
    """Whether something holds in all of several places."""
    found = {_answer(each) for each in answers}
    return "no" if "no" in found else "unclear" if "unclear" in found else "yes"


def interval(found: Array) -> tuple[float, float]:
    """Student's interval of the mean at LEVEL; infinite for one seed, whose spread is not known."""
    values = np.asarray(found, dtype=float)
    return _around(float(values.mean()), _square(values), len(values) - 1)


def difference(ones: Array, others: Array, *, paired: bool = False) -> tuple[float, float]:
    """The interval of mean(ones) - mean(others), paired or Welch's."""
    ones, others = np.asarray(ones, dtype=float), np.asarray(others, dtype=float)
    if paired:
        return interval(ones - others)
    squares = np.array([_square(ones), _square(others)])
    freedom = np.array([len(ones) - 1, len(others) - 1])
    if freedom.min() < 1:
        return -np.inf, np.inf
    parts = squares**2 / freedom
    degrees = float(squares.sum() ** 2 / parts.sum()) if parts.sum() > 0 else 1.0
    return _around(float(ones.mean() - others.mean()), float(squares.sum()), degrees)


def _answer(given: Answer | bool) -> Answer:
    return given if isinstance(given, str) else "yes" if given else "no"


def _square(values: Array) -> float:
    """Squared standard error of the mean."""
    return float(values.var(ddof=1) / len(values)) if len(values) > 1 else np.inf


def _around(middle: float, square: float, degrees: float) -> tuple[float, float]:
    if not np.isfinite(square):
        return -np.inf, np.inf
    half = float(student.ppf((1 + LEVEL) / 2, degrees)) * np.sqrt(square)
    return middle - half, middle + half
