"""California housing: the median house value of a block group, from the census of 1990."""

from __future__ import annotations

import csv
import gzip
from pathlib import Path
from typing import Literal

import numpy as np

from consenso.datasets.description import Dataset, Description, File, Resource
from consenso.datasets.files import locate
from consenso.errors import InputError

#: Public ranges, stated without looking: the state's extent, the census caps for age (52), income (15) and value, and
#: counts for twice the 3,000 people that the Census Bureau allows a block group as a rule. What is beyond is clipped.
RANGES: dict[str, tuple[float, float]] = {
    "longitude": (-125, -114),
    "latitude": (32, 42),
    "housing_median_age": (0, 52),
    "total_rooms": (0, 12_000),
    "total_bedrooms": (0, 3_000),
    "population": (0, 6_000),
    "households": (0, 3_000),
    "median_income": (0, 15),
}
PROXIMITY = ("<1H OCEAN", "INLAND", "NEAR OCEAN", "NEAR BAY", "ISLAND")
VALUE = "median_house_value"
#: House values are given in units of this many dollars; the census cuts them at 500,001 dollars.
UNIT = 100_000
TARGET_BOUND = 500_001 / UNIT

DESCRIPTION = Description(
    name="california_housing",
    title="California housing: median house value of a block group",
    task="regression",
    rows=20_640,
    test_rows=0,
    features=13,
    licence="none stated (StatLib; Pace and Barry 1997); repository Apache-2.0",
    origin="https://github.com/ageron/handson-ml2, datasets/housing (from StatLib, with 207 bedroom counts removed)",
    notes="207 records have no total_bedrooms; 'public' puts them in the middle of the range, 'raw' leaves NaN.",
    resources=(
        Resource(
            forms=(
                File(
                    name="california_housing.csv.gz",
                    sha256="b2e79251d5497489c09db2cb6b7771e5cb0b1065198c2611c4f2f3c63403d30c",
                ),
                File(
                    name="california_housing.csv",
                    sha256="8a3727f4cf54ac1a327f69b1d5b4db54c5834ea81c6e4efc0d163300022a685e",
                    url=(
                        "https://raw.githubusercontent.com/ageron/handson-ml2/"
                        "aa555aa16b9d0af6c84e67c7757f3317d05acb12/datasets/housing/housing.csv"
                    ),
                ),
            )
        ),
    ),
)


def load_california_housing(
    folder: str | Path | None = None, *, preprocessing: Literal["public", "raw"] = "public"
) -> Dataset:
    """California housing: 8 numbers and 5 proximities to the ocean; y in units of 100,000 dollars, at most 5.00001.

    preprocessing: "public" maps each number to [0, 1] by a stated range; "raw" leaves the numbers as they are.
    """
    if preprocessing not in ("public", "raw"):
        raise InputError(f"load_california_housing(preprocessing={preprocessing!r}): choose 'public' or 'raw'.")
    path = locate(DESCRIPTION.resources[0], folder=folder)
    with gzip.open(path, "rt") if path.suffix == ".gz" else path.open() as lines:
        header, *records = csv.reader(lines)
    cells = np.asarray(records, dtype=np.str_)
    numbers = {
        name: np.where(cells[:, position] == "", "nan", cells[:, position]).astype(np.float64)
        for position, name in enumerate(header)
        if name != "ocean_proximity"
    }
    X = np.stack([numbers[name] for name in RANGES], axis=1)
    if preprocessing == "public":
        low, high = np.asarray(list(RANGES.values())).T
        X = (np.clip(X, low, high) - low) / (high - low)
        X[np.isnan(X)] = 0.5
    near = cells[:, header.index("ocean_proximity"), None] == np.asarray(PROXIMITY)[None, :]
    return Dataset(
        description=DESCRIPTION,
        X=np.concatenate([X, near.astype(np.float64)], axis=1),
        y=numbers[VALUE] / UNIT,
        names=(*RANGES, *(f"ocean_proximity={item}" for item in PROXIMITY)),
    )
