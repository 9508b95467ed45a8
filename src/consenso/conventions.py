"""What several rooms must say alike: units, adjacencies and deltas of guarantees, and what learns from data."""

from __future__ import annotations

from typing import Literal, get_args

# What is protected: one record, all records of one person, or all that a party holds.
Unit = Literal["record", "person", "party"]
# How neighbouring data sets differ: a unit is there or not, or is another one.
Adjacency = Literal["add-remove", "replace-one"]

# What a budget may be kept for.
PROTECTED: tuple[Unit, ...] = get_args(Unit)
# Units of runs that know nothing of people; see `Problem.units`.
UNITS: tuple[Unit, ...] = ("record", "party")
ADJACENCIES: tuple[Adjacency, ...] = get_args(Adjacency)

# The largest delta that is taken where none is stated.
LARGEST_DELTA = 1e-5


def default_delta(records: int | None = None) -> float:
    """min(1e-5, 0.1 / records): no single record is at risk of being published with a probability that matters.

    Where no number of records is public, delta may not depend on it, and is 1e-5.
    """
    return LARGEST_DELTA if records is None else min(LARGEST_DELTA, 0.1 / records)


#: Transformers of scikit-learn that learn numbers from what they are fitted on.
LEARNERS = frozenset(
    (
        *("StandardScaler", "MinMaxScaler", "MaxAbsScaler", "RobustScaler", "QuantileTransformer", "PowerTransformer"),
        *("PCA", "TruncatedSVD", "KBinsDiscretizer", "SimpleImputer", "KNNImputer", "IterativeImputer", "SelectKBest"),
        *("OneHotEncoder", "OrdinalEncoder", "TargetEncoder"),
    )
)
#: Those that may be given it instead: by which parameter, and by which value of it where not any value will do.
GIVEN_BY: dict[str, tuple[str, str | None]] = {
    "SimpleImputer": ("strategy", "constant"),
    "OneHotEncoder": ("categories", None),
    "OrdinalEncoder": ("categories", None),
}
