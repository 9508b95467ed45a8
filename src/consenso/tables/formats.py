"""The choice of a reader by the name of a file.

A format is one file: a module of this room, or one that another distribution names in the entry point
`consenso.formats`, with `READERS`, which maps ends of names to functions from a path to a `Table`.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Callable
from functools import cache
from pathlib import Path

from consenso import tables
from consenso.errors import InputError
from consenso.registry import load_entries
from consenso.tables.table import Table

Reader = Callable[..., Table]


def read_table(path: str | Path, *, features: int | None = None) -> Table:
    """Read a table by the end of its name, such as .csv, .tsv, .parquet, .npz or .libsvm; text files also as .gz.

    `features` is the public number of features of a libsvm file, where a column that is always zero leaves no trace.
    """
    path = Path(path)
    known = readers()
    ends = [end for end in known if path.name.endswith(end)]
    if not ends:
        told = ", ".join(end for end in known if not end.endswith(".gz"))
        raise InputError(f"{path}: a table is a file of one of the kinds {told}; rename it after its format.")
    read = known[max(ends, key=len)]
    return read(path, features=features) if "features" in inspect.signature(read).parameters else read(path)


@cache
def readers() -> dict[str, Reader]:
    """The reader of every end of a name."""
    inner = pkgutil.iter_modules(tables.__path__)
    modules = [importlib.import_module(f"{tables.__name__}.{each.name}") for each in inner]
    modules += [module for _, module in load_entries("formats")]
    found: dict[str, Reader] = {}
    for module in modules:
        for end, reader in getattr(module, "READERS", {}).items():
            if found.setdefault(end, reader) is not reader:
                raise InputError(f"{end}: {module.__name__} and another module read such files; uninstall one.")
    return found
