"""Import scikit-learn without scipy.stats, which takes longer than all the rest of a first fit, and without numpy.f2py.

scikit-learn 1.9 imports the first for one function that no estimator here calls, SciPy the second by asking NumPy for
all of its names. While scikit-learn is imported, modules that are empty until somebody reads from them stand in their
places; afterwards nothing is left of that, and both are imported when they are first needed, as submodules are.
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
    parent, _, short = name.rpartition(".")
    package = vars(importlib.import_module(parent))
    package[short] = placeholder
    try:
        yield
    finally:
        if sys.modules.get(name) is placeholder:
            del sys.modules[name]
        if package.get(short) is placeholder:
            del package[short]


if "sklearn" not in sys.modules:
    with postpone("scipy.stats"), postpone("numpy.f2py"):
        import sklearn.base  # noqa: F401
