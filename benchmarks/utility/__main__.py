"""`python -m benchmarks.utility`: metric, excess risk and time of every method at equal (epsilon, delta, adjacency)."""

from __future__ import annotations

import argparse
from pathlib import Path

from rich.console import Console
from rich.markdown import Markdown
from rich.progress import Progress

from benchmarks.utility.methods import methods
from benchmarks.utility.results import Book, collect, save
from benchmarks.utility.showing import figure, table
from benchmarks.utility.tasks import EPSILONS, TASKS


def main() -> None:
    """Run the comparison."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tasks", nargs="*", choices=[*TASKS, []], help="data sets; all if none is named")
    parser.add_argument("--epsilon", type=float, action="append", help=f"budgets; {EPSILONS} if none is named")
    parser.add_argument("--method", action="append", help="only methods whose name contains this")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--out", type=Path, default=Path("results/utility"))
    asked = parser.parse_args()
    asked.out.mkdir(parents=True, exist_ok=True)
    chosen = [m for m in methods() if not asked.method or any(part in m.name for part in asked.method)]
    with Progress() as progress:
        fits = collect(
            asked.tasks or list(TASKS),
            chosen,
            asked.epsilon or list(EPSILONS),
            asked.seeds,
            Book(asked.out / "fits.jsonl"),
            progress,
        )
    save(fits, asked.out / "fits.json")
    text = table(fits)
    (asked.out / "table.md").write_text(text)
    figure(fits, asked.out / "utility")
    console = Console(width=170)
    console.print(Markdown(text))
    console.print(f"Written: {asked.out}/table.md, fits.json, utility.png, utility.svg")


if __name__ == "__main__":
    main()
