"""Private ADMM: convex models on sensitive data, with guarantees that are true for every observer."""

from __future__ import annotations

__version__ = "0.1.0"
