"""Figures of private data that are printed, logged or written."""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Iterator
from pathlib import PurePath
from typing import Any

from consenso.lint.flow import ESTIMATOR, NONE, Flow, Tags, called_name, calls_in, last_name, names_in, parts, scopes
from consenso.lint.notice import Rule, RuleExample
from consenso.lint.toml import line_of

METRICS = frozenset(
    (
        *("score", "accuracy_score", "log_loss", "mean_squared_error", "mean_absolute_error", "roc_auc_score"),
        *("f1_score", "r2_score", "confusion_matrix", "classification_report", "objective", "balanced_accuracy_score"),
    )
)
SINKS = frozenset(("print", "echo", "write", "writerow", "dump", "dumps", "to_csv", "to_json", "savetxt", "write_text"))
LOGS = frozenset(("debug", "info", "warning", "error", "critical", "log"))
ADVICE = "use a public test file, or release it through the releaser"


def check(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Metrics on data that a private estimator was fitted on, or on another part of the same table."""
    found: dict[int, str] = {}
    for body in scopes(tree):
        private = _find_fitted(body)

        def of_call(node: ast.Call, flow: Flow, private: frozenset[str] = private) -> Tags:
            if called_name(node) not in METRICS:
                return NONE
            arguments = [*node.args, *(each.value for each in node.keywords)]
            return frozenset(("metric",)) if names_in(*arguments) & private - flow.public else NONE

        def at_call(node: ast.Call, flow: Flow) -> None:
            logs = (
                called_name(node) in LOGS
                and isinstance(node.func, ast.Attribute)
                and "log" in last_name(node.func.value)
            )
            if called_name(node) not in SINKS and not logs:
                return
            if any("metric" in flow.tags(each) for each in [*node.args, *(each.value for each in node.keywords)]):
                found[node.lineno] = f"a figure that was computed on private data is shown as it is; {ADVICE}."

        Flow(of_call, at_call).run(body)
    yield from found.items()


def _find_fitted(body: list[ast.stmt]) -> frozenset[str]:
    """Names of data that private estimators are fitted on, with the other parts of a table that was split."""
    private: set[str] = set()
    estimators: set[str] = set()
    splits: list[tuple[set[str], set[str]]] = []
    public: set[str] = set()
    for node in (part for statement in body for part in parts(statement)):
        if isinstance(node, ast.Assign):
            made = names_in(*node.targets)
            calls = calls_in(node.value)
            used = names_in(node.value)
            if any(called_name(each).startswith(ESTIMATOR) for each in calls):
                estimators |= made
            if any(called_name(each).startswith(("load_", "fetch_", "make_")) for each in calls) or used & public:
                public |= made
            if any(called_name(each) == "train_test_split" for each in calls):
                splits.append((made, used))
    for node in (part for statement in body for part in parts(statement)):
        if isinstance(node, ast.Call) and called_name(node) == "fit" and isinstance(node.func, ast.Attribute):
            owner = node.func.value
            direct = isinstance(owner, ast.Call) and called_name(owner).startswith(ESTIMATOR)
            if direct or last_name(owner) in estimators:
                private |= names_in(*node.args)
    for made, used in splits:
        if made & private:
            private |= made | (used - {"train_test_split"})
    return frozenset(name for name in private - public if "public" not in name.lower())


def check_study(text: str) -> Iterator[tuple[int, str]]:
    """A public test file that is the private table."""
    data: Any = tomllib.loads(text).get("data", {})
    if not isinstance(data, dict) or not isinstance(data.get("test"), str):
        return
    tables = data.get("tables", {})
    private = [data.get("table"), *(tables.values() if isinstance(tables, dict) else [])]
    if any(isinstance(each, str) and PurePath(each) == PurePath(data["test"]) for each in private):
        yield (
            line_of(text, "test", section="data"),
            f"metrics of a run are written for everybody, and this test file is a private table; {ADVICE}.",
        )


RULE = Rule(
    name="private-metric",
    title="A metric on private data, written out",
    why="An accuracy or a loss on private data is a function of every record. Printing it, logging it or writing it to "
    "a file releases it without noise. A held-out part of the private table is as private as the rest.",
    python=check,
    toml=check_study,
    examples=(
        RuleExample(
            language="python",
            catches="""from consenso import PrivateLogisticRegression
from sklearn.model_selection import train_test_split

X_train, X_test, y_train, y_test = train_test_split(X, y)
model = PrivateLogisticRegression(epsilon=1.0, delta=1e-5, row_bound=1.0)
model.fit(X_train, y_train)
print("accuracy", model.score(X_test, y_test))
""",
            line=7,
            leaves="""from consenso import PrivateLogisticRegression
from consenso.datasets import load_adult

adult = load_adult()
model = PrivateLogisticRegression(epsilon=1.0, delta=1e-5, row_bound=1.0)
model.fit(X, y)
print("accuracy on Adult", model.score(adult.X_test, adult.y_test))
""",
        ),
        RuleExample(
            language="toml",
            catches="""[data]
table = "patients.csv"
test = "patients.csv"
""",
            line=3,
            leaves="""[data]
table = "patients.csv"
test = "published-sample.csv"
""",
        ),
    ),
)
