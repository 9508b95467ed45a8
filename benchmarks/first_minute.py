"""What a newcomer waits for: the processor time of a first fit in a fresh interpreter, and of `consenso --help`.

Run `python -m benchmarks first_minute`. Processor time and not the clock: a busy machine makes both longer, but this
one by little. The best of several runs counts, after one that may write compiled files.
"""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.measure import Figure, program_seconds

REPEATS = 4
FIT = """
import numpy as np
import pandas as pd
from consenso import PrivateLogisticRegression
rng = np.random.default_rng(0)
X = pd.DataFrame({"age": rng.random(1000), "stays": rng.random(1000)})
y = np.where(X["age"] + 0.1 * rng.normal(size=1000) > 0.5, "yes", "no")
model = PrivateLogisticRegression(epsilon=1.0, row_bound=2**0.5, classes=["no", "yes"]).fit(X, y)
assert model.score(X, y) > 0.5 and model.card_.sentence()
"""


def run() -> Iterator[Figure]:
    """Seconds of user and system time."""
    yield Figure("first fit of a data frame, all imports", _cost("-c", FIT), "s", limit=2.0)
    yield Figure("consenso --help", _cost("-m", "consenso", "--help"), "s", limit=0.5)
    yield Figure("import pandas and scikit-learn, for comparison", _cost("-c", "import pandas, sklearn.base"), "s")


def _cost(*arguments: str) -> float:
    return min([program_seconds(*arguments) for _ in range(REPEATS + 1)][1:])
