"""The terms of guarantees and their defaults are written once."""

from __future__ import annotations

import ast
import inspect
import re
from functools import cache
from pathlib import Path

import pytest

import consenso
from consenso import conventions, trust
from consenso.audit.attack import audit
from consenso.audit.one_run import audit_once, one_run
from consenso.conventions import LARGEST_DELTA, default_delta
from consenso.errors import write_count
from consenso.estimators import PrivateLogisticRegression
from consenso.estimators.privacy_params import terms_of
from consenso.study import Study

SOURCE = Path(consenso.__file__).parent
WORDS = {frozenset(map(repr, words)) for words in (conventions.UNITS, conventions.ADJACENCIES, trust.modes())}
# A weighting is by record or by party, and an algorithm's level too: the same words for other things.
OTHERS = {"problem.py", "algorithms/dual_consensus.py", "testing/exact_values/cases.py"}


@cache
def read_source() -> dict[str, ast.Module]:
    """Every module of the package, by its path."""
    paths = sorted(SOURCE.rglob("*.py"))
    return {path.relative_to(SOURCE).as_posix(): ast.parse(path.read_text(encoding="utf-8")) for path in paths}


@cache
def read_nodes() -> dict[str, list[ast.AST]]:
    """All that each of them has inside."""
    return {path: list(ast.walk(module)) for path, module in read_source().items()}


def name_of(node: ast.expr) -> str | None:
    """`trust` of `trust` and of `plan.trust`."""
    return getattr(node, "attr", None) or getattr(node, "id", None)


def test_units_adjacencies_and_trusts_are_listed_in_one_module() -> None:
    """No other module has a literal type of just these words, or a constant tuple of them."""
    found = set()
    for path, module in read_source().items():
        literals = [
            node.slice
            for node in read_nodes()[path]
            if isinstance(node, ast.Subscript) and name_of(node.value) == "Literal"
        ]
        constants = [node.value for node in module.body if isinstance(node, ast.Assign | ast.AnnAssign)]
        for node in (*literals, *constants):
            if isinstance(node, ast.Tuple) and frozenset(map(ast.unparse, node.elts)) in WORDS:
                found.add(path)
    assert found - OTHERS == {"conventions.py"}


def test_what_a_trust_does_is_asked_of_its_mode() -> None:
    """Nobody compares the name of a trust: a mode that is added would be forgotten there."""
    names = {repr(name) for name in trust.modes()}
    for path, nodes in read_nodes().items():
        for node in nodes:
            if isinstance(node, ast.Compare) and name_of(node.left) == "trust":
                compared = {ast.unparse(each) for each in ast.walk(node) if isinstance(each, ast.Constant)}
                assert not compared & names, f"{path}: {ast.unparse(node)}"


def test_the_default_delta_is_one_rule(tmp_path) -> None:
    assert default_delta() == LARGEST_DELTA == 1e-5
    assert default_delta(10**6) == pytest.approx(1e-7)
    for function in (audit, audit_once, one_run):
        assert inspect.signature(function).parameters["delta"].default == LARGEST_DELTA
    for rows in (100, 10**6):
        assert terms_of(PrivateLogisticRegression(), "PrivateLogisticRegression", rows).delta == default_delta(rows)
    stated = (
        "[data]\ndataset = 'adult'\n[model]\nloss = 'logistic'\n[setting]\nkind = 'central'\n[privacy]\nrho = 0.1\n"
    )
    assert Study.parse(stated).privacy.delta == LARGEST_DELTA
    assert Study.parse(stated + "delta = 1e-6\n").privacy.delta == 1e-6


def test_no_default_delta_is_written_elsewhere() -> None:
    """Neither as the default of a parameter called delta, nor as a constant of that name."""
    number = r"1e-0?[4-9]"
    pattern = re.compile(rf"^\s*(delta: [^=\n]*= |_?DELTA = ){number}|delta is not None else {number}", re.MULTILINE)
    found = {
        path.relative_to(SOURCE).as_posix()
        for path in SOURCE.rglob("*.py")
        if pattern.search(path.read_text(encoding="utf-8"))
    }
    assert found <= {"conventions.py"}


def test_one_function_writes_the_folder_of_a_run() -> None:
    """Trained in one process, served, joined, by peers or by Flower: card and model are written in one place."""
    writes = re.compile(r"card\.save\(|(?<!def )save_model\((?!self)|/ (CARD|MODEL)\)\.write")
    writers = {
        path.relative_to(SOURCE).as_posix()
        for path in SOURCE.rglob("*.py")
        if writes.search(path.read_text(encoding="utf-8"))
    }
    assert writers == {"study/training.py"}


# Nouns and other words that end like participles, and the predicate that algorithms of others may have.
NO_PARTICIPLES = {"damping", "finished", "need", "nothing", "ring", "rounding", "setting", "speed", "widening"}
PARTICIPLES = re.compile(
    r"\w+(ed|ing)|told|found|heard|known|kept|seen|given|made|drawn|shown|taken|written|held|sent|chosen|spent|hidden|"
    r"learnt|left|lost|meant|said|built|met|won"
)


def test_functions_are_verbs() -> None:
    """No function is called by a participle alone: `check`, not `checked`. A property is a value and may be."""
    for path, nodes in read_nodes().items():
        for node in nodes:
            if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                continue
            name = node.name.strip("_")
            if name in NO_PARTICIPLES or any("property" in ast.unparse(each) for each in node.decorator_list):
                continue
            assert not PARTICIPLES.fullmatch(name) or "_" in name, f"{path}: {node.name}"


def test_docstrings_tell_a_caller_something() -> None:
    """None of functions and classes has three words or fewer, unless they are a formula or a shape."""
    words = re.compile(r"[A-Za-z][a-z-]+('s)?( [A-Za-z`_-]{2,}('s)?){0,2}\.")
    for path, nodes in read_nodes().items():
        for node in nodes:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                said = (ast.get_docstring(node, clean=False) or "").strip()
                assert not words.fullmatch(said), f"{path}: {node.name} says {said!r}"


def test_no_class_name_has_two_meanings() -> None:
    """But for the parts that every algorithm or protocol has, and an algorithm whose event has its name."""
    parts = {"Hub", "State", "Up", "Down", "Message", "ObjectivePerturbation"}
    homes: dict[str, set[str]] = {}
    for path, nodes in read_nodes().items():
        for node in nodes:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes.setdefault(node.name, set()).add(path)
    assert {name: places for name, places in homes.items() if len(places) > 1 and name not in parts} == {}


def test_numbers_have_their_nouns_in_the_right_number() -> None:
    assert [write_count(number, "round") for number in (0, 1, 2, 1200)] == [
        "0 rounds",
        "1 round",
        "2 rounds",
        "1,200 rounds",
    ]
    assert write_count(2, "canary") == "2 canaries"
    texts = [path for path in SOURCE.rglob("*") if path.suffix in (".py", ".html")]
    assert [
        path.name
        for path in texts
        if re.search(
            r"(time|participation|plan|run|round|row|part[yi]\w*)\((e?s|ies)\)", path.read_text(encoding="utf-8")
        )
    ] == []
