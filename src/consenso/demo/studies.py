"""The studies of the demo, and the tables that they need: embedded digits, and a made-up ward."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from consenso.conventions import LARGEST_DELTA
from consenso.privacy.calibrate import EpsilonDelta

DELTA = LARGEST_DELTA
RECORDS, PUBLIC = 6000, 1500
COLUMNS, USED = 16, 4  # of the ward: how many are asked, how many matter

_EVEN = """
[data]
dataset = "digits"
positive = ["0", "2", "4", "6", "8"]
holdout = 357

[model]
loss = "logistic"
regularizer = { kind = "l2", strength = 0.001 }
intercept = true
"""
_BUDGET = """
[privacy]
epsilon = %(epsilon)r
delta = %(delta)r
seed = 0
"""

STUDIES = {
    "central": (
        "Is a digit even? One curator holds the table",
        _EVEN
        + _BUDGET
        + """
[setting]
kind = "central"
""",
    ),
    "federated": (
        "Is a digit even? Twenty clients, a server that sees sums only",
        _EVEN
        + _BUDGET
        + """
[setting]
kind = "federated"
trust = "secure-sum"

[setting.split]
kind = "equal"
parties = 20
""",
    ),
    "decentralized": (
        "Is a digit even? Twenty peers on a random graph, no server",
        _EVEN
        + _BUDGET
        + """
[setting]
kind = "decentralized"
topology = { kind = "random-regular", degree = 6, seed = 0 }

[setting.split]
kind = "equal"
parties = 20
""",
    ),
    "digits": (
        "Which digit is it? Ten classes, one curator",
        """
[data]
dataset = "digits"
holdout = 357

[model]
loss = "softmax"
regularizer = { kind = "l2", strength = 0.0001 }
intercept = true
"""
        + _BUDGET
        + """
[setting]
kind = "central"
""",
    ),
    "ward": (
        "How many days in hospital? A sparse regression on a table with a schema",
        f"""
[data]
table = "ward.csv"
schema = "ward.schema.toml"
test = "ward-public.csv"
rows = {RECORDS}

[model]
loss = "squared"
regularizer = {{ kind = "l1", strength = 0.01 }}
intercept = true
"""
        + _BUDGET
        + """
[setting]
kind = "central"
""",
    ),
}


def write_studies(folder: Path, epsilon: float) -> dict[str, Path]:
    """Write every study and the tables of the ward; the paths by name."""
    EpsilonDelta(epsilon=epsilon, delta=DELTA)  # refuses a budget that is none before anything is written
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(7)
    weights = np.zeros(COLUMNS)
    weights[rng.permutation(COLUMNS)[:USED]] = [9.0, -7.0, 6.0, 5.0]
    (folder / "ward.schema.toml").write_text(_schema(), encoding="utf-8")
    _table(folder / "ward.csv", RECORDS, weights, rng)
    _table(folder / "ward-public.csv", PUBLIC, weights, rng)
    found = {}
    for name, (title, text) in STUDIES.items():
        found[name] = folder / f"{name}.toml"
        budget = {"epsilon": float(epsilon), "delta": DELTA}
        body = text.replace(_BUDGET, _BUDGET % budget)
        found[name].write_text(f'title = "{title}"\n{body}', encoding="utf-8")
    return found


def _schema() -> str:
    asked = "".join(
        f'[columns.score{place}]\nkind = "numeric"\nlow = 0\nhigh = 10\n\n' for place in range(1, COLUMNS + 1)
    )
    return f'row_bound = 4.2\n\n{asked}[columns.days]\nkind = "target"\nlow = 0\nhigh = 30\n'


def _table(path: Path, rows: int, weights: np.ndarray, rng: np.random.Generator) -> None:
    scores = rng.integers(0, 11, size=(rows, COLUMNS))
    days = np.clip(12 + (scores / 10 - 0.5) @ weights + 1.5 * rng.normal(size=rows), 0, 30)
    head = ",".join([*(f"score{place}" for place in range(1, COLUMNS + 1)), "days"])
    lines = [",".join([*map(str, row), f"{stay:.1f}"]) for row, stay in zip(scores.tolist(), days, strict=True)]
    path.write_text("\n".join([head, *lines]) + "\n", encoding="utf-8")
