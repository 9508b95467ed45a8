from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from consenso.algorithms.consensus import ConsensusADMM
from consenso.algorithms.dp_sgd import DPSGD
from consenso.algorithms.dual_consensus import DualConsensusADMM
from consenso.algorithms.preconditioned import PreconditionedFixedPoint
from consenso.engine.codec import decode_values
from consenso.engine.fixed_point import GridColumn, check, decode, encode, encode_rows, grids_of
from consenso.errors import PreconditionError, PrivacyError
from consenso.federation.disk import Disk
from consenso.federation.hub import HubRun, Question
from consenso.federation.message_schemas import HubMessageSchemas
from consenso.federation.party import Party
from consenso.planning.plan import plan
from consenso.privacy.noise import GaussianNoise
from consenso.privacy.release import Bounds
from consenso.privacy.run_spec import largest_bounds
from consenso.privacy.samplers import Safe, Seeded
from consenso.secure_sum import secure_parts
from consenso.secure_sum.columns import columns
from consenso.shards import Shards
from consenso.testing.laws import plan_example
from consenso.testing.worlds import draw

GRID = 2.0**-20
whole = st.integers(-(2**52), 2**52)


@given(st.lists(st.lists(whole, min_size=3, max_size=3), min_size=1, max_size=8), st.integers(-900, 900))
def test_sums_of_whole_steps_are_exact(steps: list[list[int]], exponent: int) -> None:
    grid = math.ldexp(1.0, exponent)
    column = GridColumn(name="x", shape=(3,), grid=grid)
    words = sum((encode(np.array(row) * grid, column) for row in steps), np.zeros(3, dtype=np.uint64))
    exact = [sum(each) for each in zip(*steps, strict=True)]
    assert decode(words, column).tolist() == [float(total) * grid for total in exact]


@given(st.lists(st.floats(-1e3, 1e3), min_size=1, max_size=20))
def test_other_values_move_by_half_a_step_at_most(values: list[float]) -> None:
    given_ = np.array(values)
    column = GridColumn(name="x", shape=(len(values),), grid=GRID)
    assert (np.abs(decode(encode(given_, column), column) - given_) <= GRID / 2).all()


@given(st.lists(st.floats(-1e6, 1e6, allow_subnormal=False), min_size=1, max_size=12))
def test_two_words_sum_doubles_as_if_rounded_once(values: list[float]) -> None:
    column = GridColumn(name="x", shape=(), grid=2.0**-80, words=2)
    words = sum((encode(np.array(value), column) for value in values), np.zeros(2, dtype=np.uint64))
    exact = math.fsum(values)
    assert abs(float(decode(words, column)) - exact) <= max(np.spacing(abs(exact)), len(values) * 2.0**-81)


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=12), st.sampled_from([1, 2]), st.randoms())
def test_the_order_of_addition_does_not_matter(values: list[float], words: Any, chance: Any) -> None:
    column = GridColumn(name="x", shape=(1,), grid=2.0**-70 if words == 2 else 2.0**-30, words=words)
    rows = np.array(values)[:, None]
    shuffled = rows[chance.sample(range(len(values)), len(values))]
    cut = chance.randrange(len(values) + 1)

    def total(some: np.ndarray) -> np.ndarray:
        return encode_rows(some, column).sum(axis=0, dtype=np.uint64)

    whole = total(rows)
    assert np.array_equal(whole, sum((encode(row, column) for row in rows), np.zeros(words, dtype=np.uint64)))
    assert np.array_equal(whole, total(shuffled[:cut]) + total(shuffled[cut:]))


def test_what_does_not_fit_wraps_around_and_never_fails() -> None:
    """An error that depends on a value would tell something of it; a wrapped sum is a function of the exact one."""
    huge = np.array([2.0**63, 2.0**64, -(2.0**64), 2.0**64 + 4096.0, -(2.0**63) - 4096.0, 1e300, -1e300, 0.0])
    step = GridColumn(name="x", shape=(8,), grid=1.0)
    words = encode(huge, step)
    assert [int(word) for word in words] == [int(value) % 2**64 for value in huge]
    with pytest.raises(PrivacyError, match="not finite"):
        encode(np.array([np.nan]), step)
    with pytest.raises(PrivacyError, match="not finite"):
        encode(np.array([1e300]), replace(step, grid=1e-300))


def test_shapes_and_empty_columns_come_back() -> None:
    values = np.arange(6.0).reshape(2, 3)
    for words in (1, 2):
        table = GridColumn(name="x", shape=(2, 3), grid=0.5, words=words)
        assert encode(values, table).size == table.size == 6 * words
        assert np.array_equal(decode(encode(values, table), table), values)
        empty = replace(table, shape=(0,))
        assert decode(encode(np.zeros((1, 0)), empty), empty).shape == (0,)


def columns_of(made: Any, round_: int, told: tuple[float, float] = (1.0, 1.0)) -> tuple[GridColumn, ...]:
    form = HubMessageSchemas(made).at(round_).up
    return columns(made, round_, form, dict.fromkeys(form.terms, told))


@pytest.mark.parametrize("multiplier", [1e-3, 0.7, 30.0, 1e5])
def test_the_grid_is_that_of_the_noise_shares(multiplier: float) -> None:
    example = replace(DPSGD.example(), noise=GaussianNoise(multiplier=multiplier))
    made = plan_example(example, trust="secure-sum", colluders=2, sampler=Safe())
    (column,) = columns_of(made, 0)
    largest = largest_bounds(made, made.algorithm.releases, 0)["gradient"]
    share = multiplier * largest / math.sqrt(made.parties - 2 - 1)
    assert column.grid == Safe().grid(share, largest, made.problem.dim)
    assert math.frexp(column.grid)[0] == 0.5  # a power of two


def test_an_adaptive_bound_moves_the_grid() -> None:
    made = plan_example(PreconditionedFixedPoint.example(), trust="secure-sum", sampler=Safe())
    (one,), (other,) = columns_of(made, 1), columns_of(made, 1, (8.0, 0.25))
    assert other.grid == 16 * one.grid


def test_without_a_grid_the_finest_is_taken_on_which_the_sum_fits() -> None:
    for cls in (DPSGD, DualConsensusADMM, ConsensusADMM):
        made = plan_example(cls.example(), trust="secure-sum")
        (column,) = columns_of(made, 0)
        (release,) = made.algorithm.releases(made.facts)
        reach = made.parties * float(np.max(release.bounds.party_replace_one))
        coarsest = column.grid * (2.0**40 if column.words == 2 else 1.0)
        assert reach / coarsest < 2.0**63
        assert column.grid < 1e-17 * reach


def test_a_sum_that_may_not_fit_is_refused_when_it_is_planned() -> None:
    example = DPSGD.example()
    many = replace(example.problem, sizes=np.full(6, 2**26))
    made = plan(
        many,
        replace(example.algorithm, rate=1.0),
        rounds=1,
        noise=GaussianNoise(multiplier=1.0),
        trust="secure-sum",
        sampler=Safe(),
    )

    def declare(facts):
        """Noise for records that count for next to nothing, on the sum of all of them."""
        (release,) = made.algorithm.releases(facts)
        bounds = replace(release.bounds, record_add_remove=1e-15, record_replace_one=1e-15)
        return (replace(release, bounds=bounds),)

    check(made, made.algorithm.releases)
    with pytest.raises(PreconditionError, match=r"can reach .* steps of the grid of its noise, and 9.22e\+18 fit"):
        check(made, declare)
    assert grids_of(made, declare, 0) is None
    fewer = plan_example(example, trust="secure-sum", sampler=Safe())
    check(fewer, made.algorithm.releases)


def test_a_contribution_without_a_public_bound_is_refused() -> None:
    made = plan_example(DPSGD.example(), trust="secure-sum")

    def unbounded(facts: Any) -> Any:
        (release,) = made.algorithm.releases(facts)
        return (replace(release, bounds=Bounds(party_replace_one=1.0, record_replace_one=1.0)),)

    with pytest.raises(PreconditionError, match="no public bound on a whole contribution to 'gradient'"):
        check(made, unbounded)
    assert grids_of(made, unbounded, 0) is None  # in one process it is added up as it is


class Allowed:
    charge = None

    def open(self) -> None: ...

    def close(self) -> None: ...


class Line:
    """Keeps what every party made before it was masked."""

    def __init__(self, parties: list[Party]) -> None:
        self.parties = parties
        self.said: dict[int, list[bytes]] = {}

    def ask(self, questions: dict[int, Question], check: Any, *, partial: bool) -> dict[int, bytes]:
        answers = {}
        for party, question in questions.items():
            answers[party] = self.parties[party].answer(
                round_=question.round, stage=question.stage, body=question.body, counted=question.counted
            )
            check(party, answers[party])
            if question.stage == "step":
                self.said.setdefault(question.round, []).append(self.parties[party].disk.read_bytes("said") or b"")
        return answers


@pytest.mark.parametrize("cls", [DPSGD, ConsensusADMM])
def test_safe_noise_meets_the_sum_on_its_grid(cls: Any, tmp_path: Path) -> None:
    """What is masked is what was released, to the last bit, and so is the sum that the hub opens."""
    example = cls.example()
    made = plan_example(example, trust="secure-sum", rounds=2, sampler=Safe(), colluders=1)
    shards = Shards.from_parties(example.problem, draw(example.problem, np.random.default_rng(0)))
    disks = [Disk(tmp_path / str(party), owner=str(party), run="r", fingerprint="f") for party in range(6)]
    parties = [
        Party(made, shards, party, disks[party], guard=Allowed(), contributor=secure_parts(made)[1])
        for party in range(6)
    ]
    disk, line = Disk(tmp_path / "hub", owner="hub", run="r", fingerprint="f"), Line(parties)
    totals: list[np.ndarray] = []
    summation = secure_parts(made)[0]
    gather = summation.gather

    def watched(turn: Any) -> Any:
        gathered = gather(turn)
        (total,) = vars(gathered.total).values()
        totals.append(total)
        return gathered

    summation.gather = watched  # type: ignore[method-assign]
    for _ in HubRun(made, disk, summation=summation).rounds(line):
        pass
    for each in (*disks, disk):
        each.close()
    for round_, messages in line.said.items():
        form, (column,) = HubMessageSchemas(made).at(round_).up, columns_of(made, round_)
        values = [decode_values(message, form.schema)[column.name][0] for message in messages]
        assert len(values) == 6
        for value in values:
            assert np.array_equal(decode(encode(value, column), column), value)
        # Below 2^53 steps doubles add up without rounding, so this is the exact sum.
        assert np.array_equal(totals[round_], np.sum(values, axis=0))


def test_seeded_and_safe_plans_differ_in_their_grid_only() -> None:
    made = [plan_example(DPSGD.example(), trust="secure-sum", sampler=sampler) for sampler in (Seeded(1), Safe())]
    fine, coarse = (columns_of(each, 0)[0] for each in made)
    assert (fine.name, fine.shape) == (coarse.name, coarse.shape)
    assert fine.grid < coarse.grid
