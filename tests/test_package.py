"""What holds for the package as a whole: the order of its rooms, and where it can be imported."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import consenso

ROOT = Path(__file__).parents[1]
# Modules of Python that Windows does not have.
POSIX = ("fcntl", "grp", "pty", "pwd", "resource", "syslog", "termios", "tty")
# Beside the rooms: what every room may read.
OPEN = {"version"}

IMPORT_ALL = """
import importlib, pkgutil, sys
for name in {blocked!r}:
    sys.modules[name] = None
import consenso
for module in pkgutil.walk_packages(consenso.__path__, "consenso."):
    if not module.name.endswith("__main__"):
        importlib.import_module(module.name)
print("imported")
"""


def contract() -> list[set[str]]:
    """The layers of the import contract, from the bottom up."""
    with (ROOT / "pyproject.toml").open("rb") as file:
        (found,) = tomllib.load(file)["tool"]["importlinter"]["contracts"]
    return [
        {name.strip().removeprefix("consenso.") for name in layer.split("|")} for layer in reversed(found["layers"])
    ]


def test_contributing_draws_the_layers_of_the_import_contract_in_their_order() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    (drawn,) = re.findall(r"from the bottom up:\n\n((?:    .*\n)+)", text)
    layers = [{name.strip() for name in layer.split(",")} for layer in drawn.split("→")]
    assert layers == contract()


def test_no_other_page_draws_layers() -> None:
    """A second drawing would have to be kept in step by hand."""
    pages = [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]
    assert [page.name for page in pages if "→ privacy →" in page.read_text(encoding="utf-8")] == []


def test_every_room_is_in_the_contract() -> None:
    here = {path.stem for path in Path(consenso.__file__).parent.iterdir() if not path.name.startswith(("_", "."))}
    assert here - {"py"} - OPEN == set().union(*contract())


def test_studies_and_their_algorithms_load_without_what_only_estimators_and_audits_need() -> None:
    """Every command and every message of a Flower run starts an interpreter, of which these were half."""
    code = (
        "import sys, consenso.deployment.join, consenso.deployment.flower, consenso.study.training\n"
        "from consenso.algorithms import discover\n"
        "discover()\n"
        "print(sorted({'sklearn', 'pandas', 'scipy.stats', 'scipy.signal', 'scipy.interpolate'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300)
    assert done.stdout == "[]\n", done.stderr


def test_every_module_can_be_imported_without_the_modules_of_posix() -> None:

    done = subprocess.run(
        [sys.executable, "-c", IMPORT_ALL.format(blocked=POSIX)], capture_output=True, text=True, timeout=300
    )
    assert done.stdout == "imported\n", done.stderr


def test_the_glossary_has_at_most_thirty_words_and_says_how_many() -> None:
    text = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")
    words = [line.split("|")[1].strip() for line in text.splitlines() if line.startswith("| ")][2:]
    assert len(words) == len(set(words)) == 30
    assert "Thirty words." in text
