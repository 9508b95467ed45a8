"""The notebooks of the gallery run, and what is committed of them is made from the files that they are."""

from __future__ import annotations

import importlib.util
import json
import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
# It starts eight processes of its own; `make docs` executes it.
SLOW = {"federation"}


@pytest.fixture(scope="module")
def gallery() -> Any:
    spec = importlib.util.spec_from_file_location("gallery_pages", ROOT / "docs" / "gallery_pages.py")
    assert spec is not None
    assert spec.loader is not None
    module: ModuleType = importlib.util.module_from_spec(spec)
    sys.modules["gallery_pages"] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    yield module
    del sys.modules["gallery_pages"]


NAMES = sorted(path.stem for path in (ROOT / "docs" / "gallery").glob("*.py"))


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in NAMES if name not in SLOW])
def test_a_notebook_runs_and_shows_something(gallery: Any, name: str) -> None:
    shown = gallery.execute(gallery.read(name))
    kinds = {output.kind for outputs in shown for output in outputs}
    assert {"printed", "picture"} <= kinds


def test_there_is_one_for_every_question() -> None:
    assert set(NAMES) == {"one-table", "people", "imbalance", "federation", "peers", "audit", "figure"}


@pytest.mark.parametrize("name", NAMES)
def test_what_can_be_downloaded_is_the_notebook_with_its_outputs(gallery: Any, name: str) -> None:
    """The fields that nbformat 4.5 asks for, the cells of the source, and an output of each that has one."""
    content = json.loads((ROOT / "docs" / "gallery" / f"{name}.ipynb").read_text(encoding="utf-8"))
    assert (content["nbformat"], content["nbformat_minor"]) == (4, 5)
    assert content["metadata"]["kernelspec"].keys() >= {"name", "display_name"}
    cells = content["cells"]
    assert [(cell["cell_type"], "".join(cell["source"])) for cell in cells] == [
        (cell.kind, cell.source) for cell in gallery.read(name)
    ], f"run python docs/gallery_pages.py {name}"
    assert len({cell["id"] for cell in cells}) == len(cells)
    assert all(re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", cell["id"]) for cell in cells)
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    assert [cell["execution_count"] for cell in code] == list(range(1, len(code) + 1))
    needed = {
        "stream": {"output_type", "name", "text"},
        "display_data": {"output_type", "data", "metadata"},
        "execute_result": {"output_type", "data", "metadata", "execution_count"},
    }
    outputs = [output for cell in code for output in cell["outputs"]]
    assert outputs
    assert all(set(output) == needed[output["output_type"]] for output in outputs)


@pytest.mark.parametrize("name", NAMES)
def test_a_page_shows_every_cell_and_links_the_download(gallery: Any, name: str) -> None:
    page = (ROOT / "docs" / "gallery" / f"{name}.md").read_text(encoding="utf-8")
    assert f"]({name}.ipynb)" in page
    assert all(cell.source in page for cell in gallery.read(name) if cell.kind == "code")
    assert f"]({name}.md)" in (ROOT / "docs" / "gallery" / "index.md").read_text(encoding="utf-8")
    for picture in re.findall(r"\]\((\S+\.png)\)", page):
        assert (ROOT / "docs" / "gallery" / picture).exists()


def test_outputs_are_those_of_a_kernel(gallery: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is printed, then the last value, rich where it can be; an assignment shows nothing."""
    monkeypatch.setattr(gallery, "FOLDER", tmp_path)
    (tmp_path / "small.py").write_text(
        "# %% [markdown]\n# # Title\n#\n# Words.\n# %%\nx = 2\n# %%\nprint('said')\nx + 1\n"
        "# %%\nclass Rich:\n    def _repr_html_(self): return '<b>r</b>\\n\\n<i>s</i>'\nRich()\n"
    )
    gallery.write("small")
    page = (tmp_path / "small.md").read_text()
    assert page.startswith("# Title\n\n[Download this notebook](small.ipynb)")
    assert "```text\nsaid\n```\n\n```text\n3\n```" in page
    assert '<div class="output"><b>r</b>\n<i>s</i></div>' in page
    cells = json.loads((tmp_path / "small.ipynb").read_text())["cells"]
    assert [len(cell.get("outputs", [])) for cell in cells] == [0, 0, 2, 1]
