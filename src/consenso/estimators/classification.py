"""What private classifiers share: public labels, coefficients, predictions."""

from __future__ import annotations

import dataclasses
import math
from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from consenso.arrays import Array
from consenso.errors import InputError
from consenso.estimators.fitting import Task
from consenso.estimators.frames import bound_of
from consenso.estimators.linear import PUBLIC, PrivateLinearModel
from consenso.estimators.privacy_params import PrivacyParams
from consenso.estimators.reading import read_records, without_warnings
from consenso.estimators.stored import opens
from consenso.estimators.weights import ClassWeights, read_class_weights

_LABELS_ARE_PUBLIC = "The set of labels that occur is public: it is the same in both data sets."


class PrivateClassifier(ClassifierMixin, PrivateLinearModel):  # type: ignore[misc]
    """Labels, coefficients and predictions; not for direct use."""

    classes: ArrayLike | str | None
    class_weight: Mapping[Any, float] | str | None

    def fit(self, X: Any, y: Any, *, users: Any = None, rows_per_person: int = 1) -> Self:
        """Fit within the budget. X: (records, features), dense or sparse; y: labels.

        users: the id of the person of each row, where a person has several: the guarantee is then for all rows of a
        person, each of whom counts like a person with rows_per_person rows at most, a public number.

        X may also be a table that stays in storage (a path or a pattern of Parquet, Arrow or CSV files, a Polars
        LazyFrame, a DuckDB relation, a Dask data frame) with y the name of its target, or a NumPy memory map.
        """
        self._check_parameters()
        self._check_classes()
        self._warn_of_spending()
        with without_warnings(math.isfinite(self.epsilon)):
            self._fit(X, y, users, rows_per_person)
        self._warn_of_shortening()
        return self

    def _fit(self, X: Any, y: Any, users: Any, rows_per_person: int) -> None:
        if opens(X):
            classes = self._declared_classes()
            X, terms, weights = self._open(X, y, classes, users, rows_per_person)
            targets = None
        else:
            bound = bound_of(X)
            X, y = read_records(self, X, y, real=False)
            classes, codes = self._encode_labels(y)
            X, codes, terms, weights = self._group(X, codes, users, rows_per_person, bound)
            targets = self._targets(codes, len(classes))
        balance = None
        if self.class_weight is not None:
            given = read_class_weights(type(self).__name__, self.class_weight, classes)
            balance = ClassWeights(weights=given, classes=len(classes))
        fitted = self._learn(
            lambda known: self._task(known, X.shape[1], len(classes)), terms, X, targets, weights, balance
        )
        if isinstance(self.classes, str):
            texts = (*fitted.guarantee.assumptions, _LABELS_ARE_PUBLIC)
            self.guarantee_ = dataclasses.replace(fitted.guarantee, assumptions=texts)
        self.classes_ = classes
        self.coef_ = np.ascontiguousarray(fitted.coefficients.T)
        self.intercept_ = fitted.intercepts

    def decision_function(self, X: Any) -> Array:
        """Scores of the second class, (records,), or of every class, (records, classes)."""
        check_is_fitted(self)
        scores = self._scores(X, self.coef_.T, self.intercept_)
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def predict(self, X: Any) -> NDArray[Any]:
        """The label with the highest score."""
        scores = self.decision_function(X)
        chosen = (scores > 0).astype(np.intp) if scores.ndim == 1 else scores.argmax(axis=1)
        labels: NDArray[Any] = self.classes_[chosen]
        return labels

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The share of records that get their own label, as scikit-learn's classifiers have it."""
        given = np.asarray(y)
        plain = given.ndim == 1 and given.dtype.kind == self.classes_.dtype.kind and sample_weight is None
        if not plain:
            return float(super().score(X, y, sample_weight))
        predicted = self.predict(X)  # the score of scikit-learn imports a second's worth of metrics
        check_consistent_length(given, predicted)
        return float(np.mean(predicted == given))

    @abstractmethod
    def _task(self, terms: PrivacyParams, features: int, classes: int) -> Task:
        """What is learnt, with this many columns and classes."""

    @staticmethod
    def _targets(codes: NDArray[Any], classes: int) -> NDArray[Any]:
        return np.where(codes == 1, 1.0, -1.0) if classes == 2 else codes.astype(np.int64)

    def _check_classes(self) -> None:
        """The labels that occur are data, so they are public input wherever there is a guarantee."""
        owner = type(self).__name__
        if self.classes is None:
            if math.isfinite(self.epsilon):
                raise InputError(
                    f"{owner}(classes=None): with a finite epsilon the set of labels is public input, because the "
                    "labels that occur depend on the data; pass classes=[...], or classes='public' to declare that "
                    "the labels that occur in y are public knowledge."
                )
            return
        if isinstance(self.classes, str):
            if self.classes != PUBLIC:
                raise InputError(f"{owner}(classes={self.classes!r}): give a list of labels, or classes='public'.")
            return
        given = np.asarray(self.classes)
        if given.ndim != 1 or len(given) < 2 or len(np.unique(given)) < len(given):
            raise InputError(f"{owner}(classes={self.classes!r}): a list of at least two different labels is needed.")

    def _declared_classes(self) -> NDArray[Any]:
        """The labels of a table that is read in batches."""
        if self.classes is None or isinstance(self.classes, str):
            raise InputError(
                f"{type(self).__name__}(classes={self.classes!r}): of a table that is read in batches the labels are "
                "not looked for; pass classes=[...]."
            )
        self._check_count(len(np.asarray(self.classes)))
        return np.unique(np.asarray(self.classes))

    def _encode_labels(self, y: Any) -> tuple[NDArray[Any], NDArray[Any]]:
        owner = type(self).__name__
        seen, codes = np.unique(y, return_inverse=True)
        is_list = self.classes is not None and not isinstance(self.classes, str)
        declared = np.unique(np.asarray(self.classes)) if is_list else None
        classes = seen if declared is None else declared
        if len(classes) < 2:
            raise InputError(
                f"{owner}.fit(y=...): labels of at least two classes are needed, and y has one class only; give "
                "records of others, or declare all with classes=[...]."
            )
        if declared is not None:
            place = {label: position for position, label in enumerate(declared.tolist())}
            if any(label not in place for label in seen.tolist()):
                raise InputError(
                    f"{owner}.fit(y=...): y has labels that are not among classes={declared.tolist()}; declare every "
                    "label that may occur."
                )
            codes = np.array([place[label] for label in seen.tolist()])[codes]
        self._check_count(len(classes))
        return classes, codes

    def _check_count(self, classes: int) -> None:
        """Whether so many classes can be told apart."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = math.isfinite(self.epsilon)
        return tags
