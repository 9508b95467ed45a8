"""What the cells of paper 000 come to."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from consenso.arrays import Array
from experiments import totals
from experiments.outcome import Curve, Figure, Level, Outcome, Panel, Spent, Table, Verdict, decide
from experiments.paper000 import reported
from experiments.paper000.corrected import WAYS
from experiments.paper000.published import DELTA
from experiments.results import Results
from experiments.writing import shown

METHODS = {"admm": "private ADMM", "sgd": "proximal DP-SGD"}
LAWS = {"code": "standardised Gaussian rows (public code)", "sphere": "rows on the unit sphere (text)"}
PRINTED = {
    "centralized": "Theorem 2, centralized, final model",
    "federated": "Theorem 3, federated, sums only",
    "local": "Theorem 3, federated, every update seen",
    "decentralized": "Theorem 4, walk",
    "general": "Theorem 7, general constraint",
}
HUES = {"admm": 0, "sgd": 1, **{name: hue for hue, name in enumerate(WAYS)}}


def gather(grid: Any, results: Results) -> Outcome:
    """Tables, figures and verdicts."""
    scores = {
        (law, method): {
            epsilon: results.values("best", f"published {method}", law=law, epsilon=epsilon)
            for epsilon in results.distinct("epsilon", f"published {method}", law=law)
        }
        for law in LAWS
        for method in METHODS
    }
    right = {(asked["law"], asked["way"], asked["epsilon"]): values for asked, values in results.rows("corrected")}
    return Outcome(
        results=_results(results, scores, right),
        tables=(_agreement(scores), _theorems(results), _parameters(right)),
        figures=(
            _figure_1(results, scores, right),
            _settings(results, right),
            _stopping(results),
            _sphere(results, scores, right),
        ),
        verdicts=_verdicts(results, scores, right),
        spent=(*_spent_published(results), *_spent_corrected(right)),
        changes=_changes(results, scores, right),
        cards={
            f"{law}-{way}-{epsilon:.3g}": {"card": values["card"], "checked": values["checked"]}
            for (law, way, epsilon), values in right.items()
        },
    )


# --- tables ---------------------------------------------------------------------------------------------------------


def _results(results: Results, scores: Any, right: Any) -> Table:
    rows: list[tuple[Any, ...]] = []
    for (law, method), found in scores.items():
        for epsilon, values in found.items():
            last = results.values("last", f"published {method}", law=law, epsilon=epsilon)
            rows.append(
                ("as published", "federated", METHODS[method], LAWS[law], epsilon, _server(results, method, epsilon))
                + (len(values), values.mean(), values.std(), last.mean())
            )
    for (law, way, epsilon), found in right.items():
        values = np.array(found["objective"])
        rows.append(
            ("corrected", WAYS[way].setting, WAYS[way].method, LAWS[law], epsilon, epsilon)
            + (len(values), values.mean(), values.std(), values.mean())
        )
    return Table(
        name="results",
        title="Test objectives",
        columns=("version", "setting", "method", "data", "nominal epsilon", "true epsilon", "runs", "objective")
        + ("standard deviation", "objective of the last iterate"),
        rows=tuple(rows),
        note="As published, the objective is the best of all iterates on the test set, and the true epsilon is that of "
        "whoever sees every update. Corrected, it is that of the released model, the last iterate.",
    )


def _agreement(scores: Any) -> Table:
    return Table(
        name="agreement",
        title="The numbers behind Figure 1, and ours",
        columns=("method", "nominal epsilon", "reported mean", "our mean", "our standard deviation", "apart, in it"),
        rows=tuple(
            (METHODS[method], epsilon, told, values.mean(), values.std(), _apart(values, told))
            for method, data in (("admm", reported.ADMM), ("sgd", reported.SGD))
            for epsilon, told, values in _beside(scores["code", method], data)
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
        note="zCDP, or the Renyi divergence of order 2 for the sampled round. A bound below the exact value is false.",
    )


def _parameters(right: Any) -> Table:
    return Table(
        name="corrected-parameters",
        title="Parameters of the corrected runs, from public facts and the budget",
        columns=("data", "setting", "method", "epsilon", "rounds", "step", "noise multiplier", "against"),
        rows=tuple(
            (LAWS[law], WAYS[way].setting, WAYS[way].method, epsilon)
            + (found["rounds"], found["step"], found["multiplier"], WAYS[way].observer.sentence)
            for (law, way, epsilon), found in right.items()
        ),
    )


# --- figures --------------------------------------------------------------------------------------------------------


def _figure_1(results: Results, scores: Any, right: Any) -> Figure:
    levels = _levels(results, "code")
    published = tuple(
        curve
        for method, data in (("admm", reported.ADMM), ("sgd", reported.SGD))
        for curve in (
            _band(f"{METHODS[method]}, as published", scores["code", method], hue=HUES[method]),
            Curve(
                label="public code's own numbers",
                x=data.at,
                y=data.values,
                style="reported",
            ),
        )
    )
    true = tuple(
        _band(
            f"{METHODS[method]}, as published",
            {_server(results, method, epsilon): values for epsilon, values in scores["code", method].items()},
            hue=HUES[method],
        )
        for method in METHODS
    )
    corrected = tuple(
        _band(f"{METHODS[method]}, corrected (federated)", _curve(right, "code", f"federated-{method}"), hue=2 + place)
        for place, method in enumerate(METHODS)
    )
    common = {"y": "objective on the test set", "levels": levels, "log_x": True, "log_y": True}
    return Figure(
        name="figure1",
        title="Figure 1: federated lasso, private ADMM and proximal DP-SGD",
        caption="Left: what the public code does and plots, against the epsilon that it states. Right: the same runs "
        "where they belong, at the epsilon of whoever sees every update, beside runs that keep to the stated total. "
        "Bands: all seeds.",
        panels=(
            Panel(title="as published", x="epsilon as stated (delta 1e-6)", curves=published, **common),
            Panel(
                title="at the true total epsilon",
                x="true total epsilon (delta 1e-6)",
                curves=true + corrected,
                **common,
            ),
        ),
    )


def _settings(results: Results, right: Any) -> Figure:
    def panel(title: str, names: tuple[str, ...]) -> Panel:
        return Panel(
            title=title,
            x="total epsilon (delta 1e-6)",
            y="objective on the test set",
            curves=tuple(
                _band(f"{WAYS[name].setting}: {WAYS[name].method}", _curve(right, "code", name), hue=HUES[name])
                for name in names
            ),
            levels=_levels(results, "code"),
            log_x=True,
            log_y=True,
        )

    return Figure(
        name="settings",
        title="Corrected, in the three settings that the paper describes",
        caption="Every curve keeps its total epsilon for the observer it is meant for: whoever sees the final model "
        "(centralized; federated under a secure sum), another user (walk), or whoever sees every message.",
        panels=(
            panel("a trusted sum", ("central-admm", "central-sgd", "federated-admm", "federated-sgd")),
            panel("nobody is trusted", ("federated-local-admm", "walk", "walk-local-admm")),
        ),
    )


def _stopping(results: Results) -> Figure:
    panels = []
    for method, label in METHODS.items():
        group = f"published {method}"
        epsilons = results.distinct("epsilon", group, law="code")
        curves = tuple(
            _band(name, {e: results.values(key, group, law="code", epsilon=e) for e in epsilons}, hue=hue)
            for hue, (key, name) in enumerate(
                (
                    ("best", "best iterate on the test set"),
                    ("last", "last iterate"),
                    ("averaged", "average of the second half"),
                )
            )
        )
        panels.append(
            Panel(
                title=label,
                x="epsilon as stated (delta 1e-6)",
                y="objective on the test set",
                curves=curves,
                levels=_levels(results, "code"),
                log_x=True,
                log_y=True,
            )
        )
    return Figure(
        name="stopping",
        title="What choosing the best iterate on the test set hides",
        caption="As published, three ways to read one run. Only the last and the averaged iterate can be released.",
        panels=tuple(panels),
    )


def _sphere(results: Results, scores: Any, right: Any) -> Figure:
    levels = _levels(results, "sphere")
    published = tuple(
        _band(f"{METHODS[method]}, as published", scores["sphere", method], hue=HUES[method]) for method in METHODS
    )
    ways = [way for way in WAYS if any(law == "sphere" and name == way for law, name, _ in right)]
    corrected = tuple(
        _band(f"{WAYS[way].method}, corrected ({WAYS[way].setting})", _curve(right, "sphere", way), hue=2 + place)
        for place, way in enumerate(ways)
    )
    return Figure(
        name="sphere",
        title="The text's data: rows on the unit sphere",
        caption="The public code's algorithms and parameters on the data that the text describes, and corrected runs.",
        panels=(
            Panel(
                title="as published and corrected",
                x="epsilon as stated; for corrected runs also the true total (delta 1e-6)",
                y="objective on the test set",
                curves=published + corrected,
                levels=levels,
                log_x=True,
                log_y=True,
            ),
        ),
        across=1,
    )


# --- verdicts -------------------------------------------------------------------------------------------------------


def _verdicts(results: Results, scores: Any, right: Any) -> tuple[Verdict, ...]:
    return (
        _same_numbers(scores),
        _better_than_sgd(results, scores, right),
        _kept_its_epsilon(results),
        *(_theorem(results, kind) for kind in ("centralized", "federated", "local", "decentralized")),
    )


def _same_numbers(scores: Any) -> Verdict:
    found = [
        (epsilon, _apart(values, told))
        for method, data in (("admm", reported.ADMM), ("sgd", reported.SGD))
        for epsilon, told, values in _beside(scores["code", method], data)
    ]
    worst = max(found, key=lambda pair: pair[1])
    ends = {method: list(scores["code", method].values()) for method in METHODS}
    return Verdict(
        claim="The test objectives of private ADMM and DP-SGD behind Figure 1",
        source="Figure 1, public code",
        state=decide(published=worst[1] <= 2),
        reported="; ".join(
            f"{METHODS[m]} {shown(d.values[0])} to {shown(d.values[-1])}"
            for m, d in (("admm", reported.ADMM), ("sgd", reported.SGD))
        ),
        ours="; ".join(
            f"{METHODS[m]} {shown(float(e[0].mean()))} to {shown(float(e[-1].mean()))}" for m, e in ends.items()
        ),
        because=f"All {len(found)} means are within {shown(worst[1])} standard deviations of a run of the reported ones.",
    )


def _better_than_sgd(results: Results, scores: Any, right: Any) -> Verdict:
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
        source="Section 6 and Figure 1",
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
        claim="The runs of Figure 1 are (epsilon, 1e-6)-differentially private at the epsilon of the axis",
        source="Figure 1",
        state=decide(published=kept == len(all_of_them)),
        reported=f"epsilon {shown(largest[0])} at most",
        ours=f"the ADMM runs at {shown(largest[0])} have epsilon {shown(largest[2])} for whoever sees every update and at "
        f"least {shown(largest[1])} for whoever sees the sums",
        because=f"{len(broken)} of {len(all_of_them)} runs exceed their epsilon even for whoever sees sums only, {kept} "
        "keep it against everybody; and this grants that kappa, the start and the scaling are public, which are "
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


# --- budgets and sentences ------------------------------------------------------------------------------------------


def _spent_published(results: Results) -> list[Spent]:
    rows = []
    common: dict[str, Any] = {"version": "as published", "unit": "user", "adjacency": "replace-one", "delta": DELTA}
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
                        theorem="SamplingRevealed",
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


def _spent_corrected(right: Any) -> list[Spent]:
    return [
        spent
        for (law, way, epsilon), found in right.items()
        if law == "code"
        for spent in totals.of_card(f"{WAYS[way].setting}: {WAYS[way].method}", found["card"], nominal=epsilon)
    ]


def _changes(results: Results, scores: Any, right: Any) -> tuple[str, ...]:
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
            f"{shown(published['sgd'])} (DP-SGD), with true epsilons of {shown(_server(results, 'admm', epsilon))} and "
            f"{shown(_server(results, 'sgd', epsilon))}; at a true total of {shown(epsilon)} they are {shown(now['admm'])} "
            f"and {shown(now['sgd'])}. The zero model has {shown(zero)}."
        )
    worst = max(
        float(results.values("last", f"published {m}", law="code", epsilon=e).mean() / v.mean())
        for m in METHODS
        for e, v in scores["code", m].items()
    )
    sentences.append(
        f"The published number is the best of all iterates on the test set; the last iterate is up to {shown(worst)} times "
        "worse. Corrected runs report the last one."
    )
    for way in ("walk", "federated-local-admm"):
        found = _curve(right, "code", way)
        if found:
            top = max(found)
            sentences.append(
                f"{WAYS[way].setting.capitalize()} ({WAYS[way].method}), protected against {WAYS[way].observer.sentence}: "
                f"{shown(float(found[top].mean()))} at epsilon {shown(top)}."
            )
    return tuple(sentences)


# --- pieces ---------------------------------------------------------------------------------------------------------


def _server(results: Results, method: str, epsilon: float) -> float:
    return float(results.values("at most", "spending", method=method, epsilon=epsilon)[0])


def _beside(found: dict[float, Array], data: Any) -> list[tuple[float, float, Array]]:
    """Our runs beside the reported means, where both are."""
    return [
        (epsilon, told, values)
        for epsilon, values in found.items()
        for at, told in zip(data.at, data.values, strict=True)
        if math.isclose(at, epsilon, rel_tol=1e-9)
    ]


def _apart(values: Array, told: float) -> float:
    return float(abs(values.mean() - told) / values.std(ddof=1))


def _gap(ones: Array, others: Array) -> tuple[float, float]:
    """Mean difference of paired runs, and its standard error."""
    gaps = ones - others
    return float(gaps.mean()), float(gaps.std(ddof=1) / math.sqrt(len(gaps)))


def _curve(right: Any, law: str, way: str) -> dict[float, Array]:
    return {
        epsilon: np.array(found["objective"])
        for (its, name, epsilon), found in right.items()
        if (its, name) == (law, way)
    }


def _band(label: str, found: dict[float, Array], *, hue: int) -> Curve:
    return Curve(
        label=label,
        x=tuple(found),
        y=tuple(float(values.mean()) for values in found.values()),
        low=tuple(float(values.min()) for values in found.values()),
        high=tuple(float(values.max()) for values in found.values()),
        hue=hue,
    )


def _levels(results: Results, law: str) -> tuple[Level, ...]:
    (_, found), *_ = results.rows("levels", law=law)
    return (Level(label="zero model", y=found["zero"]), Level(label="LassoCV, not private", y=found["exact"]))
