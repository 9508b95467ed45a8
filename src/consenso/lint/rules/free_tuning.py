"""Many fits of which one is paid for."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from consenso.lint.flow import ESTIMATOR, NONE, Flow, Tags, called_name, keyword, scopes
from consenso.lint.notice import Rule, RuleExample

SEARCHES = frozenset(
    (
        *("GridSearchCV", "RandomizedSearchCV", "HalvingGridSearchCV", "HalvingRandomSearchCV"),
        *("cross_val_score", "cross_validate", "cross_val_predict", "validation_curve", "learning_curve"),
    )
)
ADVICE = "give the estimator ledger=, which charges each fit, or keep the defaults, which need no tuning"


def _of_call(node: ast.Call, flow: Flow) -> Tags:
    if called_name(node).startswith(ESTIMATOR) and keyword(node, "ledger") is None:
        return frozenset(("free",))
    return NONE


def check(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Searches over private estimators without a ledger."""
    found: dict[int, str] = {}

    def at_call(node: ast.Call, flow: Flow) -> None:
        if called_name(node) in SEARCHES and "free" in flow.tags(node):
            found[node.lineno] = f"{called_name(node)} fits many private models and pays for none of them; {ADVICE}."

    for body in scopes(tree):
        Flow(_of_call, at_call).run(body)
    yield from found.items()


RULE = Rule(
    name="free-tuning",
    title="Tuning without a charge",
    why="Every fit on private data spends budget, also those whose model is thrown away: the choice among them depends "
    "on the data. A search of twenty fits costs twenty fits.",
    python=check,
    examples=(
        RuleExample(
            language="python",
            catches="""from consenso import PrivateLogisticRegression
from sklearn.model_selection import GridSearchCV

model = PrivateLogisticRegression(epsilon=1.0, delta=1e-5, row_bound=1.0)
search = GridSearchCV(model, {"alpha": [0.1, 1.0, 10.0]}).fit(X, y)
""",
            line=5,
            leaves="""from consenso import PrivateLogisticRegression
from sklearn.model_selection import GridSearchCV

model = PrivateLogisticRegression(epsilon=0.1, delta=1e-6, row_bound=1.0, ledger="budget.db")
search = GridSearchCV(model, {"alpha": [0.1, 1.0, 10.0]}).fit(X, y)
""",
        ),
    ),
)
