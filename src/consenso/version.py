"""The version of the package, alone so that everything may import it."""

from __future__ import annotations

__version__ = "0.2.0"
