"""Adult (census income), with the preprocessing of Huang and Gong and with one that uses public ranges only.

Reference: Z. Huang, Y. Gong, "Differentially private ADMM for convex distributed learning: improved accuracy via
multi-step approximation", 2020, arXiv:2005.07890: 45,222 complete records, 104 features, rows within the unit ball.
"""

from __future__ import annotations

import csv
import gzip
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from consenso.arrays import Array
from consenso.datasets.description import Dataset, Description, File, Resource
from consenso.datasets.files import locate
from consenso.errors import InputError

#: Public ranges of the numbers, from published descriptions of the set; the sampling weight gets a round figure.
RANGES: dict[str, tuple[float, float]] = {
    "age": (17, 90),
    "fnlwgt": (0, 1_500_000),
    "education-num": (1, 16),
    "capital-gain": (0, 99_999),
    "capital-loss": (0, 4_356),
    "hours-per-week": (1, 99),
}

#: The categories that the file adult.names lists.
CATEGORIES: dict[str, tuple[str, ...]] = {
    "workclass": (
        "Private", "Self-emp-not-inc", "Self-emp-inc", "Federal-gov", "Local-gov", "State-gov", "Without-pay",
        "Never-worked",
    ),
    "education": (
        "Bachelors", "Some-college", "11th", "HS-grad", "Prof-school", "Assoc-acdm", "Assoc-voc", "9th", "7th-8th",
        "12th", "Masters", "1st-4th", "10th", "Doctorate", "5th-6th", "Preschool",
    ),
    "marital-status": (
        "Married-civ-spouse", "Divorced", "Never-married", "Separated", "Widowed", "Married-spouse-absent",
        "Married-AF-spouse",
    ),
    "occupation": (
        "Tech-support", "Craft-repair", "Other-service", "Sales", "Exec-managerial", "Prof-specialty",
        "Handlers-cleaners", "Machine-op-inspct", "Adm-clerical", "Farming-fishing", "Transport-moving",
        "Priv-house-serv", "Protective-serv", "Armed-Forces",
    ),
    "relationship": ("Wife", "Own-child", "Husband", "Not-in-family", "Other-relative", "Unmarried"),
    "race": ("White", "Asian-Pac-Islander", "Amer-Indian-Eskimo", "Other", "Black"),
    "sex": ("Female", "Male"),
    "native-country": (
        "United-States", "Cambodia", "England", "Puerto-Rico", "Canada", "Germany", "Outlying-US(Guam-USVI-etc)",
        "India", "Japan", "Greece", "South", "China", "Cuba", "Iran", "Honduras", "Philippines", "Italy", "Poland",
        "Jamaica", "Vietnam", "Mexico", "Portugal", "Ireland", "France", "Dominican-Republic", "Laos", "Ecuador",
        "Taiwan", "Haiti", "Columbia", "Hungary", "Guatemala", "Nicaragua", "Scotland", "Thailand", "Yugoslavia",
        "El-Salvador", "Trinadad&Tobago", "Peru", "Hong", "Holand-Netherlands",
    ),
}  # fmt: skip

#: The columns of the file in order; the label follows.
COLUMNS = (
    "age", "workclass", "fnlwgt", "education", "education-num", "marital-status", "occupation", "relationship", "race",
    "sex", "capital-gain", "capital-loss", "hours-per-week", "native-country",
)  # fmt: skip

#: Who never worked has no occupation, so such a record is not complete: a fact of the questionnaire, not of the data.
IMPOSSIBLE = {"workclass": "Never-worked"}

Preprocessing = Literal["public", "paper"]

DESCRIPTION = Description(
    name="adult",
    title="Adult: income above 50,000 dollars, from the US census of 1994",
    task="binary",
    rows=30_162,
    test_rows=15_060,
    features=104,
    licence="CC BY 4.0 (UCI Machine Learning Repository), as far as known",
    origin="https://archive.ics.uci.edu/dataset/2/adult (B. Becker, R. Kohavi, 1996)",
    notes=(
        "Records with a missing value are left out: 45,222 of 48,842. preprocessing='paper' divides by maxima of the "
        "data and is not private; preprocessing='public' uses stated ranges."
    ),
    resources=(
        Resource(
            forms=(
                File(
                    name="adult.data.gz",
                    sha256="fb986d3609cdf068a1c234ed2695603b74c66c4be723467d9d69542024847442",
                ),
                File(
                    name="adult.data",
                    sha256="5b00264637dbfec36bdeaab5676b0b309ff9eb788d63554ca0a249491c86603d",
                    url="https://archive.ics.uci.edu/ml/machine-learning-databases/adult/adult.data",
                ),
            )
        ),
        Resource(
            forms=(
                File(
                    name="adult.test.gz",
                    sha256="74aa81a0e0880467a50de97be6ba8130df14a3ef8c0c3a14de2a9a997d068fbf",
                ),
                File(
                    name="adult.test",
                    sha256="a2a9044bc167a35b2361efbabec64e89d69ce82d9790d2980119aac5fd7e9c05",
                    url="https://archive.ics.uci.edu/ml/machine-learning-databases/adult/adult.test",
                ),
            )
        ),
    ),
)


def load_adult(
    folder: str | Path | None = None,
    *,
    preprocessing: Preprocessing = "public",
    split: bool = True,
    intercept: bool = False,
) -> Dataset:
    """Adult with one-hot categories, labels +1 for an income above 50,000, and rows of norm at most 1.

    preprocessing: "public" maps each number to [0, 1] by a stated range. "paper" divides each column by its largest
    value in the data, as the paper does: NOT PRIVATE, since one record can change every row.
    split: the standard training and test parts (30,162 and 15,060); otherwise all 45,222 records are in X.
    intercept: a constant column is added last, before the rows are scaled, so its entry is scaled with its row.
    """
    if preprocessing not in ("public", "paper"):
        raise InputError(
            f"load_adult(preprocessing={preprocessing!r}): choose 'public', or 'paper' which is not private."
        )
    parts = [_complete(locate(resource, folder=folder)) for resource in DESCRIPTION.resources]
    cells = np.concatenate(parts)
    blocks: list[Array] = []
    names: list[str] = []
    for position, name in enumerate(COLUMNS):
        if name in RANGES:
            blocks.append(cells[:, position].astype(np.float64)[:, None])
            names.append(name)
        else:
            categories = [item for item in CATEGORIES[name] if item != IMPOSSIBLE.get(name)]
            blocks.append((cells[:, position, None] == np.asarray(categories)[None, :]).astype(np.float64))
            names += [f"{name}={item}" for item in categories]
    X = np.concatenate(blocks, axis=1)
    for position, name in enumerate(names):
        if name in RANGES:
            X[:, position] = _scale(X[:, position], *(RANGES[name] if preprocessing == "public" else (0.0, None)))
    if intercept:
        X = np.concatenate([X, np.ones((X.shape[0], 1))], axis=1)
        names.append("(intercept)")
    X /= np.maximum(1.0, np.linalg.norm(X, axis=1, keepdims=True))
    y = np.where(np.strings.startswith(cells[:, -1], ">50K"), 1.0, -1.0)
    first = parts[0].shape[0]
    if not split:
        return Dataset(description=DESCRIPTION, X=X, y=y, names=tuple(names))
    return Dataset(
        description=DESCRIPTION, X=X[:first], y=y[:first], X_test=X[first:], y_test=y[first:], names=tuple(names)
    )


def _scale(values: Array, low: float, high: float | None) -> Array:
    """Map numbers by a public range; without an upper end the largest value of the data is taken."""
    top = float(values.max()) if high is None else high
    return (np.clip(values, low, top) - low) / (top - low)


def _complete(path: Path) -> NDArray[np.str_]:
    """The records without a missing value, as texts (rows, 15); the comment on top of the test file is left out."""
    with gzip.open(path, "rt") if path.suffix == ".gz" else path.open() as lines:
        records = [record for record in csv.reader(lines, skipinitialspace=True) if len(record) > len(COLUMNS)]
    cells = np.asarray(records, dtype=np.str_)
    complete: NDArray[np.str_] = cells[~(cells == "?").any(axis=1)]
    return complete
