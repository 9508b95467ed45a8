"""A linter for what the laws and the audit cannot see: what is done to data before a run and with results after it."""

from __future__ import annotations

from consenso.lint.notice import Notice, Rule
from consenso.lint.reading import lint, lint_file, lint_text
from consenso.lint.rules import RULES

__all__ = ["RULES", "Notice", "Rule", "lint", "lint_file", "lint_text"]
