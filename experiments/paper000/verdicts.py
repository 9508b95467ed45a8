"""The verdicts of paper 000."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from experiments.deciding import below, decide, everywhere, near
from experiments.outcome import Verdict
from experiments.paper000.corrected import WAYS
from experiments.paper000.published import DELTA
from experiments.paper000.reading import METHODS, PRINTED, TOLD, Right, Scores, beside
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
    """Same seeds, same draws: the transcription must give the code's means, whatever their spread."""
    found = [
        (float(values.mean()), told)
        for method, data in TOLD
        for _, told, values in beside(scores["code", method], data)
    ]
    worst = max(abs(mean / told - 1) for mean, told in found)
    ends = {method: list(scores["code", method].values()) for method in METHODS}
    return Verdict(
        claim="The test objectives that the public code gives for Figure 1",
        source="our run of the public code; the paper prints no numbers",
        state=decide(published=everywhere(near(mean, told) for mean, told in found)),
        reported="; ".join(f"{METHODS[m]} {shown(d.values[0])} to {shown(d.values[-1])}" for m, d in TOLD),
        ours="; ".join(
            f"{METHODS[m]} {shown(float(e[0].mean()))} to {shown(float(e[-1].mean()))}" for m, e in ends.items()
        ),
        because=f"The {len(found)} means differ by at most {worst:.1%} from those of the code.",
    )


def _better_than_sgd(results: Results, scores: Scores, right: Right) -> Verdict:
    """Where epsilon is small: in the lower half of those that were run."""
    admm, sgd = scores["code", "admm"], scores["code", "sgd"]
    zero = float(results.values("zero", "levels", law="code")[0])
    won = {epsilon: below(admm[epsilon], sgd[epsilon]) for epsilon in _lower_half(admm)}
    useful = [epsilon for epsilon in won if admm[epsilon].mean() < zero]
    pairs = {
        epsilon: (np.array(found["objective"]), np.array(right["code", "federated-sgd", epsilon]["objective"]))
        for (law, way, epsilon), found in right.items()
        if law == "code" and way == "federated-admm"
    }
    better = {epsilon: below(*pairs[epsilon], paired=True) for epsilon in _lower_half(pairs)}
    largest = max(abs(float(ones.mean() - others.mean())) for ones, others in pairs.values())
    return Verdict(
        claim="Private ADMM beats DP-SGD where epsilon is small",
        source="Figure 1",
        state=decide(published=everywhere(won.values()), corrected=everywhere(better.values())),
        reported="ADMM is below DP-SGD in the high-privacy regime",
        ours=f"as published it is below at {list(won.values()).count('yes')} of the {len(won)} smallest epsilons, at "
        f"{len(useful)} of them also below the zero model; corrected at {list(better.values()).count('yes')} of "
        f"{len(better)}",
        because=f"The corrected runs are of another variant ({WAYS['federated-admm'].method}), which for short steps "
        f"is "
        f"gradient descent: the largest difference of their means is {shown(largest)}, and the zero model has "
        f"{shown(zero)}.",
    )


def _lower_half(epsilons: Iterable[float]) -> list[float]:
    found = sorted(epsilons)
    return found[: max(1, len(found) // 2)]


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
        f"{'is' if kept == 1 else 'are'} kept against everybody; and this grants that kappa, the start and the scaling "
        "are public, which are computed from the private data.",
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
        because=("It is sound." if holds else f"Sound for this run: {shown(values['ours'])}.") + charity(kind, values),
    )


def charity(kind: str, values: Mapping[str, float]) -> str:
    """What the most favourable readings of a theorem come to."""
    told = ""
    if kind == "decentralized":
        most = values["exact"] > values["printed, all visits"]
        told = (
            f" The bound counts half of the visits as the user's; with all of them it is "
            f"{shown(values['printed, all visits'])}, which is {'exceeded, too' if most else 'kept'}."
        )
    scaled = values.get("exact, step over n", values.get("local, step over n"))
    if scaled is None:
        return told
    bound = values.get("printed, all visits", values["printed"])
    verb = "holds" if scaled <= bound * (1 + 1e-9) else "fails, too"
    return f"{told} With the prox of (step / n) f_i the bound {verb}."
