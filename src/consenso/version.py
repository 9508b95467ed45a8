"""The version of the package, and those of others; alone so that everything may import it."""

from __future__ import annotations

from functools import cache

__version__ = "0.2.0"


@cache
def find_version(package: str) -> str:
    """The version of an installed package: kept, since files are searched for it, three milliseconds each time."""
    import importlib.metadata

    return importlib.metadata.version(package)
