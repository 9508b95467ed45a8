"""The verdicts of paper 000."""

from __future__ import annotations

import math

import numpy as np

from consenso.arrays import Array
from experiments.outcome import Verdict, decide
from experiments.paper000.published import DELTA
from experiments.paper000.reading import METHODS, PRINTED, TOLD, Right, Scores, apart, beside
from experiments.results import Results
from experiments.writing import shown


def verdicts(results: Results, scores: Scores, right: Right) -> tuple[Verdict, ...]:
    """One for each headline claim."""
    return (
        _same_numbers(scores),
        _better_than_sgd(results, scores, right),
        _kept_its_epsilon(results),
        *(_theorem(results, kind) for kind in ("centralized", "federated", "local", "decentralized")),
    )


def _same_numbers(scores: Scores) -> Verdict:
    found = [
        (epsilon, apart(values, told))
        for method, data in TOLD
        for epsilon, told, values in beside(scores["code", method], data)
    ]
    worst = max(found, key=lambda pair: pair[1])
    ends = {method: list(scores["code", method].values()) for method in METHODS}
    return Verdict(
        claim="The test objectives of private ADMM and DP-SGD behind Figure 1",
        source="Figure 1, public code",
        state=decide(published=worst[1] <= 2),
        reported="; ".join(f"{METHODS[m]} {shown(d.values[0])} to {shown(d.values[-1])}" for m, d in TOLD),
        ours="; ".join(
            f"{METHODS[m]} {shown(float(e[0].mean()))} to {shown(float(e[-1].mean()))}" for m, e in ends.items()
        ),
        because=f"The {len(found)} means are at most {shown(worst[1])} standard deviations of a run from the reported "
        "ones.",
    )


def _better_than_sgd(results: Results, scores: Scores, right: Right) -> Verdict:
    admm, sgd = scores["code", "admm"], scores["code", "sgd"]
    won = [epsilon for epsilon in admm if admm[epsilon].mean() < sgd[epsilon].mean()]
    zero = results.values("zero", "levels", law="code")[0]
    useful = [epsilon for epsilon in won if admm[epsilon].mean() < zero]
    pairs = {
        epsilon: _gap(np.array(right["code", "federated-sgd", epsilon]["objective"]), np.array(found["objective"]))
        for (law, way, epsilon), found in right.items()
        if law == "code" and way == "federated-admm"
    }
    better = [epsilon for epsilon, (gap, error) in pairs.items() if gap > 2 * error and gap > 0.01 * zero]
    largest = max(pairs.values(), key=lambda pair: abs(pair[0]))
    return Verdict(
        claim="Private ADMM beats DP-SGD where epsilon is small",
        source="Figure 1",
        state=decide(published=len(won) > 0 and min(admm) in won, corrected=len(better) > 0),
        reported="ADMM is below DP-SGD in the high-privacy regime",
        ours=f"as published it is below at {len(won)} of {len(admm)} epsilons, at {len(useful)} of them also below the "
        f"zero model; corrected at {len(better)} of {len(pairs)}",
        because="At equal totals the two are the same method for short steps: the largest difference of their means is "
        f"{shown(abs(largest[0]))}, and the zero model has {shown(float(zero))}.",
    )


def _kept_its_epsilon(results: Results) -> Verdict:
    kept, all_of_them = 0, []
    for method in METHODS:
        for asked, values in results.rows("spending", method=method):
            kept += values["at most"] <= asked["epsilon"]
            all_of_them.append((asked["epsilon"], values["sums, at least"], values["at most"], method))
    largest = max((row for row in all_of_them if row[3] == "admm"), key=lambda row: row[0])
    broken = [row for row in all_of_them if row[1] > row[0]]
    return Verdict(
        claim=f"The runs of Figure 1 are (epsilon, {DELTA:g})-differentially private at the epsilon of the axis",
        source="Figure 1",
        state=decide(published=kept == len(all_of_them)),
        reported=f"epsilon {shown(largest[0])} at most",
        ours=f"the ADMM runs at {shown(largest[0])} have epsilon {shown(largest[2])} for whoever sees every update "
        f"and at least {shown(largest[1])} for whoever sees the sums",
        because=f"{len(broken)} of {len(all_of_them)} epsilons are exceeded even for whoever sees sums only, {kept} "
        "are kept against everybody; and this grants that kappa, the start and the scaling are public, which are "
        "computed from the private data.",
    )


def _theorem(results: Results, kind: str) -> Verdict:
    (asked, values), *_ = results.rows(f"theorem {kind}")
    ratio = values["exact"] / values["printed"]
    setting = ", ".join(f"{name} {shown(value)}" for name, value in asked.items())
    holds = ratio <= 1 + 1e-9
    return Verdict(
        claim=f"The privacy bound of {PRINTED[kind]}",
        source=PRINTED[kind].partition(",")[0],
        state=decide(published=holds),
        reported=f"{shown(values['printed'])} ({setting})",
        ours=f"exactly {shown(values['exact'])} for linear losses, {shown(ratio)} times the bound",
        because="It is sound and tight." if holds else f"Sound for this run: {shown(values['ours'])}.",
    )


def _gap(ones: Array, others: Array) -> tuple[float, float]:
    """Mean difference of paired runs, and its standard error."""
    gaps = ones - others
    return float(gaps.mean()), float(gaps.std(ddof=1) / math.sqrt(len(gaps)))
