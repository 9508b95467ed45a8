"""The page of a run: self-contained HTML for people who decide, made from public files only."""

from __future__ import annotations

from consenso.report.page import report_html, write_report
from consenso.report.reading import RunFiles, read_run

__all__ = ["RunFiles", "read_run", "report_html", "write_report"]
