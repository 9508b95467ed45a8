"""What can be compared, each as a function of a budget and a seed: estimators, factories, solvers and algorithms."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from consenso.algorithms.shape import HubAlgorithm, PeerAlgorithm
from consenso.arrays import Array
from consenso.engine.run import run
from consenso.errors import InputError
from consenso.planning.plan import Plan, plan
from consenso.privacy.calibrate import EpsilonDelta
from consenso.privacy.samplers import Seeded
from consenso.problem import Problem
from consenso.shards import Shards
from consenso.solvers import names, prepare
from consenso.solvers.exact import fit_exact
from consenso.splits import Split

ROUNDS = 50  # of an algorithm that is given without a number of rounds


@dataclass(frozen=True, kw_only=True)
class Data:
    """Records to learn from and to measure on. `y` is as the loss takes it: -1 and +1, class numbers, or numbers.

    Public, or a simulation's: what is measured is shown, and runs are repeated.
    """

    X: Any
    y: Any
    X_test: Any
    y_test: Any


# Predictions of the test records for an epsilon, a delta and a seed.
Method = Callable[[float, float, int], Any]


def method_of(given: Any, problem: Problem, data: Data) -> tuple[str, Method, bool]:
    """The name of a method, what it predicts, and whether it depends on epsilon."""
    if isinstance(given, str):
        return _solver(given, problem, data)
    algorithm, rounds = given if isinstance(given, tuple) and len(given) == 2 else (given, ROUNDS)
    if isinstance(algorithm, HubAlgorithm | PeerAlgorithm) and not inspect.isclass(algorithm):
        return type(algorithm).__name__, _algorithm(algorithm, int(rounds), problem, data), True
    if hasattr(given, "fit") and hasattr(given, "predict"):
        return type(given).__name__, _estimator(given, data), hasattr(given, "epsilon")
    if callable(given):
        name = getattr(given, "__name__", type(given).__name__)
        return name, lambda epsilon, delta, seed: _fit(given(epsilon=epsilon, delta=delta, seed=seed), data), True
    raise InputError(
        f"compare(methods=[..., {given!r}]): a method is the name of a solver, an algorithm (or a pair with its "
        "rounds), an object with fit and predict, or a function of epsilon, delta and seed that makes one."
    )


def _solver(name: str, problem: Problem, data: Data) -> tuple[str, Method, bool]:
    if name == "exact":
        return "without privacy", lambda *_: _predict(problem, fit_exact(problem, _shards(problem, data)), data), False
    if name != "auto" and name not in names():
        raise InputError(f"compare(methods=[{name!r}]): the solvers are auto, exact, {', '.join(names())}; name one.")

    def predict(epsilon: float, delta: float, seed: int) -> Any:
        target = EpsilonDelta(epsilon=epsilon, delta=delta)
        return _run(prepare(problem, target, solver=name, sampler=Seeded(seed)), data)

    return name, predict, True


def _algorithm(algorithm: Any, rounds: int, problem: Problem, data: Data) -> Method:
    def predict(epsilon: float, delta: float, seed: int) -> Any:
        target = EpsilonDelta(epsilon=epsilon, delta=delta)
        return _run(plan(problem, algorithm, rounds=rounds, target=target, sampler=Seeded(seed)), data)

    return predict


def _estimator(given: Any, data: Data) -> Method:
    def predict(epsilon: float, delta: float, seed: int) -> Any:
        wanted = {"epsilon": epsilon, "delta": delta, "random_state": seed}
        if hasattr(given, "get_params"):
            # Made anew, so that a seed is its owner's and not one that was set on a clone.
            known = given.get_params(deep=False)
            made = type(given)(**{**known, **{name: value for name, value in wanted.items() if name in known}})
        else:
            made = copy.deepcopy(given)
            for name, value in wanted.items():
                if hasattr(made, name):
                    setattr(made, name, value)
        return _fit(made, data)

    return predict


def _fit(made: Any, data: Data) -> Any:
    made.fit(data.X, data.y)
    return made.predict(data.X_test)


def _run(made: Plan, data: Data) -> Any:
    return _predict(made.problem, run(made, _shards(made.problem, data)).model, data)


def _shards(problem: Problem, data: Data) -> Shards:
    offsets = np.concatenate([[0], np.cumsum(problem.sizes)]).astype(np.int64)
    if offsets[-1] != len(data.y):
        raise InputError(
            f"compare(problem=...): its sizes add up to {offsets[-1]} records and the data have {len(data.y)}; state "
            "the sizes of the data."
        )
    return Shards.from_table(problem, data.X, data.y, Split(np.arange(offsets[-1], dtype=np.int64), offsets))


def _predict(problem: Problem, model: Array, data: Data) -> Any:
    scores = np.asarray(data.X_test @ np.reshape(model, (-1, problem.outputs)))
    if problem.loss.targets == "real":
        return scores[:, 0]
    return np.where(scores[:, 0] > 0, 1, -1) if problem.outputs == 1 else np.argmax(scores, axis=1)
