"""Model files: coefficients, classes, feature map, card and versions; safe to load, and to hand to other programs."""

from __future__ import annotations

from consenso.models.file import load_model, save_model
from consenso.models.model import Model, Scored

__all__ = ["Model", "Scored", "load_model", "save_model"]
