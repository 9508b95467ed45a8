"""Execute the notebooks of the gallery and write them with what came out: `python docs/gallery_pages.py [NAME ...]`.

A notebook is a Python file of cells (`# %%`, `# %% [markdown]`), which editors open as a notebook and `python` runs as
it is. Each becomes a page of the site and an `.ipynb` to download, both with the outputs of this run.
"""

from __future__ import annotations

import ast
import base64
import contextlib
import io
import json
import os
import re
import sys
import tempfile
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

FOLDER = Path(__file__).parent / "gallery"
LONGEST = 1000  # characters of a value that has a page of its own
WIDTH = 84  # of printed lines on a page
MARK = re.compile(r"^# %%(?P<kind> \[markdown\])?\s*$")


@dataclass(frozen=True)
class Cell:
    """A piece of a notebook."""

    kind: Literal["markdown", "code"]
    source: str


@dataclass(frozen=True)
class Output:
    """What a cell showed: text that it printed, its last value, or a picture."""

    kind: Literal["printed", "value", "picture"]
    text: str = ""
    rich: str | None = None  # the value as HTML
    png: bytes = b""


def names() -> list[str]:
    """The notebooks."""
    return sorted(path.stem for path in FOLDER.glob("*.py"))


def read(name: str) -> list[Cell]:
    """The cells of a notebook."""
    cells: list[tuple[Literal["markdown", "code"], list[str]]] = []
    for line in (FOLDER / f"{name}.py").read_text(encoding="utf-8").splitlines():
        mark = MARK.match(line)
        if mark:
            cells.append(("markdown" if mark["kind"] else "code", []))
        else:
            cells[-1][1].append(line.removeprefix("#").removeprefix(" ") if cells[-1][0] == "markdown" else line)
    return [Cell(kind, "\n".join(lines).strip("\n")) for kind, lines in cells]


def execute(cells: list[Cell]) -> list[list[Output]]:
    """Run the code cells one after the other, as a kernel does, in a folder of their own."""
    os.environ.setdefault("MPLBACKEND", "agg")
    space: dict[str, Any] = {"__name__": "__main__"}
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        return [list(_run(cell.source, space)) if cell.kind == "code" else [] for cell in cells]


def _run(source: str, space: dict[str, Any]) -> Iterator[Output]:
    tree, printed, value = ast.parse(source), io.StringIO(), None
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    with contextlib.redirect_stdout(printed):
        exec(compile(tree, "<cell>", "exec"), space)
        if last is not None:
            value = eval(compile(ast.Expression(last.value), "<cell>", "eval"), space)
    if printed.getvalue():
        yield Output("printed", printed.getvalue())
    if value is not None:
        show = getattr(value, "_repr_html_", None)
        plain = repr(value)
        if show is not None and len(plain) > LONGEST:
            plain = f"{type(value).__name__}(...)"
        yield Output("value", plain, None if show is None else show())
    yield from _pictures()


def _pictures() -> Iterator[Output]:
    """The figures that a cell drew."""
    if "matplotlib.pyplot" not in sys.modules:
        return
    from matplotlib import pyplot as plt

    for number in plt.get_fignums():
        file = io.BytesIO()
        plt.figure(number).savefig(file, format="png", dpi=80, bbox_inches="tight", metadata={"Software": None})
        yield Output("picture", png=file.getvalue())
    plt.close("all")


def notebook(name: str, cells: list[Cell], shown: list[list[Output]]) -> str:
    """The notebook as Jupyter reads it (nbformat 4.5), with its outputs."""
    written, count = [], 0
    for place, (cell, outputs) in enumerate(zip(cells, shown, strict=True)):
        count += cell.kind == "code"
        code = {"execution_count": count, "outputs": [_as_json(each, count) for each in outputs]}
        written.append(
            {
                "cell_type": cell.kind,
                "id": f"{name}-{place}",
                "metadata": {},
                "source": cell.source.splitlines(keepends=True),
                **(code if cell.kind == "code" else {}),
            }
        )
    language = {"name": "python", "version": ".".join(map(str, sys.version_info[:3]))}
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    content = {
        "cells": written,
        "metadata": {"kernelspec": kernel, "language_info": language},
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    return json.dumps(content, indent=1, ensure_ascii=False) + "\n"


def _as_json(output: Output, count: int) -> dict[str, Any]:
    if output.kind == "printed":
        return {"output_type": "stream", "name": "stdout", "text": output.text.splitlines(keepends=True)}
    if output.kind == "picture":
        data = {"image/png": base64.b64encode(output.png).decode("ascii")}
        return {"output_type": "display_data", "data": data, "metadata": {}}
    data = {"text/plain": output.text.splitlines(keepends=True)}
    if output.rich is not None:
        data["text/html"] = output.rich.splitlines(keepends=True)
    return {"output_type": "execute_result", "execution_count": count, "data": data, "metadata": {}}


def page(name: str, cells: list[Cell], shown: list[list[Output]]) -> tuple[str, dict[str, bytes]]:
    """The page of the site, and its pictures by file name."""
    parts, pictures = [], {}
    for cell, outputs in zip(cells, shown, strict=True):
        parts.append(cell.source if cell.kind == "markdown" else f"```python\n{cell.source}\n```")
        for output in outputs:
            if output.kind == "picture":
                file = f"{name}-{len(pictures) + 1}.png"
                pictures[file] = output.png
                parts.append(f"![What the cell above draws]({file})")
            elif output.rich is not None:
                parts.append(f'<div class="output">{_one_block(output.rich)}</div>')
            else:
                lines = [wrapped for line in output.text.splitlines() for wrapped in textwrap.wrap(line, WIDTH) or [""]]
                parts.append("```text\n" + "\n".join(lines).rstrip() + "\n```")
    title, rest = parts[0].split("\n", 1)
    link = f"[Download this notebook]({name}.ipynb) and run it: `pip install 'consenso[all]'` and Jupyter."
    return "\n\n".join([title, link, rest.strip(), *parts[1:]]) + "\n", pictures


def _one_block(rich: str) -> str:
    """Markdown ends a block of HTML at an empty line."""
    return re.sub(r"\n\s*\n", "\n", rich.strip())


def write(name: str) -> None:
    """Execute a notebook, and write its page, its pictures and its file for Jupyter."""
    cells = read(name)
    shown = execute(cells)
    text, pictures = page(name, cells, shown)
    for old in FOLDER.glob(f"{name}-*.png"):
        old.unlink()
    for file, content in pictures.items():
        (FOLDER / file).write_bytes(content)
    (FOLDER / f"{name}.md").write_text(text, encoding="utf-8")
    (FOLDER / f"{name}.ipynb").write_text(notebook(name, cells, shown), encoding="utf-8")


def main() -> None:
    """Write the notebooks that are named, or all."""
    for name in sys.argv[1:] or names():
        write(name)


if __name__ == "__main__":
    main()
