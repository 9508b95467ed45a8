"""Private classifiers with scikit-learn's interface."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, softmax
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from consenso.arrays import Array
from consenso.errors import InputError
from consenso.estimators.fitting import Task, fit, penalty, telling_level
from consenso.estimators.linear import PrivateLinearModel, check_size
from consenso.estimators.terms import Terms, terms_of
from consenso.losses import Hinge, Logistic, Loss, Softmax
from consenso.privacy.ledger import Ledger
from consenso.problem import Adjacency

PUBLIC = "public"
_LABELS_ARE_PUBLIC = "The set of labels that occur is public: it is the same in both data sets."


class PrivateClassifier(ClassifierMixin, PrivateLinearModel):
    """Labels, coefficients and predictions; not for direct use."""

    classes: ArrayLike | str | None

    def fit(self, X: Any, y: Any) -> Self:
        """Fit within the budget. X: (records, features), dense or sparse; y: labels."""
        self._check_parameters()
        self._check_classes()
        self._warn_of_search()
        X, y = self._validated(X, y)
        check_classification_targets(y)
        classes, codes = self._encoded(y)
        terms = terms_of(self, X.shape[0])
        fitted = fit(self._task(terms, X.shape[1], len(classes)), terms, X, self._targets(codes, len(classes)))
        self._keep(fitted)
        if isinstance(self.classes, str):
            texts = (*fitted.guarantee.assumptions, _LABELS_ARE_PUBLIC)
            self.guarantee_ = dataclasses.replace(fitted.guarantee, assumptions=texts)
        self.classes_ = classes
        self.coef_ = np.ascontiguousarray(fitted.coefficients.T)
        self.intercept_ = fitted.intercepts
        return self

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

    def _task(self, terms: Terms, features: int, classes: int) -> Task:
        raise AttributeError(f"{type(self).__name__} has no task.")

    @staticmethod
    def _targets(codes: NDArray[Any], classes: int) -> NDArray[Any]:
        return np.where(codes == 1, 1.0, -1.0) if classes == 2 else codes.astype(np.int64)

    def _check_classes(self) -> None:
        """The labels that occur are data, so they are public input wherever there is a guarantee."""
        owner = type(self).__name__
        if self.classes is None:
            if math.isfinite(self.epsilon):
                raise InputError(
                    f"{owner}(classes=None): with a finite epsilon the set of labels is public input, because the labels "
                    "that occur depend on the data; pass classes=[...], or classes='public' to declare that the labels "
                    "that occur in y are public knowledge."
                )
            return
        if isinstance(self.classes, str):
            if self.classes != PUBLIC:
                raise InputError(f"{owner}(classes={self.classes!r}): give a list of labels, or classes='public'.")
            return
        given = np.asarray(self.classes)
        if given.ndim != 1 or len(given) < 2 or len(np.unique(given)) < len(given):
            raise InputError(f"{owner}(classes={self.classes!r}): a list of at least two different labels is needed.")

    def _encoded(self, y: Any) -> tuple[NDArray[Any], NDArray[Any]]:
        owner = type(self).__name__
        seen, codes = np.unique(y, return_inverse=True)
        declared = None if self.classes is None or isinstance(self.classes, str) else np.unique(np.asarray(self.classes))
        classes = seen if declared is None else declared
        if len(classes) < 2:
            raise InputError(
                f"{owner}.fit(y=...): labels of at least two classes are needed, and y has one class only; give records "
                "of others, or declare all with classes=[...]."
            )
        if declared is not None:
            place = np.clip(np.searchsorted(declared, seen), 0, len(declared) - 1)
            strange = seen[declared[place] != seen]
            if len(strange):
                raise InputError(
                    f"{owner}.fit(y=...): y has labels that are not among classes={declared.tolist()}; declare every "
                    "label that may occur."
                )
            codes = place[codes]
        self._check_count(len(classes))
        return classes, codes

    def _check_count(self, classes: int) -> None:
        """Whether so many classes can be told apart."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = math.isfinite(self.epsilon)
        return tags


class PrivateLogisticRegression(PrivateClassifier):
    """Logistic regression with differential privacy; several classes share one softmax.

    Minimises mean log loss + alpha * (l1_ratio |w|_1 + (1 - l1_ratio)/2 |w|^2); the intercept is not penalized. At
    epsilon=inf it equals LogisticRegression(C=1 / (alpha * records), l1_ratio=l1_ratio).

    epsilon: the budget of a fit, inf for none. delta: None for min(1e-5, 0.1 / records). row_bound: public bound on the
    2-norm of rows; longer rows are shortened to it. classes: the public labels, or "public" to declare those in y
    public. alpha: None for 1 / records (scikit-learn's C=1), or with an L1 share and privacy the level below which
    nothing can be told from noise. solver: "auto" or one of consenso.solvers.names(). adjacency: "replace-one" (the
    number of records is public) or "add-remove" (it is not: `records` is a public upper bound). ledger: a Ledger or its
    path, charged for every fit. random_state: None for noise that protects, a seed for a simulation.

    Fitted: coef_, intercept_, classes_, guarantee_, card_, solver_, solver_reason_, n_iter_, n_features_in_.
    """

    def __init__(
        self,
        *,
        epsilon: float = 1.0,
        delta: float | None = None,
        row_bound: float | None = None,
        classes: ArrayLike | str | None = None,
        alpha: float | None = None,
        l1_ratio: float = 0.0,
        fit_intercept: bool = True,
        solver: str = "auto",
        adjacency: Adjacency = "replace-one",
        records: int | None = None,
        ledger: Ledger | str | Path | None = None,
        random_state: Any = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.row_bound = row_bound
        self.classes = classes
        self.alpha = alpha
        self.l1_ratio = l1_ratio
        self.fit_intercept = fit_intercept
        self.solver = solver
        self.adjacency = adjacency
        self.records = records
        self.ledger = ledger
        self.random_state = random_state

    def predict_proba(self, X: Any) -> Array:
        """Probabilities of the classes, (records, classes)."""
        scores = self.decision_function(X)
        if scores.ndim == 1:
            return np.stack([expit(-scores), expit(scores)], axis=1)
        return np.asarray(softmax(scores, axis=1))

    def predict_log_proba(self, X: Any) -> Array:
        """Their logarithms."""
        scores = self.decision_function(X)
        if scores.ndim == 1:
            return -np.stack([np.logaddexp(0.0, scores), np.logaddexp(0.0, -scores)], axis=1)
        from scipy.special import log_softmax

        return np.asarray(log_softmax(scores, axis=1))

    def _task(self, terms: Terms, features: int, classes: int) -> Task:
        loss: Loss = Logistic() if classes == 2 else Softmax(classes=classes)
        return Task(
            loss=loss,
            penalty=penalty(self._strength(loss, terms, features), self.l1_ratio),
            row_bound=self.row_bound if terms.is_private else None,
            constant=self._constant(),
            solver=self.solver,
        )

    def _strength(self, loss: Loss, terms: Terms, features: int) -> float:
        if self.alpha is not None:
            return float(self.alpha)
        if self.l1_ratio == 0 or not terms.is_private or self.row_bound is None:
            return 1.0 / terms.records
        return telling_level(loss.slope_bound, self.row_bound, features, loss.outputs, terms)


class PrivateLinearSVC(PrivateClassifier):
    """Linear support vector machine for two classes, with differential privacy.

    Minimises mean hinge loss + alpha/2 (|w|^2 + (b / intercept_scaling)^2): as in LinearSVC the intercept b is
    penalized, since it is the coefficient of a constant column of value intercept_scaling. At epsilon=inf it equals
    LinearSVC(loss="hinge", C=1 / (alpha * records), intercept_scaling=intercept_scaling).

    intercept_scaling: None for 1 at epsilon=inf, as in LinearSVC, and for row_bound / 2 under privacy, which costs little
    noise. The other parameters are those of PrivateLogisticRegression.
    """

    def __init__(
        self,
        *,
        epsilon: float = 1.0,
        delta: float | None = None,
        row_bound: float | None = None,
        classes: ArrayLike | str | None = None,
        alpha: float | None = None,
        fit_intercept: bool = True,
        intercept_scaling: float | None = None,
        solver: str = "auto",
        adjacency: Adjacency = "replace-one",
        records: int | None = None,
        ledger: Ledger | str | Path | None = None,
        random_state: Any = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.row_bound = row_bound
        self.classes = classes
        self.alpha = alpha
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.solver = solver
        self.adjacency = adjacency
        self.records = records
        self.ledger = ledger
        self.random_state = random_state

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_size(type(self).__name__, "intercept_scaling", self.intercept_scaling, "the value of a constant column")

    def _check_count(self, classes: int) -> None:
        if classes > 2:
            raise InputError(
                "Only binary classification is supported. The type of the target is multiclass: PrivateLinearSVC has two "
                f"classes, and there are {classes}; use PrivateLogisticRegression."
            )

    def _constant(self) -> float | None:
        if self.fit_intercept and self.intercept_scaling is not None:
            return float(self.intercept_scaling)
        return super()._constant()

    def _task(self, terms: Terms, features: int, classes: int) -> Task:
        alpha = 1.0 / terms.records if self.alpha is None else float(self.alpha)
        return Task(
            loss=Hinge(),
            penalty=penalty(alpha, 0.0),
            row_bound=self.row_bound if terms.is_private else None,
            constant=self._constant(),
            penalizes_constant=True,
            solver=self.solver,
        )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags
