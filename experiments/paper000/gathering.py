"""What the cells of paper 000 come to."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from experiments import totals
from experiments.outcome import Outcome, Spent, Table
from experiments.paper000.corrected import WAYS
from experiments.paper000.figures import figures
from experiments.paper000.published import DELTA
from experiments.paper000.reading import (
    LAWS,
    METHODS,
    PRINTED,
    TOLD,
    Right,
    Scores,
    beside,
    corrected,
    curve,
    moments,
    published,
    server,
)
from experiments.paper000.verdicts import verdicts
from experiments.results import Results
from experiments.writing import shown


def gather(grid: Any, results: Results) -> Outcome:
    """Tables, figures and verdicts."""
    scores, right = published(results), corrected(results)
    return Outcome(
        results=_results(results, scores, right),
        tables=(_agreement(scores), _theorems(results), _parameters(right)),
        figures=figures(results, scores, right),
        verdicts=verdicts(results, scores, right),
        spent=(*_spent_published(results), *_spent_corrected(right)),
        changes=_changes(results, scores, right),
        cards={
            f"{law}-{way}-{epsilon:.3g}": {"card": values["card"], "checked": values["checked"]}
            for (law, way, epsilon), values in right.items()
        },
    )


def _results(results: Results, scores: Scores, right: Right) -> Table:
    rows: list[tuple[Any, ...]] = []
    for (law, method), found in scores.items():
        for epsilon, values in found.items():
            last = results.values("last", f"published {method}", law=law, epsilon=epsilon)
            setting = ("as published", "federated", METHODS[method], LAWS[law])
            spent = server(results, method, epsilon)
            rows.append((*setting, epsilon, spent, len(values), *moments(values), float(last.mean())))
    for (law, way, epsilon), found in right.items():
        values = np.array(found["objective"])
        setting = ("corrected", WAYS[way].setting, WAYS[way].method, LAWS[law])
        rows.append((*setting, epsilon, epsilon, len(values), *moments(values), float(values.mean())))
    return Table(
        name="results",
        title="Test objectives",
        columns=(
            *("version", "setting", "method", "data", "nominal epsilon", "true epsilon", "runs", "objective"),
            *("standard deviation", "objective of the last iterate"),
        ),
        rows=tuple(rows),
        note="As published, the objective is the best of all iterates on the test set, and the true epsilon is that of "
        "whoever sees every update. Corrected, it is that of the released model, the last iterate; the methods are not "
        "all the paper's own (see what was chosen).",
    )


def _agreement(scores: Scores) -> Table:
    return Table(
        name="agreement",
        title="The public code's numbers, and those of its transcription",
        columns=("method", "nominal epsilon", "public code", "transcription", "its standard deviation", "relative gap"),
        rows=tuple(
            (METHODS[method], epsilon, told, *moments(values), float(values.mean()) / told - 1)
            for method, data in TOLD
            for epsilon, told, values in beside(scores["code", method], data)
        ),
    )


def _theorems(results: Results) -> Table:
    rows = []
    for kind, label in PRINTED.items():
        for asked, values in results.rows(f"theorem {kind}"):
            setting = ", ".join(f"{name}={shown(value)}" for name, value in asked.items())
            ratio = values["exact"] / values["printed"]
            rows.append((label, setting, values["printed"], values["exact"], ratio, values["ours"]))
    return Table(
        name="theorems",
        title="Printed privacy bounds against exact values for linear losses",
        columns=("theorem", "setting", "printed", "exact", "exact over printed", "ours"),
        rows=tuple(rows),
        note="zCDP, or Renyi divergences of order 2 for the sampled round and the walk. A bound below the exact "
        "value is "
        "false; the objections say under which reading it would hold.",
    )


def _parameters(right: Right) -> Table:
    return Table(
        name="corrected-parameters",
        title="Parameters of the corrected runs, from public facts and the budget",
        columns=("data", "setting", "method", "epsilon", "rounds", "step", "noise multiplier", "against"),
        rows=tuple(
            (
                *(LAWS[law], WAYS[way].setting, WAYS[way].method, epsilon),
                *(found["card"]["parameters"]["rounds"], found["step"], found["multiplier"]),
                WAYS[way].observer.sentence,
            )
            for (law, way, epsilon), found in right.items()
        ),
    )


def _spent_published(results: Results) -> list[Spent]:
    rows = []
    common: dict[str, Any] = {"version": "as published", "unit": "party", "adjacency": "replace-one", "delta": DELTA}
    for method, label in METHODS.items():
        for asked, values in results.rows("spending", method=method):
            for observer, least in (("eavesdropper, server", "seen"), ("whoever sees the sums only", "sums")):
                rows.append(
                    Spent(
                        run=label,
                        nominal=asked["epsilon"],
                        observer=observer,
                        epsilon=values["at most"],
                        at_least=values[f"{least}, at least"],
                        theorem="sampling revealed",
                        **common,
                    )
                )
    rows.append(
        Spent(
            run="both, when kappa, the start and the scaling are not granted to be public",
            nominal=None,
            observer="whoever sees the model",
            epsilon=math.inf,
            theorem="none: they are computed from the private data without noise",
            **common,
        )
    )
    return rows


def _spent_corrected(right: Right) -> list[Spent]:
    return [
        spent
        for (law, way, epsilon), found in right.items()
        if law == "code"
        for spent in totals.of_card(f"{WAYS[way].setting}: {WAYS[way].method}", found["card"], nominal=epsilon)
    ]


def _changes(results: Results, scores: Scores, right: Right) -> tuple[str, ...]:
    zero = float(results.values("zero", "levels", law="code")[0])
    both = [
        epsilon
        for (law, way, epsilon) in right
        if law == "code" and way == "federated-admm" and epsilon in scores["code", "admm"]
    ]
    low, high = min(both), max(both)
    sentences = []
    for epsilon in (low, high):
        published = {method: float(scores["code", method][epsilon].mean()) for method in METHODS}
        now = {method: float(np.mean(right["code", f"federated-{method}", epsilon]["objective"])) for method in METHODS}
        sentences.append(
            f"At epsilon {shown(epsilon)} as stated the published objectives are {shown(published['admm'])} (ADMM) and "
            f"{shown(published['sgd'])} (DP-SGD), with true epsilons of {shown(server(results, 'admm', epsilon))} and "
            f"{shown(server(results, 'sgd', epsilon))} for whoever sees every update; at a true total of "
            f"{shown(epsilon)} they are {shown(now['admm'])} and {shown(now['sgd'])}. The zero model has {shown(zero)}."
        )
    worst = max(
        float(results.values("last", f"published {m}", law="code", epsilon=e).mean() / v.mean())
        for m in METHODS
        for e, v in scores["code", m].items()
    )
    sentences.append(
        f"The published number is the best of all iterates on the test set; the last iterate is up to {shown(worst)} "
        "times worse. Corrected runs report the last one."
    )
    for way in ("walk", "federated-local-admm"):
        found = curve(right, "code", way)
        if found:
            top = max(found)
            sentences.append(
                f"{WAYS[way].setting.capitalize()} ({WAYS[way].method}), protected against "
                f"{WAYS[way].observer.sentence}: {shown(float(found[top].mean()))} at epsilon {shown(top)}."
            )
    return tuple(sentences)
