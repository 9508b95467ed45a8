"""How attacks are shown: a bar while they run, a table and figures of what they gave."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress

    from consenso.audit.findings import Finding
    from consenso.audit.table import Attacked


# What the column "sense" means.
SENSES = (
    '"any" of any mechanism, "shape" if the shape of the claimed curve holds, "pair" as the law of the attacked pair '
    "has its shape; exact: for linear losses"
)


def show_progress(hidden: bool) -> Progress:
    """A bar with the time that is left, on standard error, where somebody looks."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TextColumn("time left"),
        TimeRemainingColumn(),
    )
    return Progress(*columns, console=console, transient=True, disable=hidden or not console.is_terminal)


def draw_each(attacked: Attacked, out: Path) -> None:
    from consenso.audit.plot import draw

    out.mkdir(parents=True, exist_ok=True)
    for finding in attacked.findings:
        if finding.evidence is not None:
            where = f"{finding.algorithm}-{attacked.setting}-{finding.observer}".replace(", ", "-").replace(":", "-")
            draw(finding, out / f"{where}.png")


def show_attacked(attacked: Attacked) -> None:
    from rich.console import Console
    from rich.table import Table

    first = attacked.findings[0]
    scope = f"{first.unit}, {first.adjacency}: epsilon at delta {first.delta:g}"
    table = Table(title=f"{first.algorithm} ({attacked.setting}), {scope}", title_justify="left")
    for name in ("observer", "claimed", "proved", "share", "exact", "sense", "verdict"):
        table.add_column(name, no_wrap=True)
    for finding in attacked.findings:
        table.add_row(finding.observer, *_cells(finding))
    sure = sorted({finding.confidence for finding in attacked.findings if finding.trials})
    told = f"proved with confidence {' or '.join(f'{each:.6g}' for each in sure)}: {SENSES}"
    table.caption = told if sure else None
    console = Console()
    console.print(table)
    for say in (_how, _why):
        for text in dict.fromkeys(say(finding) for finding in attacked.findings if finding.trials):
            who = [finding.observer for finding in attacked.findings if finding.trials and say(finding) == text]
            if text:
                console.print(f"{', '.join(who)}: {text}", highlight=False)
    for finding in attacked.findings:
        if finding.first is not None:
            console.print(f"{finding.observer}: {finding.say_proof()}", highlight=False)


def _how(finding: Finding) -> str:
    return f"{finding.neighbours}; {finding.attack}; {finding.method}; {finding.trials:,} runs"


def _why(finding: Finding) -> str:
    return finding.reason


def _cells(finding: Finding) -> list[str]:
    from consenso.audit.findings import FAMILY, LAW
    from consenso.audit.table import SIGNS

    if not finding.trials:
        return ["inf", "-", "-", "-", "-", "nothing is claimed"]
    numbers = [f"{finding.claimed:.4g}", f"{finding.lower:.4g}", f"{finding.share:.0%}"]
    known = finding.bracket
    exact = "-" if known is None or known.exact is None else f"{SIGNS[known.kind]}{known.exact:.4g}"
    return [
        *numbers,
        exact,
        {FAMILY: "shape", LAW: "pair"}.get(finding.method, "any"),
        "REFUTED" if finding.refuted else "not refuted",
    ]
