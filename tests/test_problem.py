from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np
import pytest

from consenso.errors import InputError
from consenso.losses import Hinge, Huber, Logistic, Softmax, Squared
from consenso.problem import Problem
from consenso.regularizers import L2, NoPenalty


def make(**changes: Any) -> Problem:
    facts: dict[str, Any] = {
        "loss": Logistic(),
        "regularizer": L2(strength=0.1),
        "features": 3,
        "sizes": [2, 5, 1],
        "row_bound": 2.0,
    }
    return Problem(**(facts | changes))


def test_facts_of_the_federation() -> None:
    problem = make()
    assert (problem.parties, problem.records, problem.outputs, problem.dim) == (3, 8, 1, 3)
    assert make(loss=Softmax(classes=4)).dim == 12
    assert problem.sizes.dtype == np.int64


def test_record_weighting_makes_the_mean_over_parties_a_mean_over_records() -> None:
    problem = make()
    # mean over parties of scale * sum of losses = sum of all losses / number of records
    np.testing.assert_allclose(problem.scales / problem.parties, np.full(3, 1 / 8))


def test_party_weighting_makes_each_objective_a_mean() -> None:
    problem = make(weighting="party")
    np.testing.assert_allclose(problem.scales, [1 / 2, 1 / 5, 1])
    np.testing.assert_allclose(problem.lipschitz, np.full(3, Logistic().lipschitz(2.0)))
    np.testing.assert_allclose(problem.smoothness, np.full(3, Logistic().smoothness(2.0)))


def test_constants_scale_with_records_and_weights() -> None:
    problem = make()
    np.testing.assert_allclose(problem.record_lipschitz, 3 / 8 * 2.0 * np.ones(3))
    np.testing.assert_allclose(problem.lipschitz, 3 / 8 * 2.0 * np.array([2, 5, 1]))
    np.testing.assert_allclose(problem.smoothness, 3 / 8 * 0.25 * 4.0 * np.array([2, 5, 1]))


def test_constants_are_infinite_where_the_loss_has_none() -> None:
    assert np.all(np.isinf(make(loss=Squared(), target_bound=1.0).lipschitz))
    assert np.all(np.isinf(make(loss=Hinge()).smoothness))


def test_everything_is_frozen() -> None:
    problem = make()
    with pytest.raises(dataclasses.FrozenInstanceError):
        problem.features = 4  # type: ignore[misc]
    for array in (problem.sizes, problem.scales, problem.lipschitz, problem.record_lipschitz, problem.smoothness):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 7


def test_the_given_sizes_are_copied() -> None:
    sizes = np.array([2, 5, 1])
    problem = make(sizes=sizes)
    sizes[0] = 9
    assert problem.sizes[0] == 2


def test_equality_and_hash_are_by_facts() -> None:
    assert make() == make()
    assert hash(make()) == hash(make())
    assert make() != make(sizes=[2, 5, 2])
    assert make() != make(row_bound=3.0)
    assert dataclasses.replace(make(), unit="party") == make(unit="party")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"features": 0}, r"features=0.*at least 1"),
        ({"features": 2.0}, r"features=2.0.*whole number"),
        ({"features": True}, r"features=True.*whole number"),
        ({"sizes": []}, r"sizes.*whole numbers"),
        ({"sizes": [[1, 2]]}, r"sizes.*shape \(1, 2\)"),
        ({"sizes": [1.0, 2.0]}, r"sizes.*whole numbers.*float64"),
        ({"sizes": [[1], [2, 3]]}, r"sizes.*whole numbers"),
        ({"sizes": [3, 0, 2]}, r"party 1 has size 0"),
        ({"sizes": [3, 1, -2]}, r"party 2 has size -2"),
        ({"row_bound": 0.0}, r"row_bound=0.0.*positive finite"),
        ({"row_bound": -1.0}, r"row_bound=-1.0.*positive finite"),
        ({"row_bound": math.inf}, r"row_bound=inf.*positive finite"),
        ({"row_bound": math.nan}, r"row_bound=nan.*positive finite"),
        ({"row_bound": "1"}, r"row_bound='1'.*positive finite"),
        ({"target_bound": 1.0}, r"target_bound=1.0.*logistic loss has labels"),
        ({"loss": Huber()}, r"target_bound=None.*huber loss has real targets"),
        ({"loss": Huber(), "target_bound": 0.0}, r"target_bound=0.0.*positive finite"),
        ({"loss": Squared(), "target_bound": math.inf}, r"target_bound=inf.*positive finite"),
        ({"unit": "user"}, r"unit='user'.*'record' or 'person' or 'party'"),
        ({"adjacency": "replace"}, r"adjacency='replace'.*'add-remove' or 'replace-one'"),
        ({"weighting": "equal"}, r"weighting='equal'.*'record' or 'party'"),
    ],
)
def test_bad_facts_are_refused_by_name(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        make(**changes)


def test_numpy_numbers_are_numbers() -> None:
    problem = make(features=np.int64(3), row_bound=np.float32(2.0), regularizer=NoPenalty())
    assert type(problem.features) is int
    assert type(problem.row_bound) is float
