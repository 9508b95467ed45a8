"""Private logistic and softmax regression."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import expit, log_softmax, softmax

from consenso.arrays import Array
from consenso.estimators.classification import PrivateClassifier
from consenso.estimators.fitting import default_penalty, make_request, penalty
from consenso.estimators.privacy_params import PrivacyParams
from consenso.losses import Logistic, Loss, Softmax
from consenso.regularizers import Regularizer

if TYPE_CHECKING:
    from consenso.solvers.request import Request


@dataclass(kw_only=True, eq=False, repr=False)
class PrivateLogisticRegression(PrivateClassifier):
    """Logistic regression with differential privacy; several classes share one softmax.

    Minimises mean log loss + alpha * (l1_ratio |w|_1 + (1 - l1_ratio)/2 |w|^2); the intercept is not penalized. At
    epsilon=inf it equals LogisticRegression(C=1 / (alpha * records), l1_ratio=l1_ratio).

    - epsilon: the budget of one fit; inf for a fit without privacy.
    - delta: None for min(1e-5, 0.1 / records).
    - row_bound: public bound on the 2-norm of rows, to which longer rows are shortened. None has it found within the
      budget.
    - classes: the public labels; "public" declares those in y public. None has them found within the budget, unless y
      has truth values.
    - class_weight: public weights of labels, as in scikit-learn; "balanced" releases noisy numbers of records.
    - target_recall: the recall of the second of two classes, for which a threshold is found within the budget
      (threshold_, on the log odds); None for even odds.
    - alpha: strength of the penalty. None is 1 / records at epsilon=inf (scikit-learn's C=1), row_bound^2 / (features *
      records) under privacy, and with an L1 share the level below which a coefficient cannot be told from noise.
    - l1_ratio: the share of the 1-norm in the penalty.
    - bounds: "private" finds bounds that are not given within the budget; "public" refuses to.
    - fit_intercept: whether the model has an intercept.
    - solver: "auto", or one of consenso.solvers.names().
    - adjacency: "replace-one" (the number of records is public) or "add-remove" (it is private).
    - records: under add-remove a public upper bound on the number of records; None releases a noisy count.
    - ledger: a Ledger or its path, charged for every fit.
    - random_state: None for noise that protects; a seed makes a simulation, which does not.

    Fitted: coef_, intercept_, classes_, threshold_, guarantee_, card_, notes_, row_bound_, rows_per_person_, solver_,
    solver_reason_, n_iter_, n_features_in_.
    """

    made_from = (Logistic, Softmax)

    l1_ratio: float = 0.0

    def predict_proba(self, X: Any) -> Array:
        """Probabilities of the classes, (records, classes)."""
        scores = self.decision_function(X)
        if scores.ndim == 1:
            return np.stack([expit(-scores), expit(scores)], axis=1)
        return np.asarray(softmax(scores, axis=1))

    def predict_log_proba(self, X: Any) -> Array:
        scores = self.decision_function(X)
        if scores.ndim == 1:
            return -np.stack([np.logaddexp(0.0, scores), np.logaddexp(0.0, -scores)], axis=1)
        return np.asarray(log_softmax(scores, axis=1))

    def _request(self, terms: PrivacyParams, features: int, classes: int) -> Request:
        loss: Loss = Logistic() if classes == 2 else Softmax(classes=classes)
        return make_request(
            terms,
            loss,
            self._penalty(loss, terms, features),
            features,
            constant=self._constant(terms),
            solver=self.solver,
            penalty_follows=self.alpha is None,
        )

    def _penalty(self, loss: Loss, terms: PrivacyParams, features: int) -> Regularizer:
        if self.alpha is None and terms.is_private:
            return default_penalty(loss, self.l1_ratio, terms, features)
        alpha = 1.0 / terms.records if self.alpha is None else float(self.alpha)
        return penalty(alpha / terms.mean_weight, self.l1_ratio)
