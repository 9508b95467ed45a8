"""The page of the rules, made from the rules themselves."""

from __future__ import annotations

from consenso.lint.rules import RULES

INTRODUCTION = """# What `consenso lint` warns of

The laws and the audit see what leaves a run. They do not see what happened to the data before it, nor what is done with
its results. `consenso lint PATH` reads study and schema files (TOML) and Python files that import this library, and
warns of the mistakes that the papers' own code made. It reads text and runs nothing.

```console
$ consenso lint my_project/
$ consenso lint study.toml --json
```

Exit codes: 0 nothing found, 1 something found, 2 bad input. A finding that is all right is allowed by a comment that
says why, in its line or in the line above:

```python
model.fit(X, y)  # consenso: allow private-metric the table is published
```

An allowance without a reason is a finding itself. The rules follow names within one function; what they cannot follow
they leave alone, so silence proves nothing. This page is made by `consenso lint --page`.
"""


def page() -> str:
    """The page as Markdown."""
    parts = [INTRODUCTION]
    for rule in RULES:
        parts.append(f"## {rule.name}: {rule.title}\n\n{rule.why}\n")
        for example in rule.examples:
            parts.append(f"Caught, in line {example.line}:\n\n```{example.language}\n{example.catches}```\n")
            parts.append(f"Left alone:\n\n```{example.language}\n{example.leaves}```\n")
    return "\n".join(parts)
