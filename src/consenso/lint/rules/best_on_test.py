"""The best of many models, chosen by looking."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from consenso.lint.flow import called_name, calls_in, last_name, names_in, parts, scopes
from consenso.lint.notice import Rule, RuleExample

BEST = ("min", "max", "argmin", "argmax", "amin", "amax", "nanmin", "nanmax", "nanargmin", "nanargmax")
ADVICE = "release the last model or an average, or choose on data that are charged"


def check(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Figures on test data that are collected in a loop and of which the best is kept."""
    for body in scopes(tree):
        collected: set[str] = set()
        for node in _statements(body):
            if isinstance(node, ast.For | ast.While):
                collected |= _find_collected(node)
                yield from _find_kept_best(node)
            for call in _calls(node):
                if called_name(call) in BEST and names_in(*call.args) & collected:
                    yield (
                        call.lineno,
                        f"of the models of a run the one is kept that does best on test data; {ADVICE}.",
                    )


def _statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            continue
        yield node
        for inner in ("body", "orelse", "finalbody"):
            if not isinstance(node, ast.For | ast.While):
                yield from _statements(getattr(node, inner, []))


def _calls(node: ast.stmt) -> Iterator[ast.Call]:
    """Calls of simple statements; loops have been looked at."""
    if isinstance(node, ast.Assign | ast.AnnAssign | ast.Expr | ast.Return | ast.AugAssign):
        yield from calls_in(node)


def _on_test(node: ast.expr) -> bool:
    """Whether an expression calls something with test data."""
    arguments = (each for call in calls_in(node) for each in [*call.args, *(named.value for named in call.keywords)])
    return any("test" in name.lower() for name in names_in(*arguments))


def _figures(loop: ast.For | ast.While) -> set[str]:
    """Names that hold figures on test data inside a loop."""
    return {
        target.id
        for node in parts(loop)
        if isinstance(node, ast.Assign) and _on_test(node.value)
        for target in node.targets
        if isinstance(target, ast.Name)
    }


def _find_collected(loop: ast.For | ast.While) -> set[str]:
    """Lists to which a loop appends figures on test data."""
    figures, lists = _figures(loop), set()
    for call in calls_in(loop):
        if called_name(call) != "append" or not isinstance(call.func, ast.Attribute) or not call.args:
            continue
        if _on_test(call.args[0]) or names_in(call.args[0]) & figures:
            lists.add(last_name(call.func.value))
    return lists


def _find_kept_best(loop: ast.For | ast.While) -> Iterator[tuple[int, str]]:
    """Inside a loop: if figure > best: best = figure."""
    figures = _figures(loop)
    for node in parts(loop):
        if not isinstance(node, ast.If) or not isinstance(node.test, ast.Compare):
            continue
        compared = names_in(node.test)
        kept = names_in(*(target for inner in node.body if isinstance(inner, ast.Assign) for target in inner.targets))
        if compared & figures and compared & kept:
            yield node.lineno, f"a model is kept because it does best on test data so far; {ADVICE}."


RULE = Rule(
    name="best-on-test",
    title="The best iterate, chosen on test data",
    why="The best of many noisy models is not a model that the guarantee speaks of, and its figure is not one that "
    "anybody will see again. If the test data are private, the choice is also a release without noise.",
    python=check,
    examples=(
        RuleExample(
            language="python",
            catches="""from consenso.engine.run import run

scores = []
for rounds in range(1, 100):
    model = run(plans[rounds], shards).model
    scores.append(error(model, X_test, y_test))
print(min(scores))
""",
            line=7,
            leaves="""from consenso.engine.run import run

model = run(plan, shards).model
print(error(model, X_test, y_test))
""",
        ),
        RuleExample(
            language="python",
            catches="""from consenso import PrivateRidge

best = 0.0
for alpha in (0.1, 1.0, 10.0):
    model = PrivateRidge(epsilon=1.0, delta=1e-5, alpha=alpha, row_bound=1.0, target_bound=1.0).fit(X, y)
    score = model.score(X_test, y_test)
    if score > best:
        best, chosen = score, model
""",
            line=7,
            leaves="""from consenso import PrivateRidge

table = {}
for alpha in (0.1, 1.0, 10.0):
    model = PrivateRidge(epsilon=1.0, delta=1e-5, alpha=alpha, row_bound=1.0, target_bound=1.0).fit(X, y)
    table[alpha] = model.score(X_test, y_test)
""",
        ),
    ),
)
