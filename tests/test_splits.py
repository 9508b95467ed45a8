from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from consenso import splits
from consenso.errors import InputError
from consenso.splits import Split


def assert_is_partition(split: Split, rows: int) -> None:
    assert split.offsets[0] == 0
    assert split.offsets[-1] == rows == split.rows
    assert np.all(split.sizes >= 1)
    np.testing.assert_array_equal(np.sort(split.order), np.arange(rows))


@given(parties=st.integers(1, 40), extra=st.integers(0, 60), seed=st.none() | st.integers(0, 9))
def test_equal_sizes_differ_by_at_most_one(parties: int, extra: int, seed: int | None) -> None:
    rows = parties + extra
    split = splits.equal(rows, parties, None if seed is None else np.random.default_rng(seed))
    assert_is_partition(split, rows)
    assert split.parties == parties
    assert split.sizes.max() - split.sizes.min() <= 1


def test_equal_is_in_order_without_a_generator_and_random_with_one() -> None:
    np.testing.assert_array_equal(splits.equal(10, 3).order, np.arange(10))
    shuffled = splits.equal(100, 3, np.random.default_rng(0))
    assert not np.array_equal(shuffled.order, np.arange(100))
    np.testing.assert_array_equal(shuffled.order, splits.equal(100, 3, np.random.default_rng(0)).order)


def test_one_per_record() -> None:
    split = splits.one_per_record(4)
    assert_is_partition(split, 4)
    np.testing.assert_array_equal(split.party_of_row, [0, 1, 2, 3])


def test_by_column_groups_equal_values_and_keeps_their_order() -> None:
    split = splits.by_column(["rome", "bari", "rome", "como", "bari"])
    assert_is_partition(split, 5)
    np.testing.assert_array_equal(split.party_of_row, [2, 0, 2, 1, 0])
    np.testing.assert_array_equal(split.order, [1, 4, 3, 0, 2])


@given(st.lists(st.integers(0, 5), min_size=1, max_size=40))
def test_party_of_row_inverts_by_party(numbers: list[int]) -> None:
    dense = np.unique(numbers, return_inverse=True)[1]
    split = splits.by_party(dense)
    assert_is_partition(split, len(numbers))
    np.testing.assert_array_equal(split.party_of_row, dense)


@given(
    seed=st.integers(0, 99),
    parties=st.integers(1, 30),
    extra=st.integers(0, 50),
    concentration=st.sampled_from([1e-3, 0.1, 1.0, 100.0]),
)
def test_dirichlet_leaves_nobody_empty(seed: int, parties: int, extra: int, concentration: float) -> None:
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 4, size=parties + extra)
    split = splits.dirichlet(labels, parties, concentration, rng)
    assert split.parties == parties
    assert_is_partition(split, parties + extra)


def test_a_small_concentration_skews_labels() -> None:
    # Mean over parties of the share of their commonest class: near 1/4 for large concentrations, near 1 for small ones.
    labels = np.arange(20_000) % 4

    def purity(concentration: float) -> float:
        split = splits.dirichlet(labels, 20, concentration, np.random.default_rng(0))
        counts = np.zeros((20, 4))
        np.add.at(counts, (split.party_of_row, labels), 1)
        return float((counts.max(axis=1) / counts.sum(axis=1)).mean())

    assert purity(1000.0) < 0.3
    assert purity(0.05) > 0.7


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: splits.equal(3, 4), r"equal\(parties=4\).*only 3 rows"),
        (lambda: splits.equal(0, 1), r"equal\(rows=0\).*at least 1"),
        (lambda: splits.equal(3, 0), r"equal\(parties=0\).*at least 1"),
        (lambda: splits.equal(3, 1.5), r"equal\(parties=1.5\).*whole number"),
        (lambda: splits.one_per_record(0), r"one_per_record\(rows=0\)"),
        (lambda: splits.by_column([]), r"by_column.*shape \(0,\)"),
        (lambda: splits.by_column([[1], [2]]), r"by_column.*shape \(2, 1\)"),
        (lambda: splits.by_party([0, 2]), r"party 1 holds none"),
        (lambda: splits.by_party([0, 1], 3), r"party 2 holds none"),
        (lambda: splits.by_party([0, 3], 2), r"lies in 0\.\.1"),
        (lambda: splits.by_party([0, -1]), r"lies in 0\.\.0"),
        (lambda: splits.by_party([0.0, 1.0]), r"whole number per row.*float64"),
        (lambda: splits.dirichlet([0, 1], 3, 1.0, np.random.default_rng(0)), r"dirichlet\(parties=3\).*only 2 rows"),
        (lambda: splits.dirichlet([0, 1], 1, 0.0, np.random.default_rng(0)), r"concentration=0.0.*positive"),
        (lambda: splits.dirichlet([0, 1], 1, np.inf, np.random.default_rng(0)), r"concentration=inf.*finite"),
    ],
)
def test_bad_arguments_are_refused_by_name(call: Callable[[], Split], message: str) -> None:
    with pytest.raises(InputError, match=message):
        call()


@pytest.mark.parametrize("rng", [None, np.random.default_rng(0)], ids=["in order", "at random"])
def test_groups_stay_whole(rng) -> None:
    ids = np.random.default_rng(1).integers(0, 23, size=200).astype(str)
    split = splits.by_group(ids, 5, rng)
    party = split.party_of_row
    assert all(len(set(party[ids == one])) == 1 for one in set(ids))
    many = [len(set(ids[party == one])) for one in range(5)]
    assert max(many) - min(many) <= 1
    with pytest.raises(InputError, match="one value per row"):
        splits.by_group(ids[:, None], 5)
