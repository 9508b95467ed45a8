"""What private classifiers share: public labels, coefficients, predictions."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from consenso.arrays import Array
from consenso.errors import InputError
from consenso.estimators.frames import bound_of, feature_names_of, take_columns
from consenso.estimators.labels import Labels, LabelsError, are_public, encode_labels, read_by_type
from consenso.estimators.linear import FitOptions, PrivateLinearModel
from consenso.estimators.parameter_checks import PUBLIC
from consenso.estimators.people import check_cap
from consenso.estimators.privacy_params import PrivacyParams, is_number
from consenso.estimators.reading import read_records, without_warnings
from consenso.estimators.stored import opens
from consenso.estimators.threshold import REACH, warn_of_threshold
from consenso.estimators.weights import ClassWeights, read_class_weights

if TYPE_CHECKING:
    from consenso.solvers.request import Request

_LABELS_ARE_PUBLIC = "The set of labels that occur is public: it is the same in both data sets."


@dataclass(kw_only=True, eq=False, repr=False)
class PrivateClassifier(ClassifierMixin, PrivateLinearModel):  # type: ignore[misc]
    """Labels, coefficients and predictions; not for direct use."""

    classes: ArrayLike | str | None = None
    class_weight: Mapping[Any, float] | str | None = None
    target_recall: float | None = None
    threshold_ = 0.0
    #: Scores of the grid on which a threshold is looked for.
    _reach: ClassVar[float] = REACH

    def _check_parameters(self) -> None:
        super()._check_parameters()
        self._check_classes()

    def _warn_of_threshold(self) -> None:
        if self.target_recall is not None and math.isfinite(self.epsilon):
            warn_of_threshold(type(self).__name__, float(self.target_recall), self.threshold_, self._reach)

    def _fit(self, X: Any, y: Any, options: FitOptions, known: NDArray[Any] | None = None) -> None:
        if opens(X):
            classes = self.classes_ if options.goes_on else self._declared_classes(known)
            if self.target_recall is not None:
                raise InputError(
                    f"{type(self).__name__}(target_recall=...): a threshold is looked for in a table in memory; leave "
                    "it out, or read the table first."
                )
            batches, people = self._open(X, y, classes, options)
            given = self.class_weight
            many = batches.shape[1]
            fit = self._ask_stored(
                lambda known, classes: self._request(known, many, classes),
                batches,
                people,
                options,
                declared=classes,
                class_weights=None
                if given is None
                else ClassWeights(weights=read_class_weights(type(self).__name__, given, classes)),
            )
        else:
            X, y, users = take_columns(type(self).__name__, X, y, options.users)
            options = replace(options, users=users)
            bound, self._made_names = bound_of(X), feature_names_of(X)
            X, y = read_records(self, X, y, real=False, reset=not options.goes_on)
            found: Any = options.start if hasattr(options.start, "classes_") else self if options.goes_on else None
            labels = self._read_labels(y, known if found is None else found.classes_, getattr(found, "_others", None))
            fit = self._ask(
                lambda known, many: self._request(known, X.shape[1], self._check_count(many)),
                X,
                options,
                bound=bound,
                labels=labels,
                check_found=self._check_found,
                class_weights=self._class_weights(labels),
                recall=None if self.target_recall is None else (float(self.target_recall), self._reach),
            )
        self._learn(fit)
        if isinstance(self.classes, str):
            self.guarantee_ = self.guarantee_.assume(_LABELS_ARE_PUBLIC)
            self._remarks = {**self._remarks, "labels": _LABELS_ARE_PUBLIC}
        known_labels = fit.labels if isinstance(fit.labels, Labels) else None
        self.classes_: Any = fit.declared if known_labels is None else known_labels.classes
        self._others = None if known_labels is None else known_labels.others
        self.threshold_ = fit.threshold

    def partial_fit(
        self,
        X: Any,
        y: Any,
        classes: Any = None,
        sample_weight: Any = None,
        *,
        users: Any = None,
        rows_per_person: int | None = None,
        weight_bound: float = 1.0,
    ) -> Self:
        """Fit to more records within another epsilon, and average; every call is charged.

        classes: the public labels, as in scikit-learn, where the estimator has none. Bounds and labels that the first
        call has found are kept, and cost nothing again. A threshold is that of the last call.
        """
        goes_on = hasattr(self, "row_map_")
        options = FitOptions(
            sample_weight=sample_weight,
            users=users,
            rows_per_person=rows_per_person,
            weight_bound=weight_bound,
            goes_on=goes_on,
        )
        self._check_parameters()
        check_cap(type(self).__name__, rows_per_person, users)
        public = np.unique(classes) if classes is not None and self.classes is None else None
        with without_warnings(math.isfinite(self.epsilon)):
            return self._go_on(lambda: self._fit(X, y, options, public), of_people=users is not None)

    def _set_model(self, coefficients: Array, intercepts: Array) -> None:
        self.coef_ = np.ascontiguousarray(coefficients.T)
        self.intercept_ = intercepts

    def _read_labels(self, y: NDArray[Any], known: Any, others: Any) -> Labels | NDArray[Any]:
        """Labels among the known ones; as they are where it is not known which there are."""
        owner, declared = type(self).__name__, None
        if known is not None:
            declared = known
        elif self.classes is not None and not isinstance(self.classes, str):
            declared = np.asarray(self.classes)
        elif self.classes is None and math.isfinite(self.epsilon):
            if not are_public(y):
                return y
            return read_by_type(y)
        labels = encode_labels(owner, y, declared, others)
        self._check_count(len(labels.classes))
        return labels

    def _class_weights(self, labels: Labels | NDArray[Any]) -> ClassWeights | None:
        if self.class_weight is None:
            return None
        owner = type(self).__name__
        if isinstance(labels, Labels):
            return ClassWeights(weights=read_class_weights(owner, self.class_weight, labels.classes))
        if isinstance(self.class_weight, str):
            return ClassWeights(weights=read_class_weights(owner, self.class_weight, np.empty(0)))
        named = list(self.class_weight) if isinstance(self.class_weight, Mapping) else "[...]"
        raise InputError(
            f"{owner}(class_weight=..., classes=None): weights name labels, so declare all there can be, such as "
            f"classes={named}."
        )

    def decision_function(self, X: Any) -> Array:
        """Scores of the second class, (records,), or of every class, (records, classes)."""
        check_is_fitted(self)
        scores = self._scores(X, self.coef_.T, self.intercept_)
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def predict(self, X: Any) -> NDArray[Any]:
        """The label with the highest score; of two classes the second one where its score is above threshold_."""
        scores = self.decision_function(X)
        chosen = (scores > self.threshold_).astype(np.intp) if scores.ndim == 1 else scores.argmax(axis=1)
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
    def _request(self, terms: PrivacyParams, features: int, classes: int) -> Request:
        """What is asked of a solver, with this many columns and classes."""

    def _check_classes(self) -> None:
        """The labels that occur are data, so they are public input wherever there is a guarantee."""
        owner = type(self).__name__
        recall = self.target_recall
        if recall is not None and not (is_number(recall) and 0 < recall < 1):
            raise InputError(f"{owner}(target_recall={recall!r}): a recall lies in (0, 1); leave it out for none.")
        if self.classes is None:
            if math.isfinite(self.epsilon) and self.bounds == PUBLIC:
                raise InputError(
                    f"{owner}(classes=None, bounds='public'): with a finite epsilon the set of labels is public input, "
                    "because the labels that occur depend on the data; pass classes=[...], classes='public' to declare "
                    "that the labels that occur in y are public knowledge, or leave bounds out to have them found "
                    "within the budget."
                )
            return
        if isinstance(self.classes, str):
            if self.classes != PUBLIC:
                raise InputError(f"{owner}(classes={self.classes!r}): give a list of labels, or classes='public'.")
            return
        given = np.asarray(self.classes)
        if given.ndim != 1 or len(given) < 2 or len(np.unique(given)) < len(given):
            raise InputError(f"{owner}(classes={self.classes!r}): a list of at least two different labels is needed.")

    def _declared_classes(self, public: NDArray[Any] | None) -> NDArray[Any]:
        """The labels of a table that is read in batches. public: those that partial_fit was given."""
        if public is not None:
            self._check_count(len(public))
            return public
        if self.classes is None or isinstance(self.classes, str):
            raise InputError(
                f"{type(self).__name__}(classes={self.classes!r}): of a table that is read in batches the labels are "
                "not looked for; pass classes=[...]."
            )
        self._check_count(len(np.asarray(self.classes)))
        return np.unique(np.asarray(self.classes))

    def _check_count(self, classes: int) -> int:
        """Refuse a number of classes that cannot be told apart."""
        if self.target_recall is not None and classes != 2:
            raise InputError(
                f"{type(self).__name__}(target_recall={self.target_recall}): a threshold decides between two classes, "
                f"and there are {classes}."
            )
        return classes

    def _check_found(self, classes: NDArray[Any]) -> None:
        """Refuse labels that were found and cannot be told apart, before anything else is released.

        Which labels there are is private until they are paid for, so that this is as early as it can be.
        """
        try:
            self._check_count(len(classes))
        except InputError as error:
            raise LabelsError(
                f"{error} The labels were found in y, and the epsilon of {self.epsilon:g} of this call is spent. They "
                "are known now and cost nothing again: this error has them as `classes`, and another fit takes them as "
                "classes=[...].",
                classes,
            ) from None

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = math.isfinite(self.epsilon)
        return tags
