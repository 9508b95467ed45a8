"""Scalers and bounds that were read from the data."""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Iterator

from consenso.conventions import GIVEN_BY, LEARNERS
from consenso.lint.flow import ESTIMATOR, NONE, Flow, Tags, called_name, keyword, scopes
from consenso.lint.notice import Rule, RuleExample
from consenso.lint.toml import line_of

BOUNDS = ("row_bound", "target_bound", "row_bound_1", "column_bounds", "clip", "radius", "low", "high")
MEASURES = frozenset(
    (
        "max",
        "min",
        "amax",
        "amin",
        "nanmax",
        "nanmin",
        "mean",
        "std",
        "var",
        "median",
        "quantile",
        "percentile",
        "ptp",
        "norm",
    )
)
INTO = ("from_parties", "from_table", "build")
ADVICE = "use numbers that are known without the data, or buy them with budget"
DRAFT = "DRAFT, NOT PUBLIC"


def _of_call(node: ast.Call, flow: Flow) -> Tags:
    name = called_name(node)
    if name in LEARNERS:
        return NONE if _is_told(node, name) else frozenset(("learner",))
    if name.startswith(ESTIMATOR):
        return frozenset(("private",))
    operands = [*node.args, *([node.func.value] if isinstance(node.func, ast.Attribute) else [])]
    if name in MEASURES and not _within_records(node) and any(flow.is_data(operand) for operand in operands):
        return frozenset(("measured",))
    transforms = name in ("transform", "fit_transform") and isinstance(node.func, ast.Attribute)
    if transforms and "learner" in flow.tags(node.func) and any(flow.is_data(each) for each in node.args):
        return frozenset(("measured",))
    return NONE


def _is_told(node: ast.Call, name: str) -> bool:
    """Whether a transformer was given what it would learn from data: a constant that fills in, categories."""
    key, public = GIVEN_BY.get(name, ("", None))
    value = keyword(node, key)
    if value is None or (isinstance(value, ast.Constant) and value.value in ("auto", None)):
        return False
    return public is None or (isinstance(value, ast.Constant) and value.value == public)


def _within_records(node: ast.Call) -> bool:
    """Whether a call works on each record by itself, or compares numbers: max(a, b), or a norm along the features."""
    axis = keyword(node, "axis")
    if isinstance(axis, ast.UnaryOp) and isinstance(axis.op, ast.USub):
        return True
    if isinstance(axis, ast.Constant) and axis.value == 1:
        return True
    return isinstance(node.func, ast.Name) and len(node.args) > 1


def check(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Measured numbers that become bounds, and data that were scaled by them."""
    found: dict[int, str] = {}

    def at_call(node: ast.Call, flow: Flow) -> None:
        for name in BOUNDS:
            value = keyword(node, name)
            if value is not None and "measured" in flow.tags(value):
                found[node.lineno] = f"{name} was measured on the data"
        fits = (
            called_name(node) == "fit"
            and isinstance(node.func, ast.Attribute)
            and "private" in flow.tags(node.func.value)
        )
        scaled = [each for each in node.args if "measured" in flow.tags(each)]
        if scaled and (fits or called_name(node) in INTO):
            found[node.lineno] = "the data were scaled by numbers that were measured on them"
        if called_name(node) in ("make_pipeline", "Pipeline"):
            inside = flow.tags(node)
            if {"learner", "private"} <= inside:
                found[node.lineno] = "the pipeline fits a scaler on the data before the private estimator sees them"

    for body in scopes(tree):
        Flow(_of_call, at_call).run(body)
    for line, message in found.items():
        yield line, f"{message}, which no guarantee covers; {ADVICE}."


def check_schema(text: str) -> Iterator[tuple[int, str]]:
    """Schemas whose numbers come from a file."""
    schema = tomllib.loads(text)
    if schema.get("draft") is True:
        yield line_of(text, "draft"), f"the ranges of a draft were read from a private file; {ADVICE}."
        return
    for number, line in enumerate(text.splitlines(), start=1):
        if line.lstrip().startswith("#") and DRAFT in line:
            yield number, f"the mark of a draft is gone and its warning is still here: check every range; {ADVICE}."


RULE = Rule(
    name="data-bound",
    title="A scaler or a bound from the data",
    why="A maximum, a mean or a standard deviation of private data is a release without noise, and noise that is "
    "scaled with it tells it again. Bounds are public: from a code book, a law or common sense. Rows are scaled to "
    "row_bound by the library.",
    python=check,
    toml=check_schema,
    examples=(
        RuleExample(
            language="python",
            catches="""import numpy as np
from consenso import PrivateLogisticRegression

bound = np.linalg.norm(X, axis=1).max()
PrivateLogisticRegression(epsilon=1.0, delta=1e-5, row_bound=bound).fit(X, y)
""",
            line=5,
            leaves="""import numpy as np
from consenso import PrivateLogisticRegression

bound = np.linalg.norm([120.0, 300.0])  # the largest age and weight that the form accepts
PrivateLogisticRegression(epsilon=1.0, delta=1e-5, row_bound=bound).fit(X, y)
""",
        ),
        RuleExample(
            language="python",
            catches="""from sklearn.preprocessing import StandardScaler
from consenso import PrivateRidge

scaled = StandardScaler().fit_transform(X)
PrivateRidge(epsilon=1.0, delta=1e-5, row_bound=3.0, target_bound=1.0).fit(scaled, y)
""",
            line=5,
            leaves="""from sklearn.preprocessing import StandardScaler
from consenso import PrivateRidge

scaler = StandardScaler().fit(X_public)
PrivateRidge(epsilon=1.0, delta=1e-5, row_bound=3.0, target_bound=1.0).fit(scaler.transform(X_public), y_public)
""",
        ),
        RuleExample(
            language="python",
            catches="""from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from consenso import PrivateRidge

make_pipeline(SimpleImputer(), PrivateRidge(epsilon=1.0, row_bound=3.0, target_bound=1.0)).fit(X, y)
""",
            line=5,
            leaves="""from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from consenso import PrivateRidge

filled = SimpleImputer(strategy="constant", fill_value=0.0)
encoded = OneHotEncoder(categories=[["north", "south"]], handle_unknown="ignore")
make_pipeline(filled, encoded, PrivateRidge(epsilon=1.0, row_bound=3.0, target_bound=1.0)).fit(X, y)
""",
        ),
        RuleExample(
            language="toml",
            catches="""draft = true

[[columns]]
name = "age"
kind = "numeric"
low = 17.0
high = 90.0
""",
            line=1,
            leaves="""[[columns]]
name = "age"
kind = "numeric"
low = 0.0
high = 120.0
""",
        ),
    ),
)
