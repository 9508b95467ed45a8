"""What planning costs: ten thousand rounds, noise calibrated to an epsilon, beside ten rounds.

Run `python -m benchmarks planning`. Rounds that an algorithm does not tell apart are declared once, so that a plan of
many equal rounds takes about as long as one of few. Noise that falls from round to round has a cost for each of them.
"""

from __future__ import annotations

import numpy as np

from benchmarks.measure import Figure, best
from consenso.algorithms.consensus import ConsensusADMM
from consenso.algorithms.dp_sgd import DPSGD
from consenso.losses import Logistic
from consenso.planning.plan import plan
from consenso.privacy.calibrate import EpsilonDelta
from consenso.privacy.noise import GaussianNoise, Polynomial
from consenso.problem import Problem
from consenso.regularizers import L2

FEW, MANY = 10, 10_000
# Version 0.1.0 took 0.4 seconds.
MOST_SECONDS, MOST_RATIO = 0.4, 3.0


def run() -> list[Figure]:
    """Seconds of a plan of ten thousand rounds, over one of ten, and with noise that falls."""
    problem = Problem(
        loss=Logistic(), regularizer=L2(strength=0.01), features=20, sizes=np.full(10, 100), row_bound=1.0
    )
    target, falling = EpsilonDelta(epsilon=1.0, delta=1e-5), GaussianNoise(multiplier=Polynomial(first=50, power=-0.1))
    rows = []
    for algorithm, trust in ((ConsensusADMM(step=0.5), "local"), (DPSGD(step=0.5), "curator")):
        name = type(algorithm).__name__
        few, many = best(
            lambda a=algorithm, t=trust: plan(problem, a, rounds=FEW, target=target, trust=t),
            lambda a=algorithm, t=trust: plan(problem, a, rounds=MANY, target=target, trust=t),
        )
        (changing,) = best(
            lambda a=algorithm, t=trust: plan(problem, a, rounds=MANY, noise=falling, trust=t), repeats=2
        )
        rows += [
            Figure(f"plan {MANY} rounds of {name}", many, "s", limit=MOST_SECONDS),
            Figure(f"plan {MANY} rounds of {name} over {FEW}", many / few, limit=MOST_RATIO),
            Figure(f"plan {MANY} rounds of {name}, falling noise", changing, "s"),
        ]
    return rows
