"""The table and the figure: the mean over seeds, the winner of every column marked, whoever it is."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from benchmarks.utility.results import EXACT, Fit

# Points of a panel up to which all of them are shown.
FEW = 8
COLOURS = ("#0072B2", "#56B4E9", "#009E73", "#5D3A9B", "#40B0A6", "#E69F00", "#CC79A7", "#D55E00", "#A34E00", "#000000")


def _groups(fits: list[Fit]) -> dict[str, dict[str, dict[float, list[Fit]]]]:
    found: dict[str, dict[str, dict[float, list[Fit]]]] = {}
    for fit in fits:
        found.setdefault(fit.task, {}).setdefault(fit.method, {}).setdefault(fit.epsilon, []).append(fit)
    return found


def table(fits: list[Fit]) -> str:
    """Markdown: per task and method the metric, the excess risk and the seconds at each epsilon."""
    out = []
    for task, methods in _groups(fits).items():
        exact = methods[EXACT][np.inf][0]
        epsilons = sorted({epsilon for by in methods.values() for epsilon in by if np.isfinite(epsilon)})
        sign = -1 if exact.metric == "RMSE" else 1
        means = {
            (method, epsilon): np.mean([fit.score for fit in by[epsilon]])
            for method, by in methods.items()
            for epsilon in by
        }
        out += [
            f"## {task}",
            "",
            f"Test {exact.metric}; in brackets the excess risk on the training part. Without privacy: {exact.score:.4g}"
            f" in {exact.seconds:.2f} s. The best of each column is bold.",
            "",
            "| method | " + " | ".join(f"eps {epsilon:g}" for epsilon in epsilons) + " | seconds a fit |",
            "| --- |" + " --- |" * (len(epsilons) + 1),
        ]
        for method, by in methods.items():
            if method == EXACT:
                continue
            cells = []
            for epsilon in epsilons:
                if epsilon not in by:
                    cells.append("-")
                    continue
                rivals = [sign * value for (_, at), value in means.items() if at == epsilon]
                mean, spread = means[method, epsilon], np.std([fit.score for fit in by[epsilon]])
                text = f"{mean:.4g} ± {spread:.1g}"
                text = f"**{text}**" if sign * mean == max(rivals) else text
                cells.append(f"{text} ({np.mean([fit.excess for fit in by[epsilon]]):.2g})")
            took = np.median([fit.seconds for each in by.values() for fit in each])
            out.append(f"| {method} | " + " | ".join(cells) + f" | {took:.2f} |")
        out.append("")
    return "\n".join(out)


def figure(fits: list[Fit], path: Path) -> None:
    """Metric against epsilon, one panel per task, the band from the worst to the best seed."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    groups = _groups(fits)
    names = sorted(
        {fit.method for fit in fits if fit.method != EXACT}, key=lambda name: (not name.startswith("consenso"), name)
    )
    colour = {name: COLOURS[index % len(COLOURS)] for index, name in enumerate(names)}
    columns = min(len(groups), 3 if len(groups) in (5, 6) else 4)
    rows = -(-len(groups) // columns)
    drawing, axes = plt.subplots(rows, columns, figsize=(4.3 * columns, 3.6 * rows + 1.2), squeeze=False)
    for axis, (task, methods) in zip(axes.flat, groups.items(), strict=False):
        exact = methods[EXACT][np.inf][0]
        axis.axhline(exact.score, color="#666666", linestyle=":", label=EXACT)
        shown = [exact.score]
        for method, by in methods.items():
            if method == EXACT:
                continue
            epsilons = sorted(by)
            scores = [[fit.score for fit in by[epsilon]] for epsilon in epsilons]
            means = [float(np.mean(each)) for each in scores]
            own = method.startswith("consenso")
            axis.plot(
                epsilons,
                means,
                marker="o" if own else "s",
                linestyle="-" if own else "--",
                linewidth=2.4 if method == "consenso, auto" else 1.2,
                markersize=4,
                color=colour[method],
                label=method,
            )
            axis.fill_between(
                epsilons, [min(e) for e in scores], [max(e) for e in scores], color=colour[method], alpha=0.12
            )
            shown += means
        axis.set(xscale="log", xlabel="epsilon (add-remove, delta 1e-5)", ylabel=f"test {exact.metric}", title=task)
        ticks = sorted({epsilon for by in methods.values() for epsilon in by if np.isfinite(epsilon)})
        axis.set_xticks(ticks, [f"{epsilon:g}" for epsilon in ticks], minor=False)
        axis.minorticks_off()
        if len(shown) > FEW:
            # A method that fails badly would flatten everybody else: the worst fifth may leave the panel.
            low, high = np.quantile(shown, [0.2, 1.0]) if exact.metric != "RMSE" else np.quantile(shown, [0.0, 0.8])
            margin = 0.08 * (high - low)
            axis.set_ylim(low - margin, high + margin)
        axis.title.set_fontsize(9)
        axis.grid(alpha=0.3)
    for axis in list(axes.flat)[len(groups) :]:
        axis.set_visible(False)
    handles = {
        label: handle for axis in axes.flat for handle, label in zip(*axis.get_legend_handles_labels(), strict=True)
    }
    drawing.legend(handles.values(), handles.keys(), loc="lower center", ncols=3, fontsize=8, frameon=False)
    drawing.tight_layout(rect=(0, 0.14 if rows == 1 else 0.11, 1, 1))
    drawing.savefig(path.with_suffix(".png"), dpi=130)
    drawing.savefig(path.with_suffix(".svg"))
    plt.close(drawing)
