"""A model that leaves with noise that anybody can draw again."""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Iterator
from typing import Any

from consenso.lint.flow import ESTIMATOR, NONE, Flow, Tags, called_name, is_number, keyword, scopes
from consenso.lint.notice import Rule, RuleExample
from consenso.lint.toml import line_of

SAVES = ("save", "dump", "export", "to_onnx")
ADVICE = "leave the seed out, and the noise is drawn from the operating system"


def _of_call(node: ast.Call, flow: Flow) -> Tags:
    seeded = called_name(node) == "Seeded" and node.args and is_number(node.args[0])
    estimator = called_name(node).startswith(ESTIMATOR) and is_number(keyword(node, "random_state"))
    return frozenset((f"seeded:{node.lineno}",)) if seeded or estimator else NONE


def check(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Seeds of what is saved or charged."""
    found: dict[int, str] = {}

    def at_call(node: ast.Call, flow: Flow) -> None:
        charged = [value for name in ("charge", "ledger") if (value := keyword(node, name)) is not None]
        saves = called_name(node) in SAVES
        if not saves and not charged:
            return
        for tag in flow.tags(node):
            kind, _, line = tag.partition(":")
            if kind == "seeded":
                does = "saved" if saves else "charged to a ledger"
                found[int(line)] = f"the seed is written in the code, and what it made is {does} in line {node.lineno}"

    for body in scopes(tree):
        Flow(_of_call, at_call).run(body)
    for line, message in found.items():
        yield line, f"{message}; {ADVICE}."


def check_study(text: str) -> Iterator[tuple[int, str]]:
    """A seed beside private tables."""
    study: dict[str, Any] = tomllib.loads(text)
    data, privacy = study.get("data", {}), study.get("privacy", {})
    private = isinstance(data, dict) and ("table" in data or "tables" in data)
    if private and isinstance(privacy, dict) and "seed" in privacy:
        yield line_of(text, "seed", section="privacy"), f"a private table is learnt from with a written seed; {ADVICE}."


RULE = Rule(
    name="fixed-seed",
    title="A fixed seed in deployment",
    why="Whoever knows the seed subtracts the noise. A seed in code or in a study is known to whoever reads it. Seeds "
    "are for simulations: leave them out of whatever saves a model, charges a ledger or reads a private table.",
    python=check,
    toml=check_study,
    examples=(
        RuleExample(
            language="python",
            catches="""from consenso import PrivateLogisticRegression

model = PrivateLogisticRegression(epsilon=1.0, delta=1e-5, row_bound=1.0, random_state=0)
model.fit(X, y)
model.save("model.json")
""",
            line=3,
            leaves="""from consenso import PrivateLogisticRegression

simulated = PrivateLogisticRegression(epsilon=1.0, delta=1e-5, row_bound=1.0, random_state=0)
simulated.fit(X, y)
model = PrivateLogisticRegression(epsilon=1.0, delta=1e-5, row_bound=1.0)
model.fit(X, y)
model.save("model.json")
""",
        ),
        RuleExample(
            language="toml",
            catches="""[data]
table = "patients.csv"

[privacy]
epsilon = 1.0
delta = 1e-6
seed = 7
""",
            line=7,
            leaves="""[data]
dataset = "adult"

[privacy]
epsilon = 1.0
delta = 1e-6
seed = 7
""",
        ),
    ),
)
