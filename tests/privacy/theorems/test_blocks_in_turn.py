"""Blocks that act in turn: the bound holds for all rows and coefficients, and law 10's exact value attains it."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from consenso.algorithms.noisy_fixed_point import NoisyFixedPoint
from consenso.errors import PreconditionError
from consenso.operators import CyclicBlocks, RandomBlock
from consenso.planning.plan import plan
from consenso.privacy import accountants
from consenso.privacy.observers import Public
from consenso.privacy.theorems import Composition
from consenso.privacy.theorems.blocks import BlocksInTurn
from consenso.schedules import PoissonSubset
from consenso.testing.attacks import list_attacked_plans
from consenso.testing.exact_values.compare import compare


@given(seed=st.integers(0, 10_000), blocks=st.integers(1, 5), rounds=st.integers(1, 12), cycle=st.booleans())
def test_no_choice_of_rows_and_coefficients_moves_the_sums_further(seed, blocks, rounds, cycle):
    rng = np.random.default_rng(seed)
    activation = CyclicBlocks() if cycle else RandomBlock(seed=seed)
    active = [activation.active(k, blocks) for k in range(rounds)]
    acts = int(np.bincount(np.concatenate(active), minlength=blocks).max())
    rows = rng.standard_normal((2, blocks)) ** 3  # one coordinate a block, some much longer than others
    coefficients = rng.choice([-1.0, 1.0], (rounds, 2)) / np.linalg.norm(rows, axis=1)  # as long as they may be
    moved = [(coefficients[k] @ rows)[chosen] for k, chosen in enumerate(active)]
    theorem = BlocksInTurn(sensitivity=2.0, std=1.0, rounds=rounds, acts=acts, adjacency="replace-one", unit="record")
    mu = accountants.gdp(theorem.event())
    assert mu is not None
    assert math.sqrt(sum(float(np.square(each).sum()) for each in moved)) <= mu * (1 + 1e-12)


def test_the_exact_value_of_linear_losses_attains_it():
    made = next(iter(list_attacked_plans(NoisyFixedPoint.example())))
    found = [each for each in compare(made, made.parties - 1) if each.theorem == "BlocksInTurn"]
    assert {each.unit for each in found} == {"record", "party"}
    assert all(not each.below and each.ratio == pytest.approx(1.0, abs=1e-6) for each in found)


def test_errors_of_every_round_are_counted():
    theorem = BlocksInTurn(
        sensitivity=1.0, std=1.0, rounds=8, acts=2, rounding=0.5, excess=1e-6, adjacency="add-remove", unit="record"
    )
    assert accountants.excess(theorem.event()) == pytest.approx(1e-6)
    # sqrt(acts) of the contribution, sqrt(rounds) of the errors.
    assert accountants.gdp(theorem.event()) == pytest.approx(math.sqrt(2) + 0.5 * math.sqrt(8))


def test_it_is_refused_where_the_proof_does_not_reach():
    with pytest.raises(PreconditionError, match="outputs"):
        BlocksInTurn(sensitivity=1.0, std=1.0, rounds=4, acts=2, outputs=3, adjacency="add-remove", unit="record")
    example = NoisyFixedPoint.example()
    sampled = plan(example.problem, example.algorithm, rounds=8, noise=example.noise, schedule=PoissonSubset(0.5))
    assert not isinstance(sampled.prove(Public(), 0, 1e-5).proof, BlocksInTurn)
    whole = NoisyFixedPoint(operator=example.algorithm.operator, blocks=1)
    same = plan(example.problem, whole, rounds=8, noise=example.noise)
    assert isinstance(same.prove(Public(), 0, 1e-5).proof, Composition)
