"""Bad parameters, vectors and sums are refused in one sentence; values by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from consenso.errors import InputError, PreconditionError
from consenso.regularizers import (
    L1,
    L2,
    Ball,
    Box,
    ElasticNet,
    GroupL1,
    NoPenalty,
    Regularizer,
    Simplex,
    Sum,
    Unpenalized,
)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: L1(strength=-1.0), r"L1\(strength=-1.0\): a strength is a finite number of at least 0; use NoPenalty"),
        (lambda: L1(strength=math.nan), r"L1\(strength=nan\)"),
        (lambda: L1(strength="1"), r"L1\(strength='1'\)"),
        (lambda: L2(strength=math.inf), r"L2\(strength=inf\): a strength"),
        (lambda: ElasticNet(l1=-1.0, l2=1.0), r"ElasticNet\(l1=-1.0\): a strength"),
        (lambda: ElasticNet(l1=1.0, l2=-1.0), r"ElasticNet\(l2=-1.0\): a strength"),
        (lambda: GroupL1(strength=-1.0, groups=2), r"GroupL1\(strength=-1.0\)"),
        (lambda: GroupL1(strength=1.0, groups=0), r"GroupL1\(groups=0\): groups is a size or a tuple of sizes"),
        (lambda: GroupL1(strength=1.0, groups=()), r"GroupL1\(groups=\(\)\)"),
        (lambda: GroupL1(strength=1.0, groups=(2, 0)), r"GroupL1\(groups=\(2, 0\)\).*use groups=1"),
        (lambda: GroupL1(strength=1.0, groups=1.5), r"GroupL1\(groups=1.5\)"),
        (lambda: Box(low=1.0, high=0.0), r"Box\(low=1.0, high=0.0\): low is at most high"),
        (lambda: Box(low=math.nan, high=0.0), r"Box\(low=nan, high=0.0\).*neither is NaN"),
        (lambda: Box(low=math.inf, high=math.inf), r"Box\(low=inf, high=inf\)"),
        (lambda: Ball(radius=0.0), r"Ball\(radius=0.0\): a radius is a finite number above 0; use Box"),
        (lambda: Ball(radius=math.inf), r"Ball\(radius=inf\)"),
        (lambda: Simplex(total=-1.0), r"Simplex\(total=-1.0\): a total is a finite number above 0"),
        (lambda: Sum(parts=()), r"Sum\(parts=\(\)\): parts is a tuple of at least one regularizer; use NoPenalty"),
        (lambda: Sum(parts=[L1(strength=1.0)]), r"Sum\(parts=\[.*parts is a tuple"),
        (lambda: Sum(parts=(Box(low=1.0, high=2.0), Box(low=-1.0, high=0.0))), r"Box\(low=1.0, high=0.0\)"),
        (
            lambda: Unpenalized(inner=L1(strength=1.0), last=0),
            r"Unpenalized\(last=0\).*use the inner regularizer itself",
        ),
    ],
)
def test_parameters(build, message):
    with pytest.raises(InputError, match=message):
        build()


@pytest.mark.parametrize(
    "parts",
    [
        (Box(low=-1.0, high=1.0), Ball(radius=1.0)),
        (Box(low=-1.0, high=1.0), GroupL1(strength=1.0, groups=2)),
        (GroupL1(strength=1.0, groups=2), GroupL1(strength=1.0, groups=3)),
        (Simplex(total=1.0), Simplex(total=2.0)),
        (Simplex(total=1.0), Box(low=0.0, high=0.5)),
        (Simplex(total=1.0), Ball(radius=0.5)),
        (Simplex(total=1.0), GroupL1(strength=1.0, groups=2)),
        (Unpenalized(inner=L1(strength=1.0), last=1), Box(low=-1.0, high=1.0)),
    ],
    ids=repr,
)
def test_sums_without_a_rule_name_the_pair(parts):
    one, other = (type(part).__name__ for part in parts)
    names = rf"({one}\(.* plus {other}\(|{other}\(.* plus {one}\()"
    with pytest.raises(PreconditionError, match=rf"Sum: the prox of {names}.*has no known rule; drop one of them"):
        Sum(parts=parts)
    with pytest.raises(PreconditionError, match="has no known rule"):
        Sum(parts=(L2(strength=1.0), Sum(parts=(L1(strength=1.0),)), *parts))


@pytest.mark.parametrize(
    "regularizer",
    [
        NoPenalty(),
        L1(strength=1.0),
        L2(strength=1.0),
        ElasticNet(l1=1.0, l2=1.0),
        GroupL1(strength=1.0, groups=2),
        Box(low=0.0, high=1.0),
        Ball(radius=1.0),
        Simplex(),
        Sum(parts=(L1(strength=1.0), L2(strength=1.0))),
        Unpenalized(inner=L1(strength=1.0), last=1),
    ],
    ids=repr,
)
@pytest.mark.parametrize("step", [-1.0, math.nan, math.inf, np.ones(2)])
def test_a_step_is_one_finite_number(regularizer, step):
    with pytest.raises(InputError, match=r"prox\(step=.*a step is one finite number of at least 0"):
        regularizer.prox(np.zeros((2, 4)), step)


def test_vectors_fit_groups_and_wrappers():
    for groups in (2, (1, 3)):
        with pytest.raises(InputError, match=r"groups must cover a vector of length 5 exactly; leave an intercept out"):
            GroupL1(strength=1.0, groups=groups).prox(np.zeros(5), 1.0)
    with pytest.raises(
        InputError, match=r"Unpenalized\(last=2\): the vector must be longer.*length is 2; lower `last`"
    ):
        Unpenalized(inner=L1(strength=1.0), last=2).value(np.zeros(2))


def test_an_intercept_is_left_alone():
    inner = ElasticNet(l1=0.5, l2=1.0)
    wrapped = Unpenalized(inner=inner, last=2)
    v = np.array([[3.0, -2.0, 0.1, 50.0, -70.0]])
    np.testing.assert_array_equal(wrapped.prox(v, 0.5), np.hstack([inner.prox(v[:, :3], 0.5), v[:, 3:]]))
    np.testing.assert_array_equal(wrapped.value(v), inner.value(v[:, :3]))
    np.testing.assert_array_equal(wrapped.subgradient(v)[:, 3:], 0.0)
    assert wrapped.strong_convexity == 0.0
    assert Unpenalized(inner=Ball(radius=1.0), last=1).is_constraint


def test_values_and_proxes_by_hand():
    x = np.array([3.0, -4.0])
    assert L1(strength=2.0).value(x) == 14.0
    assert L2(strength=2.0).value(x) == 25.0
    assert ElasticNet(l1=1.0, l2=2.0).value(x) == 32.0
    assert GroupL1(strength=2.0, groups=2).value(x) == 10.0
    assert GroupL1(strength=2.0, groups=1).value(x) == 14.0
    assert Sum(parts=(L1(strength=1.0), L2(strength=2.0))).value(x) == 32.0
    assert Sum(parts=(L1(strength=1.0), L2(strength=2.0))).strong_convexity == 2.0
    np.testing.assert_allclose(L1(strength=2.0).prox(x, 0.5), [2.0, -3.0])
    np.testing.assert_allclose(GroupL1(strength=1.0, groups=2).prox(x, 2.5), [1.5, -2.0])
    np.testing.assert_allclose(Ball(radius=2.5).prox(x, 1.0), [1.5, -2.0])
    np.testing.assert_allclose(Simplex(total=2.0).prox(np.array([1.0, 0.5, -9.0]), 1.0), [1.25, 0.75, 0.0])
    np.testing.assert_allclose(Box(low=-1.0, high=math.inf).prox(x, 1.0), [3.0, -1.0])


def test_constraints_know_their_inside():
    assert Ball(radius=5.0).value(np.array([3.0, 4.0])) == 0.0
    assert Ball(radius=4.999).value(np.array([3.0, 4.0])) == math.inf
    assert Simplex().value(np.array([0.5, 0.5])) == 0.0
    assert Simplex().value(np.array([1.5, -0.5])) == math.inf
    assert Simplex().value(np.array([0.5, 0.4])) == math.inf
    assert Box(low=0.0, high=1.0).value(np.array([0.0, 1.0])) == 0.0
    assert Box(low=0.0, high=1.0).value(np.array([0.0, 1.1])) == math.inf


def test_a_simplex_keeps_its_total_far_from_the_origin():
    p = Simplex(total=1.0).prox(np.array([1e8, 1e8 - 0.25, -1e8]), 1.0)
    np.testing.assert_allclose(p, [0.625, 0.375, 0.0], rtol=1e-15)


def test_regularizers_are_recognised():
    assert isinstance(Simplex(), Regularizer)
    assert isinstance(Sum(parts=(L1(strength=1.0),)), Regularizer)
    assert not isinstance(1.0, Regularizer)
    assert Sum(parts=(L1(strength=1.0),)) == Sum(parts=(L1(strength=1),))
