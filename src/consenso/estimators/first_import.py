"""Import scikit-learn without scipy.stats, which takes longer than all the rest of a first fit.

scikit-learn 1.9 imports it for one function that no estimator here calls. While scikit-learn is imported, a module
that is empty until somebody reads from it stands in its place; afterwards nothing is left of that, and scipy.stats is
imported when it is first needed, as SciPy's submodules are.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any


class _Postponed(ModuleType):
    """Imports the module that it stands for when something is read from it."""

    def __getattr__(self, name: str) -> Any:
        if sys.modules.get(self.__name__) is self:
            del sys.modules[self.__name__]
        return getattr(importlib.import_module(self.__name__), name)


@contextmanager
def postpone(name: str) -> Iterator[None]:
    """Within this, importing a module that is not loaded yet costs nothing before it is used."""
    if name in sys.modules:
        yield
        return
    placeholder = sys.modules[name] = _Postponed(name)
    try:
        yield
    finally:
        if sys.modules.get(name) is placeholder:
            del sys.modules[name]


if "sklearn" not in sys.modules:
    with postpone("scipy.stats"):
        import sklearn.base  # noqa: F401
