"""How long a wide model should be, measured at its end: how the loss changes as it is made longer or shorter.

Losses of labels flatten as scores grow, so that steps made for their curvature at the start end short of the optimum;
and noise makes a model longer than it should be. Both are mended by one number, and one number is cheap:

    a record    v_k = d/d(log s) phi(<a, origin + s (x - origin)>, b)   at the scales s_k of SCALES,
                shortened to the length `reach`
    released    the noisy sum of the v: the slope of the loss along the model at every scale
    length      that of the least loss and penalty, with slopes straight between the scales, where it is less than at 1
                by more than noise explains

Only records that a model gets very wrong are shortened, which lets the rest ask for a longer model than they should:
`reach` is as wide as noise allows, so that with little noise nothing is shortened (docs/privacy.md#length-of-a-model).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from consenso.arrays import Array, IntArray
from consenso.errors import MessageError
from consenso.privacy.release import Bounds, Release, sum_rounding
from consenso.public_facts import PublicFacts
from consenso.rows import moment_step
from consenso.shards import Cohort

# Half octaves, at which slopes are released, and lengths that a model may get; one that is left is left bit for bit.
SCALES = 2.0 ** np.linspace(-1, 1, 5)
CANDIDATES = 2.0 ** np.linspace(-1, 1, 33)
# Of the budget of the gradients.
SHARE = 0.04
# A record reaches as far as lets noise move a slope by this much. Scores of 4 that are wrong must still be heard, or a
# few records that are wrong for sure would be outvoted by many that are not sure enough.
FINE, SHORTEST_REACH, LONGEST_REACH = 0.02, 4.0, 64.0
# The most that the roundings of a shortened vector add to its length.
ROUNDED = 2.0**-45
# How many standard deviations of its noise a gain must have.
STANDS_OUT = 2.0


def choose_reach(noise: float) -> float:
    """From the noise that a mean slope has for a reach of 1."""
    return float(np.clip(FINE / max(noise, FINE / LONGEST_REACH), SHORTEST_REACH, LONGEST_REACH))


def length_release(facts: PublicFacts) -> Release:
    """Slopes along the model, by themselves, in units of the reach."""
    problem, one = facts.problem, 1 + ROUNDED
    rounding = sum_rounding(problem.parties, one * problem.row_cap)
    return Release(
        name="length",
        size=len(SCALES),
        at="sum",
        adaptive=True,
        bounds=Bounds.of_contributions(record=one, party=one * facts.most, rounding=rounding),
        why="slopes along the model shortened to the reach (docs/privacy.md#length-of-a-model)",
    )


def check_reach(reach: float, *, least: float = 0.0) -> None:
    """Refuse a reach that no honest hub names; 0 says that the length is not asked for."""
    if not ((reach == 0 and not least) or SHORTEST_REACH <= reach <= LONGEST_REACH):
        raise MessageError(f"reach: it lies in [{SHORTEST_REACH:g}, {LONGEST_REACH:g}], or is 0, and it does not.")


def sum_slopes(f: Cohort, x: Array, origin: Array, reach: float) -> Array:
    """Sum over each party's rows of how their losses change with the log of the length, (parties, scales)."""
    step = moment_step(np.sqrt(reach * f.problem.weight_bound), f.problem.row_cap) ** 2
    return f.add_up(_slopes, step, x, origin, reach, step)


def _slopes(f: Cohort, x: Array, origin: Array, reach: float, step: float) -> IntArray:
    learnt, constant = f.linear_predictor(x - origin), f.linear_predictor(origin)
    along = np.empty((f.rows, len(SCALES)))
    for k, scale in enumerate(SCALES):
        change = f.slopes(constant + scale * learnt) * learnt
        along[:, k] = scale * (change if change.ndim == 1 else change.sum(axis=1))
    return sum_shortened(f, along, reach, step)


def sum_shortened(f: Cohort, along: Array, reach: float, step: float) -> IntArray:
    """Sums of slopes (rows, scales) by party, each row shortened to the reach, in whole steps."""
    # A row that overflows adds nothing. Were the whole answer to fail, one record would move all of it.
    along[~np.isfinite(along).all(axis=1)] = 0.0
    lengths = np.sqrt(np.einsum("ij,ij->i", along, along))
    along *= (reach / np.maximum(lengths, reach))[:, None]
    # Towards zero: nothing gets longer.
    steps = np.trunc(f.weigh(along) / step).astype(np.int64)
    owner = f.repeat_per_row(np.arange(len(f.sizes), dtype=np.float64)).astype(np.int64)
    out = np.zeros((len(f.sizes), along.shape[1]), dtype=np.int64)
    np.add.at(out, owner, steps)
    return out


def choose_length(slopes: Array, noise: float, penalty: Callable[[float], float]) -> float:
    """The best of CANDIDATES by noisy mean slopes and a penalty at each of them; 1 where nothing stands out."""
    change = INTEGRALS @ slopes + np.array([penalty(float(scale)) for scale in CANDIDATES]) - penalty(1.0)
    unsure = noise * np.linalg.norm(INTEGRALS, axis=1)
    stands_out = change + STANDS_OUT * unsure < 0
    # As far as a standard deviation of the noise allows: a length that noise has chosen is lost twice.
    return float(CANDIDATES[np.argmin(change + unsure)]) if stands_out.any() else 1.0


def _integrals() -> Array:
    """Weights of the slopes at SCALES in the change of the loss from length 1 to each of CANDIDATES.

    Slopes are taken for straight lines, in logs, between the scales.
    """
    logs, ends = np.log(SCALES), np.log(CANDIDATES)
    fine = np.linspace(0.0, 1.0, 201)
    hats = np.eye(len(SCALES))
    weights = [[np.trapezoid(np.interp(end * fine, logs, hat), end * fine) for hat in hats] for end in ends]
    return np.array(weights)


INTEGRALS = _integrals()
