"""`consenso algorithms`: what was discovered, what the papers call it, and what is guaranteed to whom."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer


def register(app: typer.Typer) -> None:
    @app.command()
    def algorithms(
        as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
    ) -> None:
        """List the algorithms, the papers' names for them, and the theorem that protects against each observer.

        Exit codes: 0 fine, 2 bad input.

        Example: consenso algorithms --json
        """
        found = [describe(name, definition) for name, definition in _list_algorithms()]
        if as_json:
            typer.echo(json.dumps(found, indent=2))
            return
        _show(found)


def _list_algorithms() -> list[tuple[str, Any]]:
    from consenso.algorithms import discover

    return list(discover().items())


def describe(name: str, definition: Any) -> dict[str, Any]:
    """What is known of an algorithm: what it does, where it is from, and the theorem by setting and observer."""
    from consenso.algorithms.shape import HubAlgorithm
    from consenso.planning.plan import plan

    example = definition.example()
    settings = []
    for schedule in example.schedules:
        for trust in example.trusts:
            made = plan(
                example.problem,
                example.algorithm,
                rounds=example.rounds,
                noise=example.noise,
                schedule=schedule,
                trust=trust,
                topology=example.topology,
            )
            theorems = {}
            for observer in made.observers():
                promise = made.prove_each(observer, 1e-6)[0]
                theorems[observer.key.partition(":")[0]] = promise.theorem
            settings.append({"schedule": type(schedule).__name__, "trust": trust, "theorem by observer": theorems})
    return {
        "name": name,
        "shape": "hub" if isinstance(example.algorithm, HubAlgorithm) else "peer",
        "what": (definition.__doc__ or "").strip().splitlines()[0],
        "sources": [
            {"paper": source.paper, "algorithm": source.algorithm, "names": list(source.names)}
            for source in definition.sources
        ],
        "settings": settings,
    }


def _show(found: list[dict[str, Any]]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(title="Algorithms", show_lines=True)
    for column in ("name", "shape", "from", "also called", "schedules", "trust", "guarantee by observer"):
        table.add_column(column)
    for each in found:
        sources = sorted({f"{s['paper']} {s['algorithm']}".strip() for s in each["sources"]})
        aliases = [name for source in each["sources"] for name in source["names"]]
        guarantees = {
            f"{observer}: {theorem}"
            for setting in each["settings"]
            for observer, theorem in setting["theorem by observer"].items()
        }
        table.add_row(
            each["name"],
            each["shape"],
            "\n".join(sources),
            "\n".join(aliases),
            "\n".join(dict.fromkeys(setting["schedule"] for setting in each["settings"])),
            "\n".join(dict.fromkeys(setting["trust"] for setting in each["settings"])),
            "\n".join(sorted(guarantees)),
        )
    Console().print(table)
