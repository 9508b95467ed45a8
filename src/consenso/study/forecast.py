"""What a study can be expected to reach at several budgets, before a private row is read.

Simulated runs of the study's own algorithm, on a public file of the same schema or on made-up records, with as many
records as the study declares. Where those are too many to simulate, fewer are taken and the budget is raised in
proportion, so that a mean over records carries the same noise. Beside them, what the solvers' rules expect from public
facts alone: the share of what could be learnt that noise takes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from consenso.arrays import Array
from consenso.engine.run import run
from consenso.errors import InputError
from consenso.privacy.calibrate import EpsilonDelta, calibrate_noise
from consenso.privacy.card.odds import most_right
from consenso.privacy.events import Gaussian
from consenso.shards import Shards
from consenso.solvers.exact import fit_exact
from consenso.solvers.forecast import expected_excess
from consenso.splits import Split
from consenso.study.made_up import draw_weights, make_records
from consenso.study.privacy import WAYS
from consenso.study.sources import Records, file_records, model_rows
from consenso.study.study import Study
from consenso.trust import without_graph

EPSILONS = (0.1, 0.3, 1.0, 3.0, 10.0)
RUNS = 5
MOST = 20_000  # records of a simulated table
TESTED = 2000  # made-up records that models are measured on
Progress = Callable[[int, int], None]


@dataclass(frozen=True, kw_only=True)
class ForecastPoint:
    """What is expected at one budget: the mean of the simulated runs, and the least and the most of them."""

    epsilon: float
    mean: float
    low: float
    high: float
    odds: int  # of 100 attackers, how many are right at most
    by_rules: float | None  # what the solvers' own model expects, where their rules chose the algorithm


@dataclass(frozen=True, kw_only=True)
class Forecast:
    """Expected quality by budget; `measure` is accuracy (more is better) or rmse (less is better).

    exact: without privacy, on the same records. simplest: of the commonest class, or of the mean. source: what was
    simulated on.
    """

    measure: str
    delta: float
    records: int
    features: int
    trust: str
    algorithm: str
    points: tuple[ForecastPoint, ...]
    exact: float
    simplest: float
    runs: int
    source: str

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def forecast(
    study: Study,
    epsilons: Sequence[float] = EPSILONS,
    *,
    public: Path | None = None,
    runs: int = RUNS,
    most: int = MOST,
    seed: int = 0,
    progress: Progress | None = None,
) -> Forecast:
    """Simulate a study at several budgets. `public` is a file of the same schema that may be read by anybody."""
    if public is not None and study.data.schema is None:
        raise InputError("--public: a set of the catalogue has no schema to read a file by; leave the file out.")
    small, factor = _shrink(study, most)
    draws = [_draw(small, public, np.random.default_rng([seed, place])) for place in range(runs)]
    exact = float(np.mean([_measure(small, _fit(small, train), test) for train, test in draws]))
    simplest = float(np.mean([_simplest(small, test) for _, test in draws]))
    points: list[ForecastPoint] = []
    algorithms: dict[str, None] = {}  # the rules may choose another one for another budget
    for place, epsilon in enumerate(epsilons):
        found = []
        for number, (train, test) in enumerate(draws):
            made = _with_budget(small, epsilon, factor, seed=seed + number)
            algorithms[type(made.plan().algorithm).__name__] = None
            result = run(made.plan(), _shards(made, train))
            found.append(_measure(made, result.coefficients, test))
            if progress is not None:
                progress(place * runs + number + 1, len(epsilons) * runs)
        points.append(
            ForecastPoint(
                epsilon=epsilon,
                mean=float(np.mean(found)),
                low=float(np.min(found)),
                high=float(np.max(found)),
                odds=_odds(epsilon, study.privacy.delta),
                by_rules=_by_rules(_with_budget(study, epsilon, 1.0, seed=seed), exact, simplest),
            )
        )
    return Forecast(
        measure="rmse" if study.data.task == "regression" else "accuracy",
        delta=study.privacy.delta,
        records=int(study.sizes.sum()),
        features=study.data.features,
        trust=study.setting.trust,
        algorithm=" or ".join(algorithms),
        points=tuple(points),
        exact=exact,
        simplest=simplest,
        runs=runs,
        source=f"the public file {public.name}" if public is not None else "made-up records of the same schema",
    )


def _with_budget(study: Study, epsilon: float, factor: float, *, seed: int) -> Study:
    """The study as a simulation with another budget; fewer records have a larger one, so that means are as noisy."""
    keys: dict[str, Any] = {f"privacy.{way}": None for way in WAYS}
    keys |= {"privacy.seed": seed, "privacy.ledger": None, "privacy.delta": study.privacy.delta}
    if factor == 1.0:
        return study.change({**keys, "privacy.epsilon": float(epsilon)})
    return study.change({**keys, "privacy.mu": factor * _mu(epsilon, study.privacy.delta)})


def _by_rules(study: Study, exact: float, simplest: float) -> float | None:
    """Between the exact model and the simplest, by the share of what could be learnt that noise is expected to take.

    Of errors of a regression the squares lie between those of the two.
    """
    plan = study.plan()
    if study.setting.algorithm is not None or plan.shape != "hub":
        return None
    trust = without_graph(plan.trust)
    target = study.privacy.target
    assert target is not None
    share = expected_excess(study.problem(), target, trust=trust, schedule=study.setting.schedule).share_lost
    power = 2 if study.data.task == "regression" else 1
    return float((exact**power + share * (simplest**power - exact**power)) ** (1 / power))


def _mu(epsilon: float, delta: float) -> float:
    return 1 / calibrate_noise(lambda multiplier: Gaussian(multiplier, 1.0), EpsilonDelta(epsilon=epsilon, delta=delta))


def _odds(epsilon: float, delta: float) -> int:
    """Of 100 attackers, for the Gaussian mechanism that meets the budget exactly."""
    return min(100, math.ceil(100 * most_right(Gaussian(1 / _mu(epsilon, delta), 1.0)) - 1e-9))


def _shrink(study: Study, most: int) -> tuple[Study, float]:
    """A study of at most so many records where all parties are alike, and by how much it is smaller."""
    records, split = int(study.sizes.sum()), study.setting.split
    alike = study.setting.kind == "central" or (split is not None and split.kind == "equal")
    if records <= most or not alike or most < 2 * len(study.parties):
        return study, 1.0
    return study.change({"data.rows": most, "data.holdout": None}), records / most


def _draw(study: Study, public: Path | None, rng: np.random.Generator) -> tuple[Records, Records]:
    """Records to train on and to measure on. A public file is divided, and repeated until there are enough."""
    rows = int(study.sizes.sum())
    if public is None:
        weights = draw_weights(study.data, rng)
        whole = make_records(study.data, weights, rows + TESTED, rng)
        return _take(whole, np.arange(rows)), _take(whole, np.arange(rows, rows + TESTED))
    read = file_records(study.data, public)
    order = rng.permutation(len(read.y))
    held = max(1, len(order) // 4)
    if len(order) < 2:
        raise InputError(f"--public {public}: one record cannot be divided; name a larger file.")
    return _take(read, rng.choice(order[held:], size=rows)), _take(read, order[:held])


def _take(records: Records, places: Any) -> Records:
    return Records(records.X[places], records.y[places], None)


def _shards(study: Study, records: Records) -> Shards:
    offsets = np.concatenate([[0], np.cumsum(study.sizes)]).astype(np.int64)
    split = Split(np.arange(offsets[-1], dtype=np.int64), offsets)
    return Shards.from_table(study.problem(), model_rows(records.X, study.data, study.model), records.y, split)


def _fit(study: Study, records: Records) -> Array:
    found = fit_exact(study.problem(), _shards(study, records))
    return found.reshape(-1, study.problem().outputs)


def _measure(study: Study, coefficients: Array, test: Records) -> float:
    rows = model_rows(test.X, study.data, study.model)
    scores = np.asarray(rows @ coefficients)
    y = np.asarray(test.y)
    if study.data.task == "regression":
        return float(np.sqrt(np.mean((scores[:, 0] - y) ** 2)))
    said = np.where(scores[:, 0] > 0, 1.0, -1.0) if scores.shape[1] == 1 else np.argmax(scores, axis=1)
    return float(np.mean(said == y))


def _simplest(study: Study, test: Records) -> float:
    y = np.asarray(test.y, dtype=np.float64)
    if study.data.task == "regression":
        return float(y.std())
    return float(np.unique(y, return_counts=True)[1].max() / len(y))
