"""The trade-off curve of an attack beside the one that is claimed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from consenso.audit.bounds import GRID
from consenso.audit.families import curve_of
from consenso.audit.findings import Finding
from consenso.errors import InputError


def draw(finding: Finding, path: Path) -> None:
    """Write a figure: false negatives over false positives, with the region that the claim forbids."""
    if finding.evidence is None:
        raise InputError(f"draw({finding.algorithm}, {finding.observer}): nothing is claimed, so nothing was attacked.")
    plt = _pyplot()
    figure, axes = plt.subplots(figsize=(6.0, 5.0))
    shown, claimed = finding.evidence, curve_of(finding.event).values
    axes.fill_between(
        GRID, 0.0, claimed, color="tab:red", alpha=0.12, linewidth=0, label="impossible if the claim holds"
    )
    axes.plot(
        GRID, claimed, color="tab:red", label=f"claimed (epsilon {finding.claimed:.3g} at delta {finding.delta:g})"
    )
    axes.plot(shown.fpr, shown.fnr, color="tab:blue", label=f"attack, {finding.trials} runs of either world")
    counts, (a, b) = shown.errors, shown.errors.upper
    seen = counts.false_positives / counts.negatives, counts.false_negatives / counts.positives
    # Only the upper ends matter: an attack that errs more proves less.
    ends = [[0.0], [max(0.0, a - seen[0])]], [[0.0], [max(0.0, b - seen[1])]]
    axes.errorbar(
        [seen[0]],
        [seen[1]],
        xerr=ends[0],
        yerr=ends[1],
        fmt="o",
        color="tab:blue",
        capsize=3,
        label=f"errors counted, at most so many with confidence {counts.confidence:g}",
    )
    axes.plot([0, 1], [1, 0], color="0.6", linestyle=":", label="guessing")
    axes.set(
        xlabel="false positive rate",
        ylabel="false negative rate",
        xlim=(0, 1),
        ylim=(0, 1),
        title=f"{finding.algorithm}, {finding.observer}, {finding.unit}, {finding.adjacency}\n"
        f"epsilon at least {finding.lower:.3g}: {'REFUTED' if finding.refuted else 'not refuted'}",
    )
    axes.legend(loc="upper right", fontsize="small")
    figure.tight_layout()
    figure.savefig(path, dpi=120)
    plt.close(figure)


def _pyplot() -> Any:
    try:
        import matplotlib
    except ImportError as error:
        raise InputError("audit figures need Matplotlib; pip install 'consenso[plots]'.") from error
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    return plt
