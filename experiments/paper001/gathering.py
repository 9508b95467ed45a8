"""What the cells of paper 001 come to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from consenso.arrays import Array
from experiments import totals
from experiments.outcome import Curve, Figure, Level, Outcome, Panel, Spent, Table, Verdict, decide
from experiments.paper001.training import STEP
from experiments.paper001.world import DELTA
from experiments.results import Results
from experiments.writing import shown

KINDS = ("convex", "strongly convex")
ORDERS = ("fixed order", "random order", "random stopping")
SEEN = "every iterate seen"


def gather(grid: Any, results: Results) -> Outcome:
    """Tables, figures and verdicts."""
    return Outcome(
        results=_costs(results),
        tables=(_expansion_table(results), _users_table(results), _equal_table(results)),
        figures=(
            _divergence(results),
            _expansion(results),
            _objectives(results),
            _users(results),
            _equal(results),
        ),
        verdicts=(
            _non_expansive(results),
            *(_bound(results, kind) for kind in KINDS),
            _rate(results),
            _every_user(results),
        ),
        spent=_spent(results),
        changes=_changes(results),
        cards={
            f"{asked['accounting']}-{asked['schedule'].replace(' ', '-')}-{asked['epsilon']:g}": {
                "card": values["card"],
                "checked": values["checked"],
            }
            for asked, values in results.rows("guaranteed")
        },
    )


# --- the bounds -----------------------------------------------------------------------------------------------------


def _curves(results: Results, kind: str) -> tuple[Array, dict[str, Array], float]:
    """Numbers of later iterations, the three costs, and the cost when every iterate is seen."""
    (asked, values), *_ = results.rows(f"divergence {kind}")
    costs = {name: np.array(values[name]) for name in ("printed", "ours", "exact")}
    return np.array(asked["later"]), costs, float(values["own"])


def _costs(results: Results) -> Table:
    rows = []
    for kind in KINDS:
        later, costs, _ = _curves(results, kind)
        for place, number in enumerate(later):
            printed, ours, exact = (float(costs[name][place]) for name in ("printed", "ours", "exact"))
            rows.append((kind, int(number), printed, ours, exact, printed / exact, ours / exact))
    return Table(
        name="results",
        title="Cost of a user after whom so many iterations follow",
        columns=("losses", "iterations after the user", "printed", "sharpened", "exact, worst quadratic")
        + ("printed over exact", "sharpened over exact"),
        rows=tuple(rows),
        note="zCDP, with step, penalty, noise, change of gradient and singular values 1; the strongly convex losses have "
        "curvatures from 0.1 to 1.9, so that a gradient step contracts by 0.9.",
    )


def _divergence(results: Results) -> Figure:
    panels = []
    for kind in KINDS:
        later, costs, own = _curves(results, kind)
        panels.append(
            Panel(
                title=f"{kind} losses",
                x="iterations after the user (2T)",
                y="cost of the user's data (zCDP)",
                curves=(
                    Curve(label="printed bound", x=later, y=costs["printed"], style="dashed", hue=1),
                    Curve(label="sharpened bound", x=later, y=costs["ours"], hue=0),
                    Curve(label="exact, worst quadratic", x=later, y=costs["exact"], style="dotted", hue=2),
                ),
                levels=(Level(label="every iterate seen", y=own),),
                log_x=True,
                log_y=True,
                limits=None if kind == "convex" else (max(1e-12, float(costs["exact"].min()) / 3), 10.0),
            )
        )
    return Figure(
        name="divergence",
        title="Privacy amplification by iteration: printed, sharpened, exact",
        caption="What the final iterate tells of the data of a user, by the number of iterations that follow the "
        "user's own. Both bounds are sound; where the printed one lies above the line, it is no use yet.",
        panels=tuple(panels),
    )


def _bound(results: Results, kind: str) -> Verdict:
    later, costs, own = _curves(results, kind)
    slack, better = costs["printed"] / costs["exact"], costs["ours"] / costs["exact"]
    useful = later[costs["printed"] < own]
    return Verdict(
        claim=f"The bound on the final iterate for {kind} losses",
        source="Theorem 5.5" if kind == "convex" else "Theorem 6.3, strongly convex",
        state=decide(published=bool((slack >= 1 - 1e-9).all())),
        reported=f"{shown(float(costs['printed'][0]))} after {int(later[0])} iterations, "
        f"{shown(float(costs['printed'][-1]))} after {int(later[-1])}",
        ours=f"{shown(float(costs['ours'][0]))} and {shown(float(costs['ours'][-1]))}; exactly "
        f"{shown(float(costs['exact'][0]))} and {shown(float(costs['exact'][-1]))} for the worst quadratic",
        because=f"Sound and loose: {shown(float(slack.min()))} to {shown(float(slack.max()))} times the exact cost, ours "
        f"{shown(float(better.min()))} to {shown(float(better.max()))} times. It says more than the user's own noise "
        + (f"from {int(useful[0])} later iterations on." if len(useful) else "nowhere here."),
    )


def _rate(results: Results) -> Verdict:
    later, costs, _ = _curves(results, "convex")
    late = later >= later[-1] / 4
    slope = float(np.polyfit(np.log(later[late]), np.log(costs["exact"][late]), 1)[0])
    return Verdict(
        claim="For convex losses the cost falls as 1/T",
        source="abstract and Theorem 5.5",
        state=decide(published=abs(slope + 1) < 0.05),
        reported="exponent -1",
        ours=f"exponent {slope:.3f} of the exact cost over the last three quarters of the iterations",
        because="The rate is that of the exact cost, so no analysis can improve it by more than a constant.",
    )


# --- non-expansiveness ----------------------------------------------------------------------------------------------


def _ratios(results: Results, convexity: float, name: str) -> Array:
    found = [np.array(values[name]) for _, values in results.rows("pairs", convexity=convexity)]
    return np.sort(np.concatenate(found))


def _expansion_table(results: Results) -> Table:
    rows = []
    for convexity in results.distinct("convexity", "pairs"):
        custom, plain = (_ratios(results, convexity, name) for name in ("custom", "plain"))
        bound = float(results.values("bound", "pairs", convexity=convexity)[0])
        rows.append((convexity, len(custom), float(custom[-1]), bound, float(plain[-1]), float(np.mean(plain > 1))))
    return Table(
        name="expansion",
        title="Growth of the distance of two states in one iteration",
        columns=("strong convexity", "pairs", "largest, custom norm", "bound", "largest, plain norm")
        + ("share that grows, plain norm",),
        rows=tuple(rows),
    )


def _expansion(results: Results) -> Figure:
    runs = []
    for hue, (asked, values) in enumerate(results.rows("coupled")):
        label = f"strong convexity {asked['convexity']:g}"
        for name, style in (("custom", "line"), ("plain", "dashed")):
            y = np.array(values[name]) / values[name][0]
            runs.append(Curve(label=f"{label}, {name} norm", x=np.arange(len(y)), y=y, style=style, hue=hue))
    shares = []
    for hue, name in enumerate(("custom", "plain")):
        ratios = _ratios(results, results.distinct("convexity", "pairs")[0], name)
        at = np.linspace(0, len(ratios) - 1, 400).astype(int)
        style = "line" if name == "custom" else "dashed"
        shares.append(
            Curve(label=f"one iteration, {name} norm", x=ratios[at], y=(at + 1) / len(ratios), hue=3 + hue, style=style)
        )
    return Figure(
        name="expansion",
        title="Lemma 5.3: an iteration does not expand, in the paper's norm",
        caption="Left: two runs that differ in their start only, and share users and noise; in the plain norm their "
        "distance first grows. Right: random pairs of states, one iteration, convex losses.",
        panels=(
            Panel(
                title="two coupled runs",
                x="iteration",
                y="distance over that at the start",
                curves=tuple(runs),
                log_y=True,
            ),
            Panel(
                title="random pairs of states",
                x="distance after over distance before",
                y="share of pairs at most this",
                curves=tuple(shares),
                log_x=True,
            ),
        ),
    )


def _non_expansive(results: Results) -> Verdict:
    ratios = {convexity: _ratios(results, convexity, "custom") for convexity in results.distinct("convexity", "pairs")}
    bounds = {c: float(results.values("bound", "pairs", convexity=c)[0]) for c in ratios}
    plain = max(float(_ratios(results, convexity, "plain")[-1]) for convexity in ratios)
    tested = sum(len(found) for found in ratios.values())
    return Verdict(
        claim="One iteration is non-expansive in the custom norm",
        source="Lemma 5.3",
        state=decide(published=all(found[-1] <= bounds[c] * (1 + 1e-9) for c, found in ratios.items())),
        reported="at most 1",
        ours=f"at most {ratios[min(ratios)][-1]:.6f} in {tested} pairs on the generalised lasso",
        because=f"In the plain norm a distance grows up to {shown(plain)} times. With strong convexity the squared norm "
        "contracts by the factor of docs/privacy.md, which no pair exceeds either.",
    )


# --- objectives -----------------------------------------------------------------------------------------------------


def _objectives(results: Results) -> Figure:
    def curve(label: str, hue: int, **asked: float) -> Curve:
        rows = results.rows("path", **asked)
        excess = np.array([values["excess"] for _, values in rows])
        return Curve(
            label=label,
            x=rows[0][1]["at"],
            y=excess.mean(axis=0),
            low=excess.min(axis=0),
            high=excess.max(axis=0),
            hue=hue,
        )

    convexities, stds = results.distinct("convexity", "path"), results.distinct("std", "path")
    middle = stds[len(stds) // 2]
    contraction = [
        curve(f"gradient step contracts by {1 - STEP * convexity:.4g}", hue, convexity=convexity, std=middle)
        for hue, convexity in enumerate(convexities)
    ]
    noise = [curve(f"noise {std:g} a coordinate", 4 + hue, convexity=0.0, std=std) for hue, std in enumerate(stds)]
    common = {"x": "iteration (one user each)", "y": "objective above its minimum", "log_x": True, "log_y": True}
    return Figure(
        name="objective",
        title="Generalised lasso: objective against iterations",
        caption="One pass over the users, from zero. Each strong convexity has its own minimum. Bands: all seeds.",
        panels=(
            Panel(title=f"contraction, noise {middle:g}", curves=tuple(contraction), **common),
            Panel(title="noise, convex losses", curves=tuple(noise), **common),
        ),
    )


# --- every user -----------------------------------------------------------------------------------------------------


def _users(results: Results) -> Figure:
    panels = []
    for measure, label in (("order 2", "Renyi divergence of order 2"), ("epsilon", f"epsilon at delta {DELTA:g}")):
        curves = []
        for kind, style in (("convex", "line"), ("strongly convex", "dashed")):
            (_, values), *_ = results.rows(f"users {kind}")
            at = values["at"]
            for hue, order in enumerate(ORDERS):
                y = _everywhere(values[order][measure], at)
                curves.append(Curve(label=f"{order}, {kind}", x=at, y=y, hue=hue, style=style))
        (_, values), *_ = results.rows("users convex")
        panels.append(
            Panel(
                title=label,
                x="position of the user",
                y=label,
                curves=tuple(curves),
                levels=(Level(label=SEEN, y=values[SEEN][measure][0]),),
                log_y=True,
                limits=(values[SEEN][measure][0] * 1e-5, values[SEEN][measure][0] * 2),
            )
        )
    return Figure(
        name="users",
        title="What the final iterate tells of every user",
        caption="In a fixed order the last users have their own noise only. A random order or stopping time shares the "
        "cost: much in the divergence of order 2, little in epsilon, since delta is far below the chance of being late.",
        panels=tuple(panels),
    )


def _everywhere(values: list[float], at: list[int]) -> list[float]:
    return values if len(values) == len(at) else values * len(at)


def _users_table(results: Results) -> Table:
    rows = []
    for kind in KINDS:
        (asked, values), *_ = results.rows(f"users {kind}")
        for order in (*ORDERS, SEEN):
            found = values[order]
            rows.append((kind, asked["users"], order, max(found["order 2"]), max(found["epsilon"])))
    return Table(
        name="users",
        title="The worst user, by order",
        columns=("losses", "users", "order", "Renyi divergence of order 2", f"epsilon at delta {DELTA:g}"),
        rows=tuple(rows),
    )


def _every_user(results: Results) -> Verdict:
    (asked, values), *_ = results.rows("users convex")
    seen = values[SEEN]
    worst = {order: {m: max(values[order][m]) for m in ("order 2", "epsilon")} for order in ORDERS}
    return Verdict(
        claim="A random order or random stopping protects every user",
        source="Section 5, all users",
        state=decide(published=all(worst[order]["order 2"] < seen["order 2"][0] for order in ORDERS[1:])),
        reported="the amplification holds for all users",
        ours=f"for the worst of {asked['users']} users the divergence of order 2 is {shown(worst['random order']['order 2'])} "
        f"in a random order and {shown(worst['random stopping']['order 2'])} with random stopping, against "
        f"{shown(seen['order 2'][0])} when every iterate is seen",
        because=f"In epsilon at delta {DELTA:g} it is {shown(worst['random order']['epsilon'])} against "
        f"{shown(seen['epsilon'][0])}: a user is among the last few with a probability far above delta.",
    )


# --- equal totals ---------------------------------------------------------------------------------------------------


def _fixed(results: Results) -> dict[tuple[str, float], Mapping[str, Any]]:
    return {
        (asked["accounting"], asked["epsilon"]): values
        for asked, values in results.rows("guaranteed", schedule="fixed order")
    }


def _equal(results: Results) -> Figure:
    found = _fixed(results)
    epsilons = sorted({epsilon for _, epsilon in found})
    start = next(iter(found.values()))["start"]

    def curve(accounting: str, hue: int) -> Curve:
        excess = [np.array(found[accounting, epsilon]["excess"]) for epsilon in epsilons]
        return Curve(
            label=f"noise from the {accounting} bound",
            x=epsilons,
            y=[float(values.mean()) for values in excess],
            low=[float(values.min()) for values in excess],
            high=[float(values.max()) for values in excess],
            hue=hue,
            style="dashed" if accounting == "printed" else "line",
        )

    return Figure(
        name="equal",
        title="The same guarantee with each bound",
        caption="Generalised lasso, one pass in a fixed order. The noise is the least that gives the first half of the "
        "users this epsilon against whoever sees the final model.",
        panels=(
            Panel(
                title="objective at equal epsilon",
                x=f"epsilon of the first half of the users (delta {DELTA:g})",
                y="objective above its minimum, at the end",
                curves=(curve("printed", 1), curve("sharpened", 0)),
                levels=(Level(label="start", y=start),),
                log_x=True,
                log_y=True,
            ),
        ),
        across=1,
    )


def _equal_table(results: Results) -> Table:
    return Table(
        name="equal",
        title="Runs with a guarantee for the first half of the users",
        columns=("order", "accounting", "epsilon asked", "noise", "epsilon, sharpened", "objective above its minimum")
        + ("at the start",),
        rows=tuple(
            (asked["schedule"], asked["accounting"], asked["epsilon"], values["std"], values["first half"])
            + (float(np.mean(values["excess"])), values["start"])
            for asked, values in results.rows("guaranteed")
        ),
    )


def _spent(results: Results) -> tuple[Spent, ...]:
    rows: list[Spent] = []
    for asked, values in results.rows("guaranteed"):
        run = f"{asked['schedule']}, noise from the {asked['accounting']} bound"
        version = "as published" if asked["accounting"] == "printed" else "corrected"
        if asked["schedule"] == "fixed order":
            rows.append(
                Spent(
                    run=f"{run}, first half of the users",
                    version=version,
                    nominal=asked["epsilon"],
                    observer="public",
                    unit="user",
                    adjacency="replace-one",
                    epsilon=values["first half"],
                    delta=DELTA,
                    theorem="GradientVisits",
                )
            )
        rows += [
            Spent(**{**vars(spent), "version": version, "nominal": None})
            for spent in totals.of_card(f"{run}, worst user", values["card"], nominal=asked["epsilon"])
        ]
    return tuple(rows)


def _changes(results: Results) -> tuple[str, ...]:
    found = _fixed(results)
    epsilon = sorted({epsilon for _, epsilon in found})[len({e for _, e in found}) // 2]
    printed, sharpened = found["printed", epsilon], found["sharpened", epsilon]
    later, costs, _ = _curves(results, "convex")
    own = [(kind, max(_curves(results, kind)[1]["printed"] / _curves(results, kind)[1]["ours"])) for kind in KINDS]
    return (
        f"With the sharpened bound the first half of the users have epsilon {shown(epsilon)} with noise "
        f"{shown(sharpened['std'])} instead of {shown(printed['std'])} a coordinate: the objective ends "
        f"{shown(float(np.mean(sharpened['excess'])))} above its minimum instead of "
        f"{shown(float(np.mean(printed['excess'])))}, from {shown(printed['start'])} at the start.",
        f"The runs that were given noise by the printed bound for epsilon {shown(epsilon)} have "
        f"{shown(printed['first half'])} in truth.",
        "The factor (1 + step penalty |A|^2) of the printed constant disappears, and the user's own noise counts: the "
        + " and ".join(f"{kind} bound is up to {shown(float(most))} times smaller" for kind, most in own)
        + f" over {int(later[0])} to {int(later[-1])} iterations.",
        "No run of the paper is invalid: its bounds are sound.",
    )
