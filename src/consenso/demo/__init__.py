"""What `consenso demo` does: studies in all settings, the numbers beside each other, a page to keep."""

from __future__ import annotations

from consenso.demo.page import write
from consenso.demo.table import show
from consenso.demo.training import Outcome, Trained, train

__all__ = ["Outcome", "Trained", "show", "train", "write"]
