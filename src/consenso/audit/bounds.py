"""What the errors of an attack prove: lower bounds on epsilon, each with a stated confidence.

An attack gives every run a score, high where it believes in world one. Three facts bound epsilon from below:

* At a threshold fixed beforehand the false positive rate a and the false negative rate b of an (epsilon, delta) private
  mechanism satisfy 1 - b <= exp(epsilon) a + delta, and the same with the two exchanged; Clopper and Pearson bound
  both rates.
* The area A under the receiver operating curve is at most 1 - (1 - delta)^2 / (1 + exp(epsilon)): it is the area above
  the lowest trade-off curve that (epsilon, delta) allows. For a mu-GDP mechanism it is at most Phi(mu / sqrt 2). The
  area uses every run and no threshold; its standard error is DeLong's, and the bound is on the logit scale.
* Whatever is claimed as a trade-off curve f is refuted where an upper confidence bound on (a, b) lies below f, or the
  area above what f allows. This is the test that decides; `consenso.audit.families` makes a number of it.

Half of the error probability goes to the threshold, half to the area.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import betaincinv, expit, logit, ndtri

from consenso.arrays import Array
from consenso.errors import InputError

# The share of the runs on which a threshold is chosen; they are not counted afterwards.
CHOOSING = 0.2
# Candidate thresholds are quantiles of the scores.
CANDIDATES = 200
# Above this area the normal approximation is replaced by a binomial bound, which needs no variance.
NEARLY_ONE = 0.995
# False positive rates at which a claimed curve is looked at, dense at both ends.
GRID = np.concatenate([[0.0], np.geomspace(1e-9, 0.5, 4000), 1.0 - np.geomspace(0.5, 1e-9, 4000)[1:], [1.0]])


@dataclass(frozen=True, eq=False)
class Curve:
    """A claimed trade-off curve: the least false negative rate at each false positive rate of `GRID`."""

    values: Array

    def at(self, rate: float) -> float:
        """The curve at a rate, rounded down: it falls, so the next point of the grid to the right is below it."""
        return float(self.values[min(int(np.searchsorted(GRID, rate)), len(GRID) - 1)])

    @property
    def area(self) -> float:
        """The largest area under the receiver operating curve that is allowed, rounded up."""
        return float(1.0 - np.sum(np.diff(GRID) * self.values[1:]))


def upper_rate(count: int, trials: int, confidence: float) -> float:
    """Clopper and Pearson's upper bound on a probability that came true `count` times in `trials`."""
    return 1.0 if count >= trials else float(betaincinv(count + 1, trials - count, confidence))


def lower_rate(count: float, trials: int, confidence: float) -> float:
    """Clopper and Pearson's lower bound; a broken count bounds an average that varies no more than a proportion."""
    return 0.0 if count <= 0 else float(betaincinv(count, trials - count + 1, 1.0 - confidence))


@dataclass(frozen=True, kw_only=True)
class ErrorCounts:
    """How often a test with a fixed threshold was wrong, and bounds on how often it is."""

    false_positives: int
    negatives: int  # runs of world zero
    false_negatives: int
    positives: int  # runs of world one
    confidence: float  # that both upper bounds hold

    def to_json(self) -> dict[str, float]:
        """The rates that were counted, and their upper bounds."""
        a, b = self.upper
        return {
            "false_positives": self.false_positives / self.negatives,
            "false_negatives": self.false_negatives / self.positives,
            "most_false_positives": a,
            "most_false_negatives": b,
            "confidence": self.confidence,
        }

    @property
    def upper(self) -> tuple[float, float]:
        """Upper bounds on the false positive and the false negative rate, together with the stated confidence."""
        each = 1.0 - (1.0 - self.confidence) / 2.0
        return (
            upper_rate(self.false_positives, self.negatives, each),
            upper_rate(self.false_negatives, self.positives, each),
        )

    def epsilon(self, delta: float) -> float:
        """The largest epsilon that these errors rule out at delta, 0 if they rule out none."""
        a, b = self.upper
        return max(_log_ratio(1.0 - delta - b, a), _log_ratio(1.0 - delta - a, b), 0.0)

    def mu(self) -> float:
        """The largest mu that these errors rule out for a mu-GDP mechanism."""
        a, b = self.upper
        return max(0.0, float(ndtri(1.0 - a) - ndtri(b))) if a < 1.0 and b < 1.0 else 0.0

    def refute(self, curve: Curve) -> bool:
        """Whether no mechanism with this trade-off curve allows so few errors."""
        a, b = self.upper
        return b < curve.at(a)


def _log_ratio(top: float, bottom: float) -> float:
    return math.log(top / bottom) if top > 0.0 and bottom > 0.0 else 0.0


@dataclass(frozen=True, kw_only=True)
class Area:
    """The area under the receiver operating curve, and a lower bound on it."""

    estimate: float
    lower: float
    confidence: float

    def epsilon(self, delta: float) -> float:
        """The largest epsilon that this area rules out at delta."""
        left = 1.0 - self.lower
        return max(0.0, math.log(max((1.0 - delta) ** 2 / left - 1.0, 1.0))) if left > 0.0 else math.inf

    def mu(self) -> float:
        """The largest mu that this area rules out for a mu-GDP mechanism."""
        return max(0.0, math.sqrt(2.0) * float(ndtri(self.lower)))

    def refute(self, curve: Curve) -> bool:
        """Whether no mechanism with this trade-off curve has an attack with so large an area."""
        return self.lower > curve.area


def area(zero: Array, one: Array, confidence: float) -> Area:
    """The area under the curve of these scores. Ties count half."""
    from scipy.stats import rankdata

    m, n = len(zero), len(one)
    ranks = rankdata(np.concatenate([zero, one]))
    # For each run, the share of runs of the other world that it beats.
    below = (ranks[m:] - rankdata(one)) / m
    above = 1.0 - (ranks[:m] - rankdata(zero)) / n
    estimate = float(below.mean())
    if estimate <= 0.5:
        return Area(estimate=estimate, lower=min(estimate, 0.5), confidence=confidence)
    # The variance of the estimate is at most that of a proportion of the smaller sample (Birnbaum and Klose 1957).
    few = min(m, n)
    binomial = lower_rate(estimate * few, few, confidence)
    if estimate > NEARLY_ONE:
        return Area(estimate=estimate, lower=binomial, confidence=confidence)
    error = math.sqrt(below.var(ddof=1) / n + above.var(ddof=1) / m)
    moved = logit(estimate) - ndtri(confidence) * error / (estimate * (1.0 - estimate))
    return Area(estimate=estimate, lower=max(float(expit(moved)), 0.0), confidence=confidence)


@dataclass(frozen=True, kw_only=True)
class AttackEvidence:
    """All that the scores of one attack prove, with one confidence for all of it together."""

    errors: ErrorCounts
    area: Area
    confidence: float
    fpr: Array  # the receiver operating curve as rates of errors, for drawing
    fnr: Array

    def epsilon(self, delta: float) -> tuple[float, str]:
        """The best lower bound on epsilon for any mechanism whatever, and how it was found."""
        found = (self.errors.epsilon(delta), "Clopper-Pearson"), (self.area.epsilon(delta), "area under the curve")
        return max(found, key=lambda each: each[0])

    @property
    def mu(self) -> float:
        """The best lower bound on mu for a mu-GDP mechanism."""
        return max(self.errors.mu(), self.area.mu())

    def refutes(self, curve: Curve) -> bool:
        """Whether a claimed trade-off curve cannot be true."""
        return self.errors.refute(curve) or self.area.refute(curve)


def evidence(zero: Array, one: Array, *, delta: float, confidence: float) -> AttackEvidence:
    """Weigh the scores of runs of world zero and of world one."""
    if not 0.5 < confidence < 1.0:
        raise InputError(f"evidence(confidence={confidence}): a confidence lies in (0.5, 1); 0.95 is usual.")
    if min(len(zero), len(one)) < 20:
        raise InputError(
            f"evidence: {len(zero)} and {len(one)} runs say nothing; run at least 20 trials in each world."
        )
    half = 1.0 - (1.0 - confidence) / 2.0
    zero, one = _finite(zero), _finite(one)
    cut0, cut1 = int(CHOOSING * len(zero)), int(CHOOSING * len(one))
    threshold = _threshold(zero[:cut0], one[:cut1], delta, half, len(zero) - cut0)
    errors = ErrorCounts(
        false_positives=int(np.sum(zero[cut0:] > threshold)),
        negatives=len(zero) - cut0,
        false_negatives=int(np.sum(one[cut1:] <= threshold)),
        positives=len(one) - cut1,
        confidence=half,
    )
    thresholds = np.quantile(np.concatenate([zero, one]), np.linspace(0.0, 1.0, CANDIDATES + 1))
    return AttackEvidence(
        errors=errors,
        area=area(zero, one, half),
        confidence=confidence,
        fpr=np.array([np.mean(zero > each) for each in thresholds]),
        fnr=np.array([np.mean(one <= each) for each in thresholds]),
    )


def _finite(scores: Array) -> Array:
    return np.nan_to_num(scores, nan=0.0, posinf=1e300, neginf=-1e300)


def _threshold(zero: Array, one: Array, delta: float, confidence: float, trials: int) -> float:
    """The threshold that promises the largest epsilon, were the remaining runs like these."""
    candidates = np.unique(np.quantile(np.concatenate([zero, one]), np.linspace(0.0, 1.0, CANDIDATES + 1)))

    def count_expected(wrong: int, runs: int) -> int:
        # Half an error more than was seen: a threshold that happened to make none is not worth infinitely much.
        return math.ceil((wrong + 0.5) / (runs + 1) * trials)

    def promise(threshold: float) -> tuple[float, float]:
        expected = ErrorCounts(
            false_positives=count_expected(int(np.sum(zero > threshold)), len(zero)),
            negatives=trials,
            false_negatives=count_expected(int(np.sum(one <= threshold)), len(one)),
            positives=trials,
            confidence=confidence,
        )
        return expected.epsilon(delta), expected.mu()

    return float(max(candidates, key=promise))
