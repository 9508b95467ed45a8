"""Run benchmarks and print every figure beside its limit; exit code 1 when a limit is broken."""

from __future__ import annotations

import importlib
import sys

from rich.console import Console
from rich.table import Table

MODULES = (
    "first_minute",
    "prox",
    "parties",
    "noise",
    "planning",
    "accounting",
    "hub",
    "peers",
    "network",
    "graph_sum",
    "secure_sum",
    "storage",
    "tables",
    "waiting",
    "wide",
    "fits",
    "walks",
    "audit",
)


def main(names: list[str]) -> int:
    """Run the named modules, or all."""
    strange = [name for name in names if name not in MODULES]
    if strange:
        print(
            f"python -m benchmarks [NAME...]: names are {', '.join(MODULES)}; all of them without one", file=sys.stderr
        )
        return 2
    console, broken = Console(width=150), 0
    for name in names or MODULES:
        table = Table(title=name, title_justify="left")
        for column in ("figure", "measured", "limit", "", "note"):
            table.add_column(column)
        for figure in importlib.import_module(f"benchmarks.{name}").run():
            limit = "" if figure.limit is None else f"{'at most' if figure.at_most else 'at least'} {figure.limit:g}"
            verdict = "" if figure.limit is None else "kept" if figure.kept else "BROKEN"
            broken += not figure.kept
            table.add_row(figure.name, f"{figure.value:.3g} {figure.unit}", limit, verdict, figure.note)
        console.print(table)
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
