"""The budget explorer: one page on loopback that plans a study anew while its sliders move, and watches a run."""

from __future__ import annotations

from consenso.explorer.app import application
from consenso.explorer.server import serve

__all__ = ["application", "serve"]
