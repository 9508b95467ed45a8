"""The table of reported and attacked epsilons, as text for a page."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from consenso.audit.findings import ENOUGH, Finding
from consenso.errors import InputError
from consenso.planning.plan import Plan
from consenso.privacy.observers import list_names

BEGIN, END = "<!-- table of attacks: begin -->", "<!-- table of attacks: end -->"
SIGNS = {"exactly": "", "at least": ">", "at most": "<"}
WHY = "| algorithm | schedule, trust | observer | why |"


@dataclass(frozen=True, kw_only=True)
class Attacked:
    """A plan, and what attacking its guarantees gave."""

    plan: Plan
    findings: list[Finding]

    @property
    def setting(self) -> str:
        """Schedule and trust in words."""
        return f"{type(self.plan.schedule).__name__}, {self.plan.trust}"


def markdown(attacked: Iterable[Attacked], page: Path | None = None) -> str:
    """One row for each algorithm and setting: claimed epsilon / proved lower bound and their ratio, by observer.

    page: whose table keeps the rows of algorithms that were not attacked.
    """
    rows = list(attacked)
    tried = [finding for row in rows for finding in row.findings if finding.trials]
    if not tried:
        raise InputError("markdown: nothing was attacked, so there is no table; audit a plan that claims something.")
    kept = [] if page is None else _read(page).partition(BEGIN)[2].partition(END)[0].splitlines()
    # Rows that stay had as many runs as their table said.
    said = re.search(r"Up to ([\d,]+) runs", "\n".join(kept))
    most = max(int(said[1].replace(",", "")) if said else 0, *(finding.trials for finding in tried))
    confidence = min(finding.confidence for finding in tried)
    head = f"| algorithm | unit, adjacency | schedule, trust | {' | '.join(list_observers())} |"
    lines = [
        f"Epsilon at delta {tried[0].delta:g}: claimed / proved, the latter with confidence {confidence:g} for each "
        f"entry, and how much of the claim that is. Up to {most:,} runs of either world, fewer where enough was proved "
        "sooner or runs cannot be taken together. In brackets the value for linear losses, where it was computed: "
        "exact, at least (>) or at most (<) so much. A star: the attack is told every answer of the hub, as the claim "
        "counts them; the party itself hears those of its own rounds. A dash: there is no such observer. inf: nothing "
        "is claimed.",
        "",
        head,
        f"| --- | --- | --- |{' --- |' * len(list_observers())}",
    ]
    cells, reasons = [_row(row) for row in rows], _reasons(rows)
    if page is not None:
        attacked_now = {_name(row) for row in cells}
        cells, reasons = _keep_others(kept, cells, head, attacked_now), _keep_others(kept, reasons, WHY, attacked_now)
    below = ["", f"Attacked to less than {ENOUGH:.0%}:", "", WHY, "| --- | --- | --- | --- |"] if reasons else []
    return "\n".join([*lines, *cells, *below, *reasons]) + "\n"


def list_observers() -> list[str]:
    """Names of the observers that stand on cards, which no coalition does."""
    return [name for name in list_names() if name != "coalition"]


def _row(row: Attacked) -> str:
    by_observer = {finding.observer.partition(":")[0]: finding for finding in row.findings}
    first = row.findings[0]
    cells = [_cell(by_observer.get(observer)) for observer in list_observers()]
    return f"| {first.algorithm} | {first.unit}, {first.adjacency} | {row.setting} | {' | '.join(cells)} |"


def _keep_others(before: list[str], rows: list[str], head: str, attacked: set[str]) -> list[str]:
    """Rows, and those before that have as many cells as a head and are of other algorithms, in the order of these."""
    no_rows = {*attacked, _name(head), "---"}
    alike = [line for line in before if line.count(" | ") == head.count(" | ") and _name(line) not in no_rows]
    return sorted([*alike, *rows], key=_name)


def _name(row: str) -> str:
    """The algorithm of a row."""
    return row.split(" | ")[0].removeprefix("| ")


def list_unexplained(attacked: Iterable[Attacked]) -> list[Finding]:
    """Claims that an attack did not reach and for which nothing says why."""
    return [finding for row in attacked for finding in row.findings if finding.trials and not finding.reason]


def _reasons(rows: list[Attacked]) -> list[str]:
    """Below the table: each claim of which the attack does not reach enough, and why; those alike in one line."""
    why: dict[tuple[str, str, str], list[str]] = {}
    for row in rows:
        for finding in row.findings:
            if finding.trials and finding.share < ENOUGH and finding.reason:
                observers = why.setdefault((finding.algorithm, row.setting, finding.reason), [])
                observers.append(finding.observer.partition(":")[0])
    return [f"| {name} | {setting} | {', '.join(who)} | {reason} |" for (name, setting, reason), who in why.items()]


def _cell(finding: Finding | None) -> str:
    if finding is None:
        return "-"
    if math.isinf(finding.claimed):
        return "inf"
    star = "*" if finding.bracket is not None and finding.bracket.told else ""
    text = f"{finding.claimed:.3g} / {finding.lower:.3g}{star}, {finding.share:.0%}{_exact(finding)}"
    return f"**{text} REFUTED**" if finding.refuted else text


def _exact(finding: Finding) -> str:
    known = finding.bracket
    if known is None or known.exact is None:
        return ""
    return f" [{SIGNS[known.kind]}{known.exact:.3g}]"


def write_into(path: Path, table: str, markers: tuple[str, str] = (BEGIN, END)) -> None:
    """Put a table between the markers of a page."""
    first, last = markers
    page = _read(path)
    before, begin, rest = page.partition(first)
    _, end, after = rest.partition(last)
    if not begin or not end:
        raise InputError(f"write_into({str(path)!r}): the page lacks the lines {first!r} and {last!r}; add them.")
    path.write_text(f"{before}{first}\n\n{table}\n{last}{after}", encoding="utf-8")


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise InputError(f"write_into({str(path)!r}): the page cannot be read; name one that exists.") from error
