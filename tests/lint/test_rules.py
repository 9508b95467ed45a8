"""Every rule catches its examples at the line that it names, and leaves the others alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from consenso.errors import InputError
from consenso.lint import RULES, lint, lint_text
from consenso.lint.page import page

ROOT = Path(__file__).parents[2]
EXAMPLES = [
    pytest.param(rule, example, id=f"{rule.name}-{number}")
    for rule in RULES
    for number, example in enumerate(rule.examples)
]


def name_of(example) -> Path:
    return Path("example.py" if example.language == "python" else "example.toml")


@pytest.mark.parametrize(("rule", "example"), EXAMPLES)
def test_a_rule_catches_its_example(rule, example) -> None:
    (notice,) = lint_text(example.catches, name_of(example))
    assert (notice.rule, notice.line) == (rule.name, example.line)
    assert notice.message.endswith(".")


@pytest.mark.parametrize(("rule", "example"), EXAMPLES)
def test_a_rule_leaves_the_other_alone(rule, example) -> None:
    assert lint_text(example.leaves, name_of(example)) == []


@pytest.mark.parametrize(("rule", "example"), EXAMPLES)
def test_a_reason_allows_a_finding_and_no_reason_does_not(rule, example) -> None:
    lines = example.catches.splitlines()
    for place in {example.line - 1, max(0, example.line - 2)}:
        allowed = [
            line + f"  # consenso: allow {rule.name} published data" * (n == place) for n, line in enumerate(lines)
        ]
        assert lint_text("\n".join(allowed), name_of(example)) == []
        bare = [line + f"  # consenso: allow {rule.name}" * (n == place) for n, line in enumerate(lines)]
        found = {notice.rule for notice in lint_text("\n".join(bare), name_of(example))}
        assert found == {rule.name, "unexplained-allowance"}


def test_code_that_does_not_use_the_library_is_not_its_business() -> None:
    text = "from sklearn.linear_model import Ridge\nbound = X.max()\nPrivateRidge(row_bound=bound).fit(X, y)\n"
    assert lint_text(text, Path("other.py")) == []


CAUGHT = {
    "a pipeline": (
        "data-bound",
        "from consenso import PrivateRidge\n"
        "model = make_pipeline(StandardScaler(), PrivateRidge(epsilon=1, delta=1e-5, row_bound=1, target_bound=1))\n",
        2,
    ),
    "standardizing by hand": (
        "data-bound",
        "from consenso import PrivateRidge\n"
        "def train(X, y):\n"
        "    X = (X - X.mean(axis=0)) / X.std(axis=0)\n"
        "    return PrivateRidge(epsilon=1, delta=1e-5, row_bound=3, target_bound=1).fit(X, y)\n",
        4,
    ),
    "shards of scaled rows": (
        "data-bound",
        "from consenso.shards import Shards\n"
        "scaler = StandardScaler().fit(X)\n"
        "shards = Shards.from_table(problem, scaler.transform(X), y, owners)\n",
        3,
    ),
    "a target bound": (
        "data-bound",
        "import numpy as np\nfrom consenso import PrivateRidge\n"
        "PrivateRidge(epsilon=1, delta=1e-5, row_bound=1.0, target_bound=np.abs(y).max())\n",
        3,
    ),
    "a seeded plan that is charged": (
        "fixed-seed",
        "from consenso.planning.plan import plan\n"
        "made = plan(problem, algorithm, rounds=5, noise=noise, sampler=Seeded(1))\n"
        "run(made, shards, charge=Charge(ledger))\n",
        2,
    ),
    "a logged loss": (
        "private-metric",
        "from consenso import PrivateLogisticRegression\n"
        "model = PrivateLogisticRegression(epsilon=1, delta=1e-5, row_bound=1.0)\n"
        "model.fit(rows, labels)\n"
        "loss = log_loss(labels, model.predict_proba(rows))\n"
        "logger.info('loss %s', loss)\n",
        5,
    ),
    "a metric in a file": (
        "private-metric",
        "import json\nfrom consenso import PrivateRidge\n"
        "model = PrivateRidge(epsilon=1, delta=1e-5, row_bound=1, target_bound=1).fit(X, y)\n"
        "json.dump({'r2': model.score(X, y)}, open('out.json', 'w'))\n",
        4,
    ),
    "cross validation": (
        "free-tuning",
        "from consenso import PrivateRidge\n"
        "cross_val_score(PrivateRidge(epsilon=1, delta=1e-5, row_bound=1, target_bound=1), X, y)\n",
        2,
    ),
    "the best round": (
        "best-on-test",
        "import numpy as np\nfrom consenso.engine.run import run\n"
        "def best(models, X_test, y_test):\n"
        "    errors = []\n"
        "    for model in models:\n"
        "        value = error(model, X_test, y_test)\n"
        "        errors.append(value)\n"
        "    return models[np.argmin(errors)]\n",
        8,
    ),
    "a draft whose mark was removed": (
        "data-bound",
        "# DRAFT, NOT PUBLIC: the ranges below were read from a private file.\n[[columns]]\nname = 'age'\n",
        1,
    ),
    "one of several tables": (
        "private-metric",
        '[data]\ntest = "b.csv"\n\n[data.tables]\nnorth = "a.csv"\nsouth = "b.csv"\n',
        2,
    ),
}


@pytest.mark.parametrize("case", CAUGHT)
def test_more_that_is_caught(case) -> None:
    rule, text, line = CAUGHT[case]
    name = Path("x.toml" if case in ("a draft whose mark was removed", "one of several tables") else "x.py")
    assert [(notice.rule, notice.line) for notice in lint_text(text, name)] == [(rule, line)]


LEFT_ALONE = {
    "a public data set": (
        "from consenso import PrivateLogisticRegression\nfrom sklearn.datasets import load_breast_cancer\n"
        "X, y = load_breast_cancer(return_X_y=True)\n"
        "model = PrivateLogisticRegression(epsilon=1, delta=1e-5, row_bound=1.0, random_state=0).fit(X, y)\n"
        "print(model.score(X, y))\n"
    ),
    "a number of features": (
        "from consenso import PrivateRidge\nimport math\n"
        "PrivateRidge(epsilon=1, delta=1e-5, row_bound=math.sqrt(14), target_bound=max(1.0, 2.0))\n"
    ),
    "a safe sampler": (
        "from consenso.planning.plan import plan\n"
        "made = plan(problem, algorithm, rounds=5, noise=noise, sampler=Safe())\n"
        "run(made, shards, charge=Charge(ledger))\n"
    ),
    "a search that is charged": (
        "from consenso import PrivateRidge\n"
        "cross_val_score(PrivateRidge(epsilon=1, delta=1e-5, row_bound=1, target_bound=1, ledger=book), X, y)\n"
    ),
    "predictions": (
        "from consenso import PrivateRidge\n"
        "model = PrivateRidge(epsilon=1, delta=1e-5, row_bound=1, target_bound=1).fit(X, y)\n"
        "print(model.coef_)\n"
    ),
}


@pytest.mark.parametrize("case", LEFT_ALONE)
def test_more_that_is_left_alone(case) -> None:
    assert lint_text(LEFT_ALONE[case], Path("x.py")) == []


@pytest.mark.parametrize(("name", "text"), [("x.py", "def :\n"), ("x.toml", "a = \n")])
def test_files_that_cannot_be_parsed_are_bad_input(name: str, text: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(InputError, match=name):
        lint([tmp_path])


def test_a_path_that_is_not_there() -> None:
    with pytest.raises(InputError, match="check the path"):
        lint([Path("nowhere.py")])


def test_folders_are_read_without_environments(tmp_path: Path) -> None:
    caught = RULES[0].examples[0].catches
    for folder in ("code", ".venv/lib"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "train.py").write_text(caught)
    assert [notice.path for notice in lint([tmp_path])] == [tmp_path / "code" / "train.py"]


def test_the_page_is_that_of_the_rules() -> None:
    assert (ROOT / "docs" / "lint.md").read_text(encoding="utf-8") == page()
