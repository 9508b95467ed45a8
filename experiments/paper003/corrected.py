"""The same methods with a global sensitivity, all iterations composed, and their number chosen from public facts."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np

from consenso import theory
from consenso.algorithms.dp_admm import DPADMM
from consenso.algorithms.inexact_admm import InexactADMM, Proximal, TrustRegion
from consenso.engine.run import run
from consenso.losses import Softmax
from consenso.planning.plan import Plan, plan
from consenso.privacy.calibrate import EpsilonDelta, calibrate_noise
from consenso.privacy.events import Laplace, repeat
from consenso.privacy.noise import LaplaceNoise
from consenso.privacy.observers import Eavesdropper, Server
from consenso.privacy.samplers import Seeded
from consenso.problem import Problem
from consenso.regularizers import L2
from consenso.shards import Shards
from consenso.solvers import prepare
from experiments.cards import checked
from experiments.paper003.published import BETA, DELTA
from experiments.paper003.worlds import World, world

LENGTH = 10.0  # images are divided by it, and shortened to norm 1: few are longer, whatever the data
ROW_BOUND_1 = 14.0  # of an image after that: 140 of 784 pixels full of ink
STEP = 8.0  # images share most of their ink, so the mean curves far less than a single row may
REACH = 2.0  # how far noise may walk, in scores
FEWEST, MOST = 5, 100
METHODS = ("Prox, Laplace", "Prox, Gaussian", "Trust, Gaussian", "OutP, Gaussian", "secure sum, no tuning")


@cache
def shards_of(data: str, images: int) -> Shards:
    """The images as a problem: bounds are public, rows beyond them are shortened."""
    here = world(data, images)
    problem = Problem(
        loss=Softmax(classes=here.classes),
        regularizer=L2(strength=2 * BETA),
        features=here.X.shape[1],
        sizes=np.diff(here.offsets),
        row_bound=1.0,
        adjacency="replace-one",
    )
    return Shards.build(problem, here.X.astype(np.float64) / LENGTH, here.y, here.offsets)


def train(*, data: str, method: str, epsilon: float, images: int, seed: int, carded: bool) -> dict[str, Any]:
    """A run of total `epsilon` for the observer that the method withstands; the error of its averaged model."""
    shards, here = shards_of(data, images), world(data, images)
    made = planned(shards.problem, method, epsilon, seed)
    result = run(made, shards)
    observer = Server() if method.startswith("secure sum") else Eavesdropper()
    card = {"card": checked(made.card(DELTA))} if carded else {}
    return {
        "error": here.test_error(result.coefficients),
        "rounds": result.rounds,
        "epsilon": made.guarantee(observer, DELTA).epsilon(DELTA),
        **card,
    }


def planned(problem: Problem, method: str, epsilon: float, seed: int) -> Plan:
    """The plan of a method at a total epsilon."""
    target, sampler = EpsilonDelta(epsilon=epsilon, delta=DELTA), Seeded(seed)
    if method.startswith("secure sum"):
        return prepare(problem, target, trust="secure-sum", observer=Server(), sampler=sampler)
    rounds = pace(problem, epsilon)
    # Half of the denominator from the penalty, half from the proximity: a step of STEP in all.
    penalty, proximity = 1 / (2 * STEP), 2 * STEP
    if method == "OutP, Gaussian":
        algorithm: Any = DPADMM(penalty=penalty, proximity=proximity, averaging=0.5)
    elif method == "Trust, Gaussian":
        algorithm = InexactADMM(subproblem=TrustRegion(radius=1.0), penalty=1 / STEP, norm=2, averaging=0.5)
    elif method == "Prox, Gaussian":
        algorithm = InexactADMM(subproblem=Proximal(proximity=proximity), penalty=penalty, norm=2, averaging=0.5)
    else:
        algorithm = InexactADMM(
            subproblem=Proximal(proximity=proximity), penalty=penalty, row_bound_1=ROW_BOUND_1, averaging=0.5
        )
        scale = calibrate_noise(lambda m: repeat(Laplace(scale=m, sensitivity=1.0), rounds), target)
        return plan(problem, algorithm, rounds=rounds, noise=LaplaceNoise(multiplier=scale), sampler=sampler)
    return plan(problem, algorithm, rounds=rounds, target=target, observer=Eavesdropper(), sampler=sampler)


def pace(problem: Problem, epsilon: float) -> int:
    """Rounds after which Gaussian noise within the budget has walked the reach; public facts only."""
    bound = problem.loss.gradient_gap(problem.row_bound, 2, problem.adjacency)
    std = bound / float(np.mean(problem.sizes)) / math.sqrt(problem.parties * 2 * theory.budget(epsilon, DELTA))
    time_ = REACH / (std * math.sqrt(problem.outputs))
    return int(np.clip(math.ceil(time_ / STEP), FEWEST, MOST))


def exact(*, data: str, images: int) -> dict[str, Any]:
    """The fit without privacy, to its optimum, on the images as the paper has them."""
    from sklearn.linear_model import LogisticRegression

    here: World = world(data, images)
    model = LogisticRegression(C=1 / (2 * BETA * len(here.y)), fit_intercept=False, tol=1e-4, max_iter=150)
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the optimum is far out; the test error has settled long before
        model.fit(here.X, here.y)
    return {"error": here.test_error(model.coef_.T.astype(np.float32))}
