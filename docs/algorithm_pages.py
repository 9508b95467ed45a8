"""Write a page per algorithm from what the registry discovers: `python docs/algorithm_pages.py`.

The iteration and its symbols are those of the file that defines it; the guarantees are those of a plan of its example.
"""

from __future__ import annotations

import inspect
import re
import sys
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "algorithms"


def page_of(name: str, definition: Any) -> str:
    """The page of one algorithm."""
    from consenso.cli.algorithms import describe

    told = describe(name, definition)
    module = inspect.getdoc(sys.modules[definition.__module__]) or ""
    shape = "a hub: curator, server or walk" if told["shape"] == "hub" else "peers on a graph"
    papers = [f"- paper {source['paper']}, {source['algorithm']}" for source in told["sources"]]
    parts = [
        f"# {name}",
        told["what"],
        f"For {shape}. [Which algorithm when](../which-algorithm.md). `consenso audit {name}` attacks it.",
        "## Iteration",
        f"```text\n{module}\n```",
        "## Guarantee by observer",
        "The theorem that protects one unit in the example of its file; [the proofs](../privacy.md).",
        _table(told["settings"]),
    ]
    if papers:
        parts += ["## In the papers", "\n".join(dict.fromkeys(papers))]
    return "\n\n".join(parts) + "\n"


def _table(settings: list[dict[str, Any]]) -> str:
    observers = list(dict.fromkeys(who for setting in settings for who in setting["theorem by observer"]))
    lines = [f"| schedule | trust | {' | '.join(observers)} |", f"|{' --- |' * (2 + len(observers))}"]
    for setting in settings:
        found = [_words(setting["theorem by observer"].get(who, "-")) for who in observers]
        lines.append(f"| {setting['schedule']} | {setting['trust']} | {' | '.join(found)} |")
    return "\n".join(lines)


def _words(theorem: str) -> str:
    """`MeanOfNoisyStates` as words."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", theorem).lower() if theorem != "-" else theorem


def main() -> None:
    """Write every page."""
    from consenso.algorithms import discover

    FOLDER.mkdir(exist_ok=True)
    for name, definition in discover().items():
        (FOLDER / f"{name}.md").write_text(page_of(name, definition), encoding="utf-8")


if __name__ == "__main__":
    main()
