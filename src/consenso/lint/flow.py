"""Where values come from: a short walk over a file that follows names from statement to statement.

Names get tags from what they are assigned. It is no proof, and it does not look into other files: a rule built on it
reports what it can follow and stays silent about the rest.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

Tags = frozenset[str]
NONE: Tags = frozenset()

# Names that people give to the data they train on.
DATA_NAMES = frozenset(
    ("X", "y", "X_train", "y_train", "Xs", "data", "df", "table", "rows", "features", "targets", "labels")
)
# Functions that hand out well-known data sets.
PUBLIC_MAKERS = ("load_", "fetch_", "make_")
ESTIMATOR = "Private"


def called_name(node: ast.Call) -> str:
    """The last part of the name of what is called."""
    return last_name(node.func)


def last_name(node: ast.expr) -> str:
    """The last part of a dotted name, empty for anything else."""
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def keyword(node: ast.Call, name: str) -> ast.expr | None:
    """The value of a keyword argument."""
    return next((each.value for each in node.keywords if each.arg == name), None)


def is_number(node: ast.expr | None) -> bool:
    """Whether an expression is a number that is written out."""
    return isinstance(node, ast.Constant) and isinstance(node.value, int) and not isinstance(node.value, bool)


def is_public_call(node: ast.Call) -> bool:
    """Whether a call gives data that everybody has."""
    return called_name(node).startswith(PUBLIC_MAKERS)


def parts(node: ast.AST) -> tuple[ast.AST, ...]:
    """A node and all that are inside of it, listed once: every rule asks again for the parts of the same nodes."""
    known: tuple[ast.AST, ...] | None = node.__dict__.get("_parts")
    if known is None:
        known = node.__dict__["_parts"] = tuple(ast.walk(node))
    return known


def names_in(*nodes: ast.AST) -> set[str]:
    """The names that nodes mention."""
    return {part.id for node in nodes for part in parts(node) if isinstance(part, ast.Name)}


def calls_in(node: ast.AST) -> list[ast.Call]:
    """The calls that a node makes, those inside of calls included."""
    return [part for part in parts(node) if isinstance(part, ast.Call)]


def uses_library(tree: ast.Module) -> bool:
    """Whether a file imports this library."""
    for node in parts(tree):
        if isinstance(node, ast.Import) and any(each.name.split(".")[0] == "consenso" for each in node.names):
            return True
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "consenso":
            return True
    return False


def scopes(tree: ast.Module) -> Iterator[list[ast.stmt]]:
    """The bodies of the module and of its functions, each a scope of its own."""
    yield tree.body
    for node in parts(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.body


@dataclass
class Flow:
    """Tags of names within one scope. `of_call` says what a call makes, `at_call` is called with every call."""

    of_call: Callable[[ast.Call, Flow], Tags]
    at_call: Callable[[ast.Call, Flow], None]
    names: dict[str, Tags] = field(default_factory=dict)
    public: set[str] = field(default_factory=set)

    def tags(self, node: ast.expr) -> Tags:
        """All tags of what an expression is made from."""
        found: Tags = NONE
        for part in parts(node):
            if isinstance(part, ast.Name):
                found |= self.names.get(part.id, NONE)
            elif isinstance(part, ast.Call):
                found |= self.of_call(part, self)
        return found

    def is_data(self, node: ast.expr) -> bool:
        """Whether an expression mentions data that are not known to be public."""
        return any(self._is_private(name) for name in names_in(node))

    def _is_private(self, name: str) -> bool:
        if name in self.public or "public" in name.lower():
            return False
        return name in DATA_NAMES or "data" in self.names.get(name, NONE)

    def run(self, body: list[ast.stmt]) -> None:
        """Follow the statements of a scope in their order; functions inside are scopes of their own."""
        for statement in body:
            self._statement(statement)

    def _statement(self, node: ast.stmt) -> None:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            return
        for call in _own_calls(node):
            self.at_call(call, self)
        if isinstance(node, ast.Assign):
            for target in node.targets:
                self._assign(target, node.value)
        elif isinstance(node, ast.AnnAssign) and node.value is not None:
            self._assign(node.target, node.value)
        elif isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
            self.names[node.target.id] = self.names.get(node.target.id, NONE) | self.tags(node.value)
        elif isinstance(node, ast.For | ast.AsyncFor):
            self._assign(node.target, node.iter)
        elif isinstance(node, ast.With | ast.AsyncWith):
            for item in node.items:
                if item.optional_vars is not None:
                    self._assign(item.optional_vars, item.context_expr)
        for inner in ("body", "orelse", "finalbody"):
            self.run(getattr(node, inner, []))
        for handler in getattr(node, "handlers", []):
            self.run(handler.body)

    def _assign(self, target: ast.expr, value: ast.expr) -> None:
        tags = self.tags(value) | (frozenset(("data",)) if self.is_data(value) else NONE)
        public = isinstance(value, ast.Call) and is_public_call(value)
        # What is computed from public data only stays public.
        public = public or (bool(names_in(value) & self.public) and not self.is_data(value))
        for name in names_in(target):
            self.names[name] = tags
            if public:
                self.public.add(name)
            else:
                self.public.discard(name)


def _own_calls(node: ast.stmt) -> Iterator[ast.Call]:
    """The calls of a statement that are not in statements inside of it."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.stmt | ast.ExceptHandler):
            continue
        yield from calls_in(child)
