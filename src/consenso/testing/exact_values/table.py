"""How tight guarantees are, as text for a page."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from consenso.privacy.observers import list_names
from consenso.testing.exact_values.compare import DELTA
from consenso.testing.exact_values.law import Examined

BEGIN, END = "<!-- table of exact values: begin -->", "<!-- table of exact values: end -->"
BELOW = "BELOW THE EXACT VALUE"


def markdown(examined: Sequence[Examined]) -> str:
    """One row for each algorithm: the least, the median and the largest ratio of reported to exact epsilon."""
    findings = [finding for each in examined for finding in each.findings]
    observers = list_names()
    lines = [
        f"Reported over exact epsilon at delta {DELTA:g}: least, median and largest over {len(findings):,} guarantees "
        f"of {sum(each.plans for each in examined):,} plans. Where coins are hidden the exact value is bounded from "
        "below, so that the ratio is too large. A dash: nothing is claimed.",
        "",
        f"| algorithm | {' | '.join(observers)} |",
        f"| --- |{' --- |' * len(observers)}",
    ]
    for each in examined:
        cells = [_cell(each, observer) for observer in observers]
        if set(cells) != {"-"}:
            lines.append(f"| {each.algorithm} | {' | '.join(cells)} |")
    lines += ["", "Not compared, because runs are not affine in their noise or nothing is claimed:", ""]
    lines += [f"* {line}" for each in examined for line in _left_out(each)]
    strongest = sorted({finding.theorem for finding in findings})
    lines += ["", f"Bounds that were the strongest somewhere: {', '.join(f'`{name}`' for name in strongest)}."]
    return "\n".join(lines) + "\n"


def ratios(examined: Examined, observer: str) -> list[float]:
    """Finite ratios of one kind of observer."""
    return [
        finding.ratio
        for finding in examined.findings
        if finding.observer.partition(":")[0] == observer and np.isfinite(finding.ratio)
    ]


def _cell(examined: Examined, observer: str) -> str:
    found = ratios(examined, observer)
    if not found:
        return "-"
    least, median, most = np.quantile(found, (0, 0.5, 1))
    text = f"{least:.3g}, {median:.3g}, {most:.3g}"
    false = any(finding.observer.partition(":")[0] == observer for finding in examined.below)
    return f"**{text} {BELOW}**" if false else text


def _left_out(examined: Examined) -> Iterable[str]:
    """Parameters with which no plan could be compared, and why; whole algorithms, if there were none."""
    if not examined.findings:
        yield f"{examined.algorithm}: {_most_common(examined) or 'no value is claimed with Gaussian noise'}."
        return
    for parameters, reason in examined.not_affine.items():
        yield f"{examined.algorithm} with {parameters}: {reason}."


def _most_common(examined: Examined) -> str:
    return examined.left_out.most_common(1)[0][0] if examined.left_out else ""
