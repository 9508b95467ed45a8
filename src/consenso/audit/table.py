"""The table of reported and attacked epsilons, as text for a page."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from consenso.audit.findings import Finding
from consenso.errors import InputError
from consenso.planning.plan import Plan

BEGIN, END = "<!-- table of attacks: begin -->", "<!-- table of attacks: end -->"
OBSERVERS = ("eavesdropper", "server", "peer", "public")


@dataclass(frozen=True, kw_only=True)
class Attacked:
    """A plan, and what attacking its guarantees gave."""

    plan: Plan
    findings: list[Finding]

    @property
    def spec(self) -> str:
        """Schedule and trust in words."""
        spec = self.plan.spec
        return f"{type(spec.schedule).__name__}, {spec.policy.trust}"


def markdown(attacked: Iterable[Attacked]) -> str:
    """One row for each algorithm and spec: claimed epsilon / proved lower bound and their ratio, by observer."""
    rows = list(attacked)
    tried = [finding for row in rows for finding in row.findings if finding.trials]
    if not tried:
        raise InputError("markdown: nothing was attacked, so there is no table; audit a plan that claims something.")
    most, fewest = max(finding.trials for finding in tried), min(finding.trials for finding in tried)
    confidence = min(finding.confidence for finding in tried)
    lines = [
        f"Epsilon at delta {tried[0].delta:g}: claimed / proved, the latter with confidence {confidence:g} for each "
        f"entry, and how much of the claim that is. {most:,} runs of either world, {fewest:,} where runs cannot be "
        "taken together. A dash: there is no such observer. inf: nothing is claimed.",
        "",
        "| algorithm | unit, adjacency | schedule, trust | eavesdropper | server | peer | public |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for row in rows:
        by_observer = {finding.observer.partition(":")[0]: finding for finding in row.findings}
        first = row.findings[0]
        cells = [_cell(by_observer.get(observer)) for observer in OBSERVERS]
        scope = f"{first.unit}, {first.adjacency}"
        lines.append(f"| {first.algorithm} | {scope} | {row.spec} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _cell(finding: Finding | None) -> str:
    if finding is None:
        return "-"
    if math.isinf(finding.claimed):
        return "inf"
    text = f"{finding.claimed:.3g} / {finding.lower:.3g}, {finding.share:.0%}"
    return f"**{text} REFUTED**" if finding.refuted else text


def write_into(path: Path, table: str, markers: tuple[str, str] = (BEGIN, END)) -> None:
    """Put a table between the markers of a page."""
    first, last = markers
    try:
        page = path.read_text(encoding="utf-8")
    except OSError as error:
        raise InputError(f"write_into({str(path)!r}): the page cannot be read; name one that exists.") from error
    before, begin, rest = page.partition(first)
    _, end, after = rest.partition(last)
    if not begin or not end:
        raise InputError(f"write_into({str(path)!r}): the page lacks the lines {first!r} and {last!r}; add them.")
    path.write_text(f"{before}{first}\n\n{table}\n{last}{after}", encoding="utf-8")
