"""What `consenso demo` does: studies in all settings, the numbers beside each other, a page to keep."""

from __future__ import annotations

from consenso.demo.page import write
from consenso.demo.table import markdown, show
from consenso.demo.training import DemoRun, Outcome, train

__all__ = ["DemoRun", "Outcome", "markdown", "show", "train", "write"]
