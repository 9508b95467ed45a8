"""The verdicts of paper 001."""

from __future__ import annotations

import numpy as np

from experiments.deciding import decide
from experiments.outcome import Verdict
from experiments.paper001.reading import KINDS, ORDERS, SEEN, curves, ratios_of
from experiments.paper001.world import DELTA
from experiments.results import Results
from experiments.writing import shown


def verdicts(results: Results) -> tuple[Verdict, ...]:
    """One for each headline claim."""
    bounds = (_bound(results, kind) for kind in KINDS)
    return (_non_expansive(results), *bounds, _rate(results), _every_user(results))


def _non_expansive(results: Results) -> Verdict:
    ratios = {
        convexity: ratios_of(results, convexity, "custom") for convexity in results.distinct("convexity", "pairs")
    }
    bounds = {c: float(results.values("bound", "pairs", convexity=c)[0]) for c in ratios}
    plain = max(float(ratios_of(results, convexity, "plain")[-1]) for convexity in ratios)
    tested = sum(len(found) for found in ratios.values())
    return Verdict(
        claim="One iteration is non-expansive in the custom norm",
        source="Lemma 5.3",
        state=decide(published=all(found[-1] <= bounds[c] * (1 + 1e-9) for c, found in ratios.items())),
        reported="at most 1",
        ours=f"at most {ratios[min(ratios)][-1]:.6f} in {tested} pairs on the generalised lasso",
        because=f"In the plain norm a distance grows up to {shown(plain)} times. With strong convexity the norm "
        "contracts by the factor of docs/privacy.md, which no pair exceeds either.",
    )


def _bound(results: Results, kind: str) -> Verdict:
    later, costs, own = curves(results, kind)
    slack, better = costs["printed"] / costs["exact"], costs["ours"] / costs["exact"]
    useful = later[costs["printed"] < own]
    return Verdict(
        claim=f"The bound on the final iterate for {kind} losses",
        source="Theorem 5.1" if kind == "convex" else "bound for strongly convex objectives",
        state=decide(published=bool((slack >= 1 - 1e-9).all())),
        reported=f"{shown(float(costs['printed'][0]))} after {int(later[0])} iterations, "
        f"{shown(float(costs['printed'][-1]))} after {int(later[-1])}",
        ours=f"{shown(float(costs['ours'][0]))} and {shown(float(costs['ours'][-1]))}; exactly "
        f"{shown(float(costs['exact'][0]))} and {shown(float(costs['exact'][-1]))} for the worst quadratic",
        because=f"Sound and loose: {shown(float(slack.min()))} to {shown(float(slack.max()))} times the exact cost, "
        f"ours {shown(float(better.min()))} to {shown(float(better.max()))} times. It says more than the user's own "
        + (f"noise from {int(useful[0])} later iterations on." if len(useful) else "noise nowhere here."),
    )


def _rate(results: Results) -> Verdict:
    later, costs, _ = curves(results, "convex")
    late = later >= later[-1] / 4
    slope = float(np.polyfit(np.log(later[late]), np.log(costs["exact"][late]), 1)[0])
    return Verdict(
        claim="For convex losses the cost falls as 1/T",
        source="abstract and Theorem 5.1",
        state=decide(published=abs(slope + 1) < 0.05),
        reported="exponent -1",
        ours=f"exponent {slope:.3f} of the exact cost over the last three quarters of the iterations",
        because="The rate is that of the exact cost, so no analysis can improve it by more than a constant.",
    )


def _every_user(results: Results) -> Verdict:
    (asked, values), *_ = results.rows("users convex")
    seen = values[SEEN]
    worst = {order: {m: max(values[order][m]) for m in ("order 2", "epsilon")} for order in ORDERS}
    return Verdict(
        claim="A random order or random stopping protects every user",
        source="privacy of all users",
        state=decide(published=all(worst[order]["order 2"] < seen["order 2"][0] for order in ORDERS[1:])),
        reported="the amplification holds for all users",
        ours=f"for the worst of {asked['users']} users the divergence of order 2 is "
        f"{shown(worst['random order']['order 2'])} in a random order and "
        f"{shown(worst['random stopping']['order 2'])} with random stopping, against {shown(seen['order 2'][0])} when "
        "every iterate is seen",
        because=f"In epsilon at delta {DELTA:g} it is {shown(worst['random order']['epsilon'])} against "
        f"{shown(seen['epsilon'][0])}: a user is among the last few with a probability far above delta.",
    )
