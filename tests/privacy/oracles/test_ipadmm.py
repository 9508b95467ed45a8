"""IPADMM: exact Gaussian accounting of inner steps, the right denominator, Poisson minibatches."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.privacy.oracles.ipadmm import IPADMMSteps, MinibatchIPADMM, inner_step_sensitivity

from consenso.errors import PreconditionError
from consenso.privacy.accountants import epsilon, gdp, rdp
from consenso.privacy.events import Gaussian, Repeated, Sampled


def test_steps_are_gaussian_with_the_multiplier():
    steps = IPADMMSteps(multiplier=5.0, rounds=20, inner_steps=3)
    assert steps.event() == Repeated(Gaussian(5.0, 1.0), 60)
    # rho = t l / (2 sigma^2), mu = sqrt(t l) / sigma
    assert rdp(steps.event(), 3.0) == pytest.approx(3.0 * 20 * 3 / (2 * 5.0**2))
    assert gdp(steps.event()) == pytest.approx(np.sqrt(60) / 5.0)


def inner_step(gradient, *, w, pull, penalty, degree, proximity):
    """w+ = [-grad + pull + proximity w] / (2 penalty degree + proximity)."""
    return (pull + proximity * w - gradient) / (2 * penalty * degree + proximity)


@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
def test_sensitivity_is_that_of_the_denominator_in_use(adjacency):
    records, degree, penalty, bound = 40, 4, 0.01, 2.0
    for proximity in (0.5, 3.0):
        gradients = np.zeros(records)
        other = {"add-remove": 0.0, "replace-one": -bound}[adjacency]
        steps = []
        for value in (bound, other):
            gradients[0] = value
            mean = gradients.sum() / records
            steps.append(inner_step(mean, w=0.3, pull=0.1, penalty=penalty, degree=degree, proximity=proximity))
        declared = inner_step_sensitivity(
            gradient_bound=bound,
            penalty=penalty,
            degree=degree,
            proximity=proximity,
            records=records,
            adjacency=adjacency,
        )
        assert abs(steps[0] - steps[1]) == pytest.approx(declared)


def test_the_old_proximity_gives_the_wrong_sensitivity():
    # A proximity that grows from one inner step to the next: computing the noise from the larger (new) one while the
    # step divides by the smaller (old) one understates the sensitivity.
    common = {"gradient_bound": 1.0, "penalty": 1e-3, "degree": 99, "records": 452, "adjacency": "replace-one"}
    used = inner_step_sensitivity(proximity=0.1, **common)
    accounted = inner_step_sensitivity(proximity=5.0, **common)
    assert used > 5 * accounted


def test_minibatches_divide_by_a_fixed_number():
    common = {
        "gradient_bound": 1.0,
        "penalty": 0.1,
        "degree": 3,
        "proximity": 1.0,
        "records": 100,
        "adjacency": "add-remove",
    }
    assert inner_step_sensitivity(rate=0.1, **common) == pytest.approx(10 * inner_step_sensitivity(**common))


def test_minibatch_figures():
    # rate 0.071, multiplier 5, 1000 steps, delta 1e-5: 1.97 sampled, 46.2 when every record enters.
    batches = MinibatchIPADMM(multiplier=5.0, rate=0.071, rounds=100, inner_steps=10, adjacency="add-remove")
    assert batches.event() == Repeated(Sampled(5.0, 1.0, 0.071, "add-remove"), 1000)
    orders = np.arange(2, 200)
    curve = np.array([rdp(batches.event(), float(order)) for order in orders])
    converted = curve + np.log1p(-1 / orders) - (np.log(1e-5) + np.log(orders)) / (orders - 1)
    assert converted.min() == pytest.approx(1.97, abs=5e-3)
    assert epsilon(batches.event(), 1e-5) <= converted.min()
    everything = IPADMMSteps(multiplier=5.0, rounds=100, inner_steps=10, adjacency="add-remove")
    assert epsilon(everything.event(), 1e-5) == pytest.approx(46.2, abs=0.1)


@pytest.mark.parametrize(("adjacency", "sensitivity"), [("add-remove", 1.0), ("replace-one", 2.0)])
def test_a_full_batch_is_no_sample(adjacency, sensitivity):
    full = MinibatchIPADMM(multiplier=3.0, rate=1.0, rounds=1, inner_steps=1, adjacency=adjacency)
    assert full.event() == Gaussian(3.0, sensitivity)


def information(memory, inner, blocks):
    """Share of the information on a constant shift that block means of w+ = memory w + shift + noise keep."""
    total = inner * blocks
    lag = np.subtract.outer(np.arange(total), np.arange(total))
    response = np.where(lag >= 0, memory ** np.maximum(lag, 0.0), 0.0)
    average = np.kron(np.eye(blocks), np.full((1, inner), 1 / inner))
    coefficients, shift = average @ response, average @ response.sum(axis=1)
    return shift @ np.linalg.solve(coefficients @ coefficients.T, shift) / total


def test_showing_only_averages_gains_nothing_to_claim():
    assert information(0.0, 10, 20) == pytest.approx(1.0)
    assert information(0.99, 10, 20) == pytest.approx(0.988, abs=1e-3)


@given(multiplier=st.floats(0.5, 20), rounds=st.integers(1, 50), inner=st.integers(1, 10))
def test_monotone(multiplier, rounds, inner):
    cost = lambda **changes: epsilon(
        IPADMMSteps(**{"multiplier": multiplier, "rounds": rounds, "inner_steps": inner, **changes}).event(), 1e-5
    )
    assert cost(multiplier=2 * multiplier) < cost()
    assert cost(inner_steps=inner + 1) > cost()


@pytest.mark.parametrize("scheme", ["with-replacement", "fixed-size"])
def test_other_minibatches_are_refused(scheme):
    with pytest.raises(PreconditionError, match="Poisson"):
        MinibatchIPADMM(multiplier=1.0, rate=0.1, rounds=1, inner_steps=1, scheme=scheme)


def test_refusals():
    with pytest.raises(PreconditionError, match="multiplier"):
        IPADMMSteps(multiplier=0.0, rounds=1, inner_steps=1)
    with pytest.raises(PreconditionError, match="gradient_bound"):
        inner_step_sensitivity(
            gradient_bound=np.inf, penalty=1.0, degree=1, proximity=1.0, records=1, adjacency="add-remove"
        )
