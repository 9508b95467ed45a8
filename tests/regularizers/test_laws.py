"""Laws of every regularizer: prox, conjugate, subgradient, batches."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from consenso.errors import PreconditionError
from consenso.regularizers import (
    L1,
    L2,
    Ball,
    Box,
    ElasticNet,
    GroupL1,
    NoPenalty,
    Simplex,
    Sum,
    Unpenalized,
)

LENGTH = 6
EPS = np.finfo(np.float64).eps
NONNEGATIVE = Box(low=0.0, high=math.inf)
PLAIN = [
    NoPenalty(),
    L1(strength=0.6),
    L2(strength=0.8),
    ElasticNet(l1=0.3, l2=1.5),
    GroupL1(strength=0.7, groups=2),
    GroupL1(strength=0.7, groups=(1, 3, 2)),
    Box(low=-0.4, high=0.9),
    NONNEGATIVE,
    Ball(radius=1.2),
    Simplex(total=1.5),
]
SUMS = [
    Sum(parts=(L1(strength=0.5), L2(strength=0.3))),
    Sum(parts=(L1(strength=0.2), L1(strength=0.3), L2(strength=0.3), L2(strength=0.1))),
    Sum(parts=(L1(strength=0.5), Box(low=0.2, high=0.9))),
    Sum(parts=(Box(low=-0.5, high=2.0), L2(strength=0.7), L1(strength=0.5), Box(low=-1.0, high=0.9))),
    Sum(parts=(L2(strength=0.7), Ball(radius=0.8))),
    Sum(parts=(Ball(radius=0.8), L1(strength=0.4), Ball(radius=1.1))),
    Sum(parts=(L2(strength=0.5), Simplex(total=1.5))),
    Sum(parts=(Simplex(total=1.5), L1(strength=0.5), Box(low=0.0, high=2.0), Ball(radius=1.6))),
    Sum(parts=(GroupL1(strength=0.4, groups=3), L1(strength=0.3))),
    Sum(parts=(GroupL1(strength=0.4, groups=3), GroupL1(strength=0.1, groups=3), NONNEGATIVE)),
    Sum(parts=(Ball(radius=0.8), NONNEGATIVE, L1(strength=0.1), GroupL1(strength=0.2, groups=2), L2(strength=0.2))),
    Sum(parts=(ElasticNet(l1=0.2, l2=0.3), NoPenalty(), Sum(parts=(L1(strength=0.1), Ball(radius=1.0))))),
    Sum(parts=(Unpenalized(inner=L1(strength=0.5), last=2), L2(strength=0.4))),
]
WRAPPED = [
    Unpenalized(inner=inner, last=2) for inner in (L1(strength=0.6), Ball(radius=1.2), GroupL1(strength=0.7, groups=2))
]
ALL = [*PLAIN, *SUMS, *WRAPPED]

seeds = st.integers(0, 2**32 - 1)
steps = st.floats(-8, 8).map(lambda exponent: 10.0**exponent)


def draw(seed, batch=(5,)):
    """Vectors of all sizes up to 1e8, with ties and zeros."""
    rng = np.random.default_rng(seed)
    v = rng.normal(size=(*batch, LENGTH)) * 10.0 ** rng.uniform(-3, 8 * rng.random(), (*batch, 1))
    v = np.where(rng.random(v.shape) < 0.1, 0.0, v)
    return np.where(rng.random(v.shape) < 0.1, v[..., :1], v)


@pytest.mark.parametrize("regularizer", ALL, ids=repr)
@given(seed=seeds, step=steps, gap=st.floats(-6, 8))
def test_the_prox_is_firmly_nonexpansive(regularizer, seed, step, gap):
    one = draw(seed)
    other = one + np.random.default_rng(seed + 1).normal(size=one.shape) * 10.0**gap
    apart, moved = one - other, regularizer.prox(one, step) - regularizer.prox(other, step)
    size = np.linalg.norm(one, axis=-1) + np.linalg.norm(other, axis=-1)
    excess = np.sum(moved * moved - moved * apart, axis=-1)
    slack = 1e-10 + 32 * EPS * size * (np.linalg.norm(apart, axis=-1) + EPS * size)
    assert np.all(excess <= slack)


@pytest.mark.parametrize("regularizer", ALL, ids=repr)
@given(seed=seeds, step=steps)
def test_no_other_point_is_better_than_the_prox(regularizer, seed, step):
    """The prox p is the point with step*r(x) + |x-v|^2/2 >= step*r(p) + |p-v|^2/2 + |x-p|^2/2 for all x."""
    v = draw(seed)
    p = regularizer.prox(v, step)
    assert np.all(np.isfinite(regularizer.value(p)))
    rng = np.random.default_rng(seed + 1)
    for width in (1e-4, 0.1, 1.0, 1e4):
        # Feasible rivals near and far: constraints send them back inside.
        x = regularizer.prox(p + width * rng.normal(size=p.shape), width)
        # |x-v|^2 - |p-v|^2 - |x-p|^2 = 2 <x-p, p-v>, written so that nothing large cancels.
        gain = step * (regularizer.value(x) - regularizer.value(p)) + np.sum((x - p) * (p - v), axis=-1)
        scale = step * (regularizer.value(x) + regularizer.value(p)) + np.sum(np.abs(x - p) * np.abs(p - v), axis=-1)
        # Both points lie on a constraint up to the rounding of v, and <., p - v> multiplies that by the size of v.
        length = np.linalg.norm(v, axis=-1)
        lost = (np.linalg.norm(x - p, axis=-1) + length) * length
        assert np.all(gain >= -1e-10 - 64 * EPS * (scale + lost))


def conjugate(regularizer, q):
    """Conjugates of the plain regularizers, and how far q is from their domain, relative to its size."""
    zero = np.zeros(q.shape[:-1])
    match regularizer:
        case NoPenalty():
            return zero, np.abs(q).max(axis=-1)
        case L1(strength=strength):
            return zero, np.abs(q).max(axis=-1) / strength - 1
        case L2(strength=strength):
            return np.sum(q**2, axis=-1) / (2 * strength), zero
        case ElasticNet(l1=l1, l2=l2):
            return np.sum(np.maximum(np.abs(q) - l1, 0) ** 2, axis=-1) / (2 * l2), zero
        case GroupL1(strength=strength, groups=groups):
            sizes = groups if isinstance(groups, tuple) else (groups,) * (LENGTH // groups)
            blocks = np.split(q, np.cumsum(sizes)[:-1], axis=-1)
            return zero, np.max([np.linalg.norm(block, axis=-1) for block in blocks], axis=0) / strength - 1
        case Box(low=low, high=math.inf) if low == 0.0:
            return zero, q.max(axis=-1)
        case Box(low=low, high=high):
            return np.sum(np.maximum(low * q, high * q), axis=-1), zero
        case Ball(radius=radius):
            return radius * np.linalg.norm(q, axis=-1), zero
        case Simplex(total=total):
            return total * q.max(axis=-1), zero
    raise AssertionError(regularizer)


@pytest.mark.parametrize("regularizer", PLAIN, ids=repr)
@given(seed=seeds, step=steps)
def test_moreau_and_fenchel_and_young(regularizer, seed, step):
    """With q = (v - p)/step, r(p) + r*(q) = <p, q>: so q is prox_{r*/step}(v/step), and p + step * q = v."""
    v = draw(seed)
    p = regularizer.prox(v, step)
    rounding = EPS * np.abs(v).max(axis=-1) / step
    q = (v - p) / step
    dual, outside = conjugate(regularizer, q)
    assert np.all(outside <= 1e-12 + 8 * rounding)
    product = np.sum(p * q, axis=-1)
    size = np.sum(np.abs(p * q), axis=-1) + np.abs(dual) + np.linalg.norm(p, axis=-1) * rounding / EPS
    if isinstance(regularizer, L2 | ElasticNet):
        size = size + np.linalg.norm(q, axis=-1) * rounding / EPS
    elif regularizer.is_constraint:
        # The support function of a set of this width moves by that times the rounding of q.
        size = size + 2 * LENGTH * rounding / EPS
    assert np.all(np.abs(regularizer.value(p) + dual - product) <= 1e-12 + 32 * EPS * size)


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("step", [1e-8, 1e-3, 1.0, 30.0, 1e8])
def test_moreau_with_projections_on_dual_balls(seed, step):
    """Norms against the projections on their dual balls, and a ball against the shrinkage of its dual norm."""
    v = draw(seed)
    scale = 1e-13 * np.abs(v).max()
    ball = np.clip(v / step, -0.6, 0.6)
    np.testing.assert_allclose(L1(strength=0.6).prox(v, step) + step * ball, v, rtol=0, atol=scale)
    blocks = (v / step).reshape(5, 3, 2)
    norms = np.linalg.norm(blocks, axis=-1, keepdims=True)
    inside = (blocks * np.minimum(1, 0.7 / np.maximum(norms, 1e-300))).reshape(5, 6)
    np.testing.assert_allclose(GroupL1(strength=0.7, groups=2).prox(v, step) + step * inside, v, rtol=0, atol=scale)
    lengths = np.linalg.norm(v / step, axis=-1, keepdims=True)
    shrunk = v / step * np.maximum(0, 1 - 1.2 / step / np.maximum(lengths, 1e-300))
    np.testing.assert_allclose(Ball(radius=1.2).prox(v, step) + step * shrunk, v, rtol=0, atol=scale)


@pytest.mark.sweep
@pytest.mark.parametrize("regularizer", SUMS, ids=repr)
@pytest.mark.parametrize("step", [0.1, 1.0, 4.0])
def test_the_prox_of_a_sum_is_what_its_parts_agree_on(regularizer, step):
    """Against the parallel Dykstra iteration, which uses each part's prox alone and needs no rule.

    Bauschke and Combettes, Convex Analysis and Monotone Operator Theory in Hilbert Spaces, section 30.2.
    """
    rng = np.random.default_rng(3)
    v = rng.normal(size=(20, LENGTH)) * 10.0 ** rng.uniform(-1, 0.7, (20, 1))
    parts = regularizer.parts
    duals = [v.copy() for _ in parts]
    for _ in range(6000):
        points = [part.prox(dual, len(parts) * step) for part, dual in zip(parts, duals, strict=True)]
        x = np.mean(points, axis=0)
        duals = [dual + x - point for dual, point in zip(duals, points, strict=True)]
        if max(np.abs(x - point).max() for point in points) < 1e-12:
            break
    np.testing.assert_allclose(regularizer.prox(v, step), x, rtol=0, atol=1e-8)


@pytest.mark.parametrize("regularizer", [part for part in ALL if not part.is_constraint], ids=repr)
@given(seed=seeds)
def test_subgradients_support_the_graph(regularizer, seed):
    x = draw(seed)
    slopes = regularizer.subgradient(x)
    other = x + np.random.default_rng(seed + 1).normal(size=x.shape) * 10.0 ** np.random.default_rng(seed).uniform(
        -3, 3
    )
    modulus = regularizer.strong_convexity
    bound = (
        regularizer.value(x) + np.sum(slopes * (other - x), axis=-1) + modulus / 2 * np.sum((other - x) ** 2, axis=-1)
    )
    size = regularizer.value(x) + regularizer.value(other) + np.sum(np.abs(slopes * (other - x)), axis=-1)
    assert np.all(regularizer.value(other) >= bound - 1e-12 - 32 * EPS * size)


@pytest.mark.parametrize("regularizer", [part for part in ALL if part.is_constraint], ids=repr)
def test_constraints_have_no_subgradient(regularizer):
    with pytest.raises(PreconditionError, match=r"is a constraint and has no subgradient outside itself; use its prox"):
        regularizer.subgradient(np.zeros((2, LENGTH)))
    assert np.all(np.isinf(regularizer.value(np.full((2, LENGTH), -1e3))))


@pytest.mark.parametrize("regularizer", ALL, ids=repr)
def test_a_batch_equals_its_vectors_one_by_one(regularizer):
    v = draw(9, batch=(3, 4))
    batch = regularizer.prox(v, 0.7)
    assert batch.shape == v.shape
    assert regularizer.value(batch).shape == (3, 4)
    for i in np.ndindex(3, 4):
        np.testing.assert_allclose(regularizer.prox(v[i], 0.7), batch[i], rtol=1e-14, atol=1e-15)
        np.testing.assert_allclose(regularizer.value(batch[i]), regularizer.value(batch)[i], rtol=1e-14)
        if not regularizer.is_constraint:
            np.testing.assert_allclose(regularizer.subgradient(v[i]), regularizer.subgradient(v)[i], rtol=1e-14)


@pytest.mark.parametrize("regularizer", ALL, ids=repr)
def test_the_prox_leaves_its_input_alone(regularizer):
    v = draw(4)
    before = v.copy()
    result = regularizer.prox(v, 0.5)
    result += 1.0
    np.testing.assert_array_equal(v, before)


@pytest.mark.parametrize("regularizer", ALL, ids=repr)
def test_step_zero_projects_and_does_no_more(regularizer):
    v = draw(4)
    p = regularizer.prox(v, 0.0)
    if regularizer.is_constraint:
        np.testing.assert_allclose(regularizer.prox(p, 0.0), p, rtol=1e-14, atol=1e-15)
        assert np.all(regularizer.value(p) < np.inf)
    else:
        np.testing.assert_array_equal(p, v)
