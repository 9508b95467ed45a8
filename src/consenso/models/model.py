"""A trained model: coefficients, classes, the map from a table to features, and the privacy card of its training."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from consenso.arrays import Array, IntArray
from consenso.errors import InputError
from consenso.losses import Loss
from consenso.privacy.card import Card
from consenso.schema import Ignore, Label, Schema, TargetColumn, User
from consenso.shards.intake import shrink_factors
from consenso.tables import Table, column_of, read_table

ROW = "(row)"  # a column of row numbers, to know which records a schema left out


class Scored(NamedTuple):
    """Predictions for the records of a table: the number of each record, from 0, and what is predicted for it."""

    rows: IntArray
    predictions: NDArray[Any]
    probabilities: Array | None


@dataclass(frozen=True, kw_only=True, eq=False)
class Model:
    """A linear model.

    coefficients: (features, outputs), without the intercept. intercept: (outputs,). classes: in the order of the loss;
    None for a regression. row_bound: rows are scaled to this norm if they are longer, as in training. schema: how a
    table becomes features, if the model was trained on one. study: the digest of the study that it comes from.
    estimates, standard_errors: (features,), and the intercept as the last where there is one, as `summary` of an
    estimator has them (docs/estimators.md#uncertainty); None where the training tells none.
    """

    loss: Loss
    coefficients: Array
    intercept: Array | None
    features: tuple[str, ...]
    classes: tuple[str, ...] | None
    row_bound: float
    schema: Schema | None = None
    card: Card | None = field(default=None, repr=False)
    study: str | None = None
    versions: dict[str, str] = field(default_factory=dict)
    estimates: Array | None = field(default=None, repr=False)
    standard_errors: Array | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        shape = (len(self.features), self.loss.outputs)
        coefficients = np.array(self.coefficients, dtype=np.float64)
        intercept = None if self.intercept is None else np.array(self.intercept, dtype=np.float64)
        if coefficients.shape != shape or (intercept is not None and intercept.shape != shape[1:]):
            raise InputError(
                f"Model(coefficients=...): the {self.loss.name} loss with {shape[0]} features has coefficients of "
                f"shape {shape} and an intercept of shape {shape[1:]}, and {coefficients.shape} was given."
            )
        if not np.isfinite(coefficients).all() or (intercept is not None and not np.isfinite(intercept).all()):
            raise InputError("Model(coefficients=...): coefficients are finite numbers, and some are not.")
        wanted = None if self.loss.targets == "real" else max(2, self.loss.outputs)
        if (None if self.classes is None else len(self.classes)) != wanted:
            raise InputError(
                f"Model(classes={self.classes}): the {self.loss.name} loss has {wanted or 'no'} classes; name them."
            )
        if not 0 < self.row_bound < math.inf:
            raise InputError(f"Model(row_bound={self.row_bound}): a bound on the norm of rows is positive and finite.")
        if self.schema is not None and self.schema.without_intercept().feature_names != self.features:
            raise InputError("Model(features=...): the features are not those of the schema; use its names.")
        wide = len(self.features) + (intercept is not None)
        for told in (self.estimates, self.standard_errors):
            if told is not None and (np.shape(told) != (wide,) or not np.isfinite(told).all()):
                raise InputError(f"Model(standard_errors=...): {wide} finite numbers are needed, the intercept's last.")
        for array in (coefficients, intercept):
            if array is not None:
                array.setflags(write=False)
        object.__setattr__(self, "coefficients", coefficients)
        object.__setattr__(self, "intercept", intercept)

    @property
    def outputs(self) -> int:
        """Scores per record: the number of classes of softmax, otherwise 1."""
        return self.loss.outputs

    def scores(self, X: Any) -> Array:
        """Scores (rows, outputs) of rows (rows, features), dense or sparse, without a constant column."""
        matrix = self._check_rows(X)
        # Training scaled longer rows to the bound, so the model is a model of scaled rows.
        shrink = shrink_factors(matrix, self.row_bound)
        scores = np.asarray(matrix @ self.coefficients, dtype=np.float64) * shrink[:, None]
        return scores if self.intercept is None else scores + self.intercept

    def predict(self, X: Any) -> NDArray[Any]:
        """Classes as texts, or numbers of a regression, (rows,)."""
        return self._decide(self.scores(X))

    def predict_proba(self, X: Any) -> Array:
        """Probabilities (rows, classes) in the order of `classes`, for the logistic and the softmax loss."""
        return self.probabilities(self.scores(X))

    @property
    def has_probabilities(self) -> bool:
        """Whether the loss is a likelihood of classes."""
        return self.loss.is_likelihood

    def predict_table(self, table: Table | str | Path) -> Scored:
        """Predictions for the records of a table or a file with the columns of the schema; the target may be absent.

        A record that a rule of the schema drops has no prediction. A model without a schema takes a table that has its
        features as columns of numbers, in their order, and nothing else.
        """
        if isinstance(table, str | Path):
            table = read_table(table)
        if self.schema is None:
            return self._score(np.arange(table.rows, dtype=np.int64), _numbers(table, len(self.features)))
        schema = self.schema
        kept = tuple(
            Ignore(name=column.name) if isinstance(column, User | Label | TargetColumn) else column
            for column in schema.columns
        )
        numbered = dataclasses.replace(schema, columns=(*kept, User(name=ROW)), intercept=False)
        numbers = column_of(np.arange(table.rows, dtype=np.int64), name=ROW)
        found = numbered.features(dataclasses.replace(table, columns={**table.columns, ROW: numbers}), targets=False)
        assert found.users is not None
        return self._score(found.users.astype(np.int64), found.X)

    def _score(self, rows: IntArray, X: Array) -> Scored:
        scores = self.scores(X)
        chances = self.probabilities(scores) if self.has_probabilities else None
        return Scored(rows, self._decide(scores), chances)

    def estimator(self) -> Any:
        """The matching estimator of `consenso.estimators`, fitted."""
        from consenso.models.estimators import to_estimator

        return to_estimator(self)

    def to_sklearn(self) -> Any:
        """A plain scikit-learn object with these coefficients; see `consenso.models.sklearn`."""
        from consenso.models.sklearn import to_sklearn

        return to_sklearn(self)

    def to_onnx(self, path: str | Path) -> Path:
        """Write the model as ONNX; see `consenso.models.onnx`."""
        from consenso.models.onnx import write_onnx

        return write_onnx(self, path)

    def save(self, path: str | Path) -> Path:
        """Write the model as JSON; into a folder as `model.json`."""
        from consenso.models.file import save_model

        return save_model(self, path)

    def _check_rows(self, X: Any) -> Any:
        matrix: Any = sparse.csr_array(X) if sparse.issparse(X) else np.asarray(X)
        if matrix.ndim != 2 or matrix.dtype.kind not in "fiub" or matrix.shape[1] != len(self.features):
            raise InputError(
                f"Model.predict(X of shape {matrix.shape}): rows of {len(self.features)} numbers are needed, without a "
                "constant column; use predict_table for a table."
            )
        if not np.isfinite(matrix.data if sparse.issparse(matrix) else matrix).all():
            raise InputError("Model.predict(X): rows are finite numbers, and some are not; drop or impute them.")
        return matrix.astype(np.float64)

    def _decide(self, scores: Array) -> NDArray[Any]:
        if self.classes is None:
            return scores[:, 0]
        chosen = (scores[:, 0] > 0).astype(np.int64) if self.outputs == 1 else np.argmax(scores, axis=1)
        named: NDArray[Any] = np.asarray(self.classes)[chosen]
        return named

    def probabilities(self, scores: Array) -> Array:
        """Probabilities (rows, classes) of scores (rows, outputs)."""
        from scipy.special import expit, softmax

        if not self.has_probabilities:
            raise InputError(
                f"Model.predict_proba: the {self.loss.name} loss is no likelihood of classes; use predict or scores."
            )
        if self.outputs > 1:
            chances: Array = softmax(scores, axis=1)
            return chances
        positive = expit(scores[:, 0])
        return np.stack([1.0 - positive, positive], axis=1)


def _numbers(table: Table, width: int) -> Array:
    """The columns of a table as they stand, all of them numbers."""
    if len(table.columns) != width:
        raise InputError(
            f"{table.source}: the model knows no schema and takes its {width} features as columns, and the table has "
            f"{len(table.columns)}; give one column for each feature."
        )
    X = np.empty((table.rows, width))
    for place, (name, column) in enumerate(table.columns.items()):
        values, missing, wrong = column.numbers(frozenset())
        if wrong is not None or missing.any():
            row = wrong if wrong is not None else int(np.argmax(missing))
            raise InputError(f"{table.place(row, name)}: a feature is a number, and this cell is none; correct it.")
        X[:, place] = values
    return X
