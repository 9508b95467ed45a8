"""One record inside a party: dividing by the number of records is right for public states, wrong for private ones."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.privacy.oracles.local import LocalView
from tests.privacy.oracles.record import RecordInParty
from tests.privacy.oracles.sums import DualSums, IncrementalSums, StateSums

from consenso.errors import PreconditionError
from consenso.privacy.events import Composed, Gaussian, Mixture, Nothing, Repeated


def theorem(**changes) -> RecordInParty:
    defaults = {
        "variant": "C",
        "records": 20,
        "step": 1.0,
        "lipschitz": 1.0,
        "relaxation": 0.5,
        "std": 1.0,
        "rounds": 2,
        "smoothness": 50.0,
    }
    return RecordInParty(**{**defaults, **changes})


def smooth_max(slopes, offsets, x):
    """Gradient and Hessian of log sum exp of affine functions: convex, Lipschitz with the largest slope."""
    heights = slopes @ x + offsets
    weights = np.exp(heights - heights.max())
    weights /= weights.sum()
    gradient = weights @ slopes
    hessian = (slopes * weights[:, None]).T @ slopes - np.outer(gradient, gradient)
    return gradient, hessian


def prox(point, gradient_and_hessian):
    """Newton's method with halving, on |x - point|^2 / 2 + f(x)."""
    x = point.copy()
    residual = lambda x: x - point + gradient_and_hessian(x)[0]
    for _ in range(200):
        r = residual(x)
        if np.linalg.norm(r) < 1e-11:
            return x
        move = np.linalg.solve(np.eye(2) + gradient_and_hessian(x)[1], r)
        size = 1.0
        while np.linalg.norm(residual(x - size * move)) > np.linalg.norm(r) and size > 1e-8:
            size /= 2
        x = x - size * move
    raise AssertionError("the prox did not converge")


def drifting_pair(records=20, curvature=50.0, far=1e3):
    """Two worlds of a party whose dual contributions (variant C, relaxation 1/2, step 1) drift apart.

    All records but one share a separable Huber loss: steep near 0 in a coordinate, flat away from it. At P = (0, far)
    the odd record pulls along y, in opposite directions in the two worlds, where the loss is flat; at Q = (far, 0)
    it pulls along x, while the steep loss remembers the gap along y. Returns the gaps of the two contributions.
    """
    tilt = 0.1
    places = [np.array([0.0, far]), np.array([far, 0.0])]
    pulls = [
        np.array([[-np.sin(tilt), np.cos(tilt)], [-np.cos(tilt), -np.sin(tilt)]]),
        np.array([[-np.sin(tilt), -np.cos(tilt)], [np.cos(tilt), -np.sin(tilt)]]),
    ]
    top = 1 / np.sqrt(2)  # of a coordinate's slope, so that the whole gradient has norm at most 1

    def world(slopes):
        middle = (places[0] + places[1]) / 2
        offsets = np.array([0.0, (slopes[0] - slopes[1]) @ middle])

        def parts(x):
            odd, bend = smooth_max(slopes, offsets, x)
            inside = np.abs(curvature * x) < top
            shared = np.clip(curvature * x, -top, top)
            return (
                shared * (records - 1) / records + odd / records,
                np.diag(inside * curvature) * (records - 1) / records + bend / records,
            )

        return parts

    worlds = [world(slopes) for slopes in pulls]
    duals = [np.zeros(2), np.zeros(2)]
    centre, gaps = np.zeros(2), []
    for place in places:
        z = (
            place - duals[0] + centre
        ) / 2  # any public point may be chosen: the first world's prox is taken at `place`
        points = [2 * z - (centre - dual) for dual in duals]
        new = [point - prox(point, parts) for point, parts in zip(points, worlds, strict=True)]
        gaps.append(float(np.linalg.norm(new[0] - new[1])))
        duals, centre = new, z  # relaxation 1/2: the state is the last contribution
    return gaps


def test_dividing_by_the_number_of_records_is_a_trap():
    records, curvature = 20, 50.0
    gaps = drifting_pair(records, curvature)
    naive = 2 * 1.0 / records
    assert gaps[0] <= naive * (1 + 1e-9)
    assert gaps[1] == pytest.approx(1.39 * naive, rel=5e-3)
    bound = theorem(records=records, smoothness=curvature)
    for own_steps, gap in enumerate(gaps):
        assert gap <= bound.sensitivity(own_steps)


def test_smooth_bounds():
    records, step, lipschitz, smoothness, relaxation = 50, 0.4, 2.0, 0.5, 0.3
    shared = {
        "records": records,
        "step": step,
        "lipschitz": lipschitz,
        "smoothness": smoothness,
        "relaxation": relaxation,
        "rounds": 1000,
    }
    own = 2 * step * lipschitz / records
    late = 10**6
    assert theorem(variant="C", **shared).sensitivity(late) == pytest.approx(own * (1 + step * smoothness))
    assert theorem(variant="B", **shared).sensitivity(late) == pytest.approx(own * (1 + step * smoothness))
    assert theorem(variant="A", **shared).sensitivity(late) == pytest.approx(
        2 * relaxation * own * (2 + step * smoothness)
    )


@pytest.mark.parametrize("relaxation", [0.1, 0.5])
def test_the_smooth_gap_recursion_stays_below_its_limit(relaxation):
    # |e+| <= (1 - 2 lam + 2 lam t)|e| + 4 lam g L / m, t = g b / (1 + g b); a contribution moves by t|e| + 2 g L / m.
    step, smoothness, own = 0.8, 3.0, 2 * 0.8 / 20
    t = step * smoothness / (1 + step * smoothness)
    e, moved = 0.0, 0.0
    for _ in range(5000):
        moved = max(moved, t * e + own)
        e = (1 - 2 * relaxation + 2 * relaxation * t) * e + 2 * relaxation * own
    bound = theorem(step=step, smoothness=smoothness, relaxation=relaxation).sensitivity(10**6)
    assert moved <= bound * (1 + 1e-9)
    assert moved == pytest.approx(bound, rel=1e-6)
    assert e <= theorem(variant="B", step=step, smoothness=smoothness, relaxation=relaxation).sensitivity(9) + 1e-12


def test_kinks_leave_a_bound_that_grows_with_the_own_steps():
    bound = theorem(records=100, smoothness=np.inf, relaxation=0.4, rounds=500)
    own = 2 / 100
    assert [bound.sensitivity(k) for k in (0, 1, 10)] == pytest.approx([own, own * 1.8, own * 9])
    assert bound.sensitivity(499) == pytest.approx(2.0)  # the party's own bound ends the growth
    event = bound.event()
    assert isinstance(event, Composed)
    total = sum(
        (part.event.sensitivity**2 * part.count if isinstance(part, Repeated) else part.sensitivity**2)
        for part in event.events
    )
    assert total == pytest.approx(sum(bound.sensitivity(k) ** 2 for k in range(500)))


@pytest.mark.parametrize("relaxation", [0.3, 0.5, 0.8])
@pytest.mark.parametrize("smoothness", [0.1, 100.0, np.inf])
def test_never_more_than_the_party_itself(relaxation, smoothness):
    shared = {"step": 1.0, "lipschitz": 1.0, "std": 1.0, "rounds": 1}
    user = {
        "A": IncrementalSums(relaxation=relaxation, **shared).sensitivity,
        "B": StateSums(relaxation=relaxation, **shared).sensitivity,
        "C": DualSums(**shared).sensitivity,
        "local": LocalView(participations=1, step=1.0, lipschitz=1.0, std=1.0).sensitivity,
    }
    for variant, bound in user.items():
        for records in (1, 2, 1000):
            inner = theorem(variant=variant, relaxation=relaxation, smoothness=smoothness, records=records)
            assert inner.sensitivity(10**6) <= bound * (1 + 1e-12)
            if records == 1 and variant != "local":
                assert inner.sensitivity(10**6) == pytest.approx(bound)


def test_a_public_state_divides_by_the_records():
    view = theorem(variant="local", records=25, step=0.5, lipschitz=3.0, rounds=4)
    assert view.event() == Repeated(Gaussian(1.0, 4 * 0.5 * 3.0 / 25), 4)
    inexact = theorem(variant="local", records=25, step=0.5, lipschitz=3.0, tolerance=0.01)
    assert inexact.sensitivity(0) == pytest.approx(2 * (2 * 0.5 * 3.0 / 25 + 0.02))


def test_sampled_rounds_are_revealed_never_amplified():
    event = theorem(smoothness=0.0, rate=0.1, rounds=7).event()
    assert isinstance(event, Repeated)
    assert event.count == 7
    assert event.event == Mixture((0.9, 0.1), (Nothing(), Gaussian(1.0, 2 / 20)))
    with pytest.raises(PreconditionError, match="variant B"):
        theorem(variant="B", rate=0.5)


@given(
    records=st.integers(1, 200),
    smoothness=st.floats(0, 100),
    steps=st.integers(0, 50),
    variant=st.sampled_from(["local", "A", "B", "C"]),
)
def test_monotone(records, smoothness, steps, variant):
    base = theorem(variant=variant, records=records, smoothness=smoothness)
    assert base.sensitivity(steps + 1) >= base.sensitivity(steps)
    assert theorem(variant=variant, records=records + 1, smoothness=smoothness).sensitivity(steps) <= (
        base.sensitivity(steps) * (1 + 1e-12)
    )
    assert theorem(variant=variant, records=records, smoothness=smoothness + 1).sensitivity(steps) >= (
        base.sensitivity(steps)
    )


def test_refusals():
    for changes, named in [
        ({"relaxation": 1.0}, "relaxation"),
        ({"records": 0}, "records"),
        ({"variant": "D"}, "view"),
    ]:
        with pytest.raises(PreconditionError, match=named):
            theorem(**changes)
    with pytest.raises(PreconditionError, match="smoothness"):
        theorem(smoothness=-1.0)
