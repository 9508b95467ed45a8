"""Wide tables that no rule was chosen on: is the default ever below a constant, and does more budget help?

    python -m benchmarks.utility.wide_unseen
    python -m benchmarks.utility.wide_unseen --tables "8 topics" --seeds 5

Texts are drawn from topics: every topic has its own frequencies of a part of the words, around a Zipf law of another
exponent than that of the tables of `wide_tables`. Losses are on a test part, over that of the best constant: mean log
loss of labels, mean squared error of numbers. Exit code 1 if one is above 1 by more than two errors and a hundredth, or
if epsilon 5 is worse than epsilon 1 by more than two errors.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from scipy.special import expit, log_softmax

from consenso import PrivateLogisticRegression, PrivateRidge
from consenso.arrays import Array

EPSILONS, DELTA, SEEDS = (1.0, 5.0), 1e-5, 3
TEST, ERRORS, SLACK = 2000, 2.0, 0.01


@dataclass(frozen=True, kw_only=True, eq=False)
class Unseen:
    """Rows of which the last TEST are not fitted; labels are whole numbers, targets lie within 1."""

    rows: Any
    targets: Array
    classes: int = 0  # 0 for numbers

    def measure(self, epsilon: float, seed: int) -> float:
        """Loss of the default on the test part, over that of the best constant."""
        X, y = self.rows[:-TEST], self.targets[:-TEST]
        settings: dict[str, Any] = {"epsilon": epsilon, "delta": DELTA, "row_bound": 1.0, "random_state": seed}
        settings |= {"adjacency": "add-remove", "records": len(y)}
        rows, targets = self.rows[-TEST:], self.targets[-TEST:]
        if not self.classes:
            model = PrivateRidge(target_bound=1.0, **settings).fit(X, y)
            return float(np.mean((model.predict(rows) - targets) ** 2) / np.var(targets))
        model = PrivateLogisticRegression(classes=list(range(self.classes)), **settings).fit(X, y)
        scores = np.asarray(model.decision_function(rows))
        scores = np.stack([np.zeros_like(scores), scores], axis=1) if scores.ndim == 1 else scores
        shares = np.bincount(targets, minlength=self.classes) / TEST
        constant = -float(np.sum(shares * np.log(np.maximum(shares, np.finfo(float).tiny))))
        return -float(np.mean(log_softmax(scores, axis=1)[np.arange(TEST), targets])) / constant


def _draw_texts(columns: int, topics: int, exponent: float, records: int, each: int = 40) -> Unseen:
    """Texts of about so many words, of topics of different sizes; rows of length 1."""
    rng, many = np.random.default_rng(columns + topics), records + TEST
    often = np.arange(1, columns + 1) ** -exponent
    tells = np.exp(0.5 * rng.normal(size=(topics, columns)) * (rng.random((topics, columns)) < 0.15))
    sizes = np.arange(1, topics + 1) ** -0.5
    labels = rng.choice(topics, size=many, p=sizes / sizes.sum())
    lengths, words = 1 + rng.poisson(each, size=many), []
    for topic in range(topics):
        law = often * tells[topic]
        words.append(rng.choice(columns, size=int(lengths[labels == topic].sum()), p=law / law.sum()))
    order = np.argsort(labels, kind="stable")
    places = np.repeat(order, lengths[order])
    X = sparse.csr_array((np.ones(len(places)), (places, np.concatenate(words))), (many, columns))
    X.data = np.log1p(X.data)
    lengths = np.sqrt(np.asarray((X * X).sum(axis=1)).ravel())
    return Unseen(rows=sparse.csr_array(sparse.diags_array(1 / lengths) @ X), targets=labels, classes=topics)


def _draw_dense(columns: int, records: int, *, decades: float, classes: int = 2, told: int = 30) -> Unseen:
    """Independent columns of sizes over so many decades; those that tell are of all sizes."""
    rng, many = np.random.default_rng(columns), records + TEST
    X = rng.standard_t(5, size=(many, columns))
    scores = X[:, :told] @ rng.normal(size=(told, max(classes - 1, 1)))
    scores *= 3 / scores.std()
    X *= 10.0 ** rng.permutation(np.linspace(-decades / 2, decades / 2, columns))
    X /= np.quantile(np.linalg.norm(X, axis=1), 0.95)
    if not classes:
        return Unseen(rows=X, targets=np.clip(scores[:, 0] / 10 + 0.05 * rng.normal(size=many), -1, 1))
    if classes == 2:
        return Unseen(rows=X, targets=(rng.random(many) < expit(scores[:, 0])).astype(int), classes=2)
    odds = np.hstack([np.zeros((many, 1)), scores]) + rng.gumbel(size=(many, classes))
    return Unseen(rows=X, targets=odds.argmax(axis=1), classes=classes)


def _draw_numbers(columns: int, exponent: float, records: int) -> Unseen:
    """A number that a fifth of the words of texts tell."""
    texts = _draw_texts(columns, 2, exponent, records)
    rng = np.random.default_rng(9)
    weights = rng.normal(size=columns) * (rng.random(columns) < 0.2)
    scores = texts.rows @ weights
    targets = (scores - scores.mean()) / (4 * scores.std()) + 0.1 * rng.normal(size=len(scores))
    return Unseen(rows=texts.rows, targets=np.clip(targets, -1, 1))


def _hide_labels(table: Unseen) -> Unseen:
    """Labels that no column tells."""
    return Unseen(rows=table.rows, targets=np.random.default_rng(4).permutation(table.targets), classes=table.classes)


TABLES: dict[str, Callable[[], Unseen]] = {
    "2 topics, 3,000 words, Zipf 0.7": lambda: _draw_texts(3000, 2, 0.7, 12_000),
    "2 topics, 3,000 words, Zipf 1.3": lambda: _draw_texts(3000, 2, 1.3, 12_000),
    "2 topics, 100,000 words, Zipf 1.1": lambda: _draw_texts(100_000, 2, 1.1, 20_000),
    "2 topics, 3,000 words, labels by chance": lambda: _hide_labels(_draw_texts(3000, 2, 0.7, 12_000)),
    "3 topics, 2,500 words": lambda: _draw_texts(2500, 3, 0.9, 12_000),
    "8 topics, 2,500 words": lambda: _draw_texts(2500, 8, 0.9, 16_000),
    "20 topics, 2,500 words": lambda: _draw_texts(2500, 20, 0.9, 20_000),
    "dense, sizes over four decades": lambda: _draw_dense(1600, 8000, decades=4.0),
    "dense, one size": lambda: _draw_dense(1250, 8000, decades=0.0),
    "dense, 5 classes, sizes over a decade": lambda: _draw_dense(1400, 8000, decades=1.0, classes=5),
    "numbers, 3,000 words": lambda: _draw_numbers(3000, 0.8, 12_000),
    "numbers, dense, sizes over two decades": lambda: _draw_dense(1500, 8000, decades=2.0, classes=0),
}


def judge(found: dict[float, Array]) -> str:
    """What is wrong with the losses of two budgets; empty if nothing is."""
    errors = {epsilon: float(np.std(each, ddof=1)) / math.sqrt(len(each)) for epsilon, each in found.items()}
    said = [
        f"worse than a constant at {epsilon:g}"
        for epsilon, each in found.items()
        if float(np.mean(each)) > 1 + SLACK + ERRORS * errors[epsilon]
    ]
    low, high = EPSILONS
    if float(np.mean(found[high]) - np.mean(found[low])) > ERRORS * math.hypot(errors[low], errors[high]):
        said.append("worse with more budget")
    return ", ".join(said)


def main() -> int:
    """Measure and print; 1 if something is wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", action="append", choices=list(TABLES), help="all if none is named")
    parser.add_argument("--seeds", type=int, default=SEEDS)
    asked = parser.parse_args()
    print("| table | " + " | ".join(f"eps {epsilon:g}" for epsilon in EPSILONS) + " | |\n| --- | --- | --- | --- |")
    wrong = 0
    for name in asked.tables or TABLES:
        table = TABLES[name]()
        found = {each: np.array([table.measure(each, seed) for seed in range(asked.seeds)]) for each in EPSILONS}
        said = judge(found)
        wrong += bool(said)
        print(
            f"| {name} | " + " | ".join(f"{np.mean(each):.3f}" for each in found.values()) + f" | {said} |", flush=True
        )
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
