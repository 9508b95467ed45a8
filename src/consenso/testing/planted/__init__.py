"""Planted faults: ways to be wrong about privacy, and what catches each of them.

`consenso audit --self-test` plants them one by one. A law, an attack or a refusal that lets its fault pass is broken
itself.
"""

from __future__ import annotations

from consenso.testing.planted.suite import FAULTS, Caught, Fault, catch, markdown

__all__ = ["FAULTS", "Caught", "Fault", "catch", "markdown"]
