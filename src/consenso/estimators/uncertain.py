"""Standard errors, confidence intervals and summaries of private linear models.

They cost nothing: they are computed from what the fit has released anyway, when somebody asks.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from consenso.algorithms.evidence import Evidence
from consenso.arrays import Array
from consenso.errors import InputError
from consenso.estimators.reading import read_rows
from consenso.estimators.row_map import RowMap
from consenso.losses import Loss
from consenso.privacy.rounding import round_up
from consenso.shards.intake import shrink_factors

if TYPE_CHECKING:
    from consenso.estimators.summary import Summary
    from consenso.estimators.uncertainty import Estimate

COVERED = (
    "Standard errors cover the sampling of records and the noise of privacy. The estimate undoes what shrinks or bends "
    "coef_: penalty, damping, steps that ended early, clipped slopes. Both come from what was released anyway."
)
CHOSEN = (
    "PrivateSearchCV chose this fit among others by a noisy score on records that were held out. That choice is not "
    "covered: intervals are those of one fit whose parameters were fixed beforehand."
)


class ChoiceWarning(UserWarning):
    """Intervals of a fit that was chosen among others."""


class StandardErrorsError(InputError, AttributeError):
    """A fit that has none: to `hasattr`, and so to scikit-learn's displays, they are not there."""


class Uncertain:
    """What models say of their coefficients' uncertainty; not for direct use."""

    epsilon: float
    row_bound: float | None
    row_map_: RowMap
    row_bound_: float | None
    target_bound_: float | None
    coef_: Array
    intercept_: Any
    _shortened: float
    _middle: float
    _delta: float
    # The private search that has chosen this fit among others.
    _chosen_by: Any = None
    # Names of features that a schema made.
    _made_names: tuple[str, ...] | None = None
    _bounds_were_found: bool = False
    # Whether a fit, or one that this one goes on from, started from a released model.
    _started: bool = False

    def _keep_evidence(self, evidence: tuple[Loss, int, float | None, Evidence | None] | None) -> None:
        """What `estimate` is made of: loss, records, value of the constant column, and what the late steps say."""
        self._evidence, self._chosen_by = evidence, None
        self.__dict__.pop("_made_estimate", None)

    def _get_estimate(self) -> Estimate:
        """In the units of the columns, the intercept last."""
        check_is_fitted(self)
        if "_made_estimate" not in self.__dict__:
            self.__dict__["_made_estimate"] = self._make_estimate()
        made: Estimate = self.__dict__["_made_estimate"]
        return made

    def _get_estimate_as_if_alone(self) -> Estimate:
        """The same for numbers without words beside them: a choice among fits is warned of."""
        found = self._get_estimate()
        if self._chosen_by is not None:
            warnings.warn(f"{type(self).__name__}: {CHOSEN}", ChoiceWarning, stacklevel=3)
        return found

    def _make_estimate(self) -> Estimate:
        from consenso.estimators.uncertainty import estimate

        owner, evidence = type(self).__name__, getattr(self, "_evidence", None)
        if math.isinf(self.epsilon) or evidence is None:
            raise InputError(
                f"{owner}: standard errors are made of what a private fit releases, and this model was fitted "
                "without privacy, went on from another or was read from a file; use statsmodels, fit anew, or use the "
                "file's `standard_errors`."
            )
        found = estimate(*evidence)
        columns, size = self.n_features_in_, len(found.coefficients)  # type: ignore[attr-defined]
        units, constant = np.eye(size), evidence[2]
        intercepts = np.zeros(size) if constant is None else constant * units[-1]
        own, intercepts = self.row_map_.restore(units[:columns], intercepts)
        if constant is None:
            return found.change_units(own, np.zeros(columns))
        return found.change_units(np.vstack([own, intercepts]), np.append(np.zeros(columns), self._middle))

    @property
    def standard_errors_(self) -> Array:
        """Standard errors of the estimates, (features,), and of the intercept, if there is one, as the last."""
        try:
            return self._get_estimate_as_if_alone().standard_errors
        except InputError as error:
            raise StandardErrorsError(str(error)) from None

    def confidence_intervals(self, level: float = 0.95) -> Array:
        """Intervals (features, 2) that cover the coefficients in a share `level` of fits; the intercept is the last."""
        from consenso.estimators.uncertainty import reach_of

        found, reach = self._get_estimate_as_if_alone(), reach_of(level)
        return found.coefficients[:, None] + reach * np.outer(found.standard_errors, [-1.0, 1.0])

    def predict_interval(self, X: Any, level: float = 0.95) -> Array:
        """Intervals (records, 2) of the mean target at rows, or of the probability of the second class."""
        from consenso.estimators.uncertainty import reach_of

        found, reach = self._get_estimate_as_if_alone(), reach_of(level)
        rows = read_rows(self, X, accept_sparse="csr", reset=False)
        rows = rows.toarray() if sparse.issparse(rows) else rows
        rows = self._seen_rows(rows)
        if len(found.coefficients) > rows.shape[1]:
            rows = np.column_stack([rows, np.ones(len(rows))])
        spread = np.sqrt(np.einsum("ij,jk,ik->i", rows, found.covariance, rows))
        scores = (rows @ found.coefficients)[:, None] + reach * np.outer(spread, [-1.0, 1.0])
        if not hasattr(self, "classes_"):
            return np.asarray(scores)
        from scipy.special import expit

        return np.asarray(expit(scores))

    def _seen_rows(self, X: Array) -> Array:
        """Rows in the units of the columns that have the scores which the model gives to X."""
        scaled = self.row_map_.scale(X)
        shrink = 1.0 if self.row_bound_ is None else shrink_factors(scaled, self.row_bound_)[:, None]
        columns = self.row_map_.columns
        rows: Array = scaled * shrink if columns is None else scaled * shrink * columns.scale + columns.center
        return rows

    def summary(self, level: float = 0.95) -> Summary:
        """A table of coefficients, estimates, standard errors and intervals, with what these cover and what not.

        Where there are no standard errors it has the coefficients, and says why.
        """
        from consenso.estimators.summary import list_coefficients, make_summary
        from consenso.estimators.uncertainty import reach_of

        reach_of(level)  # refuses a level that is none, also where there are no intervals
        names = self._name_columns()
        evidence = getattr(self, "_evidence", None)
        facts = {"model": type(self).__name__} | ({"records": f"{evidence[1]:,}"} if evidence else {})
        facts["guarantee"] = self._say_guarantee()
        try:
            found = self._get_estimate()
        except InputError as error:
            outputs = [str(label) for label in getattr(self, "classes_", ())]
            values = np.atleast_2d(self.coef_)
            heads = outputs if len(values) == len(outputs) else ["coef_"]
            if np.any(self.intercept_):
                names, values = [*names, "intercept"], np.column_stack([values, np.ravel(self.intercept_)])
            return list_coefficients(facts, names, heads, values.T, [str(error)])
        values = np.ravel(self.coef_)
        if len(found.coefficients) > len(names):
            names, values = [*names, "intercept"], np.append(values, np.ravel(self.intercept_))
        if found.residual is not None:
            facts["residuals"] = f"standard deviation {found.residual:.4g}"
        made = make_summary(facts, names, values, found, level)
        chosen = () if self._chosen_by is None else (CHOSEN,)
        return replace(made, notes=(COVERED, *chosen, *self._say_clipping()))

    def _name_columns(self) -> list[str]:
        """Names of the columns of a frame, or of the features of a schema."""
        columns = self.n_features_in_  # type: ignore[attr-defined]
        named = getattr(self, "feature_names_in_", self._made_names)
        return [f"x{place}" for place in range(columns)] if named is None else [str(name) for name in named]

    def _say_guarantee(self) -> str:
        """That of the fit, or of the whole search that chose it."""
        guarantee: Any = self.guarantee_  # type: ignore[attr-defined]
        # Not the parameter, which may have been set to another number since.
        delta, what = (self._delta, "") if self._chosen_by is None else (self._chosen_by.delta, " for the whole search")
        cost = guarantee.epsilon(delta)
        if math.isinf(cost):
            return "none: this model was fitted without privacy"
        return f"epsilon {round_up(cost, 3)}{what}, {guarantee.unit}"

    def _say_clipping(self) -> tuple[str, ...]:
        """What clipping does that the standard errors do not cover."""
        if self.row_bound is None and not self._bounds_were_found:
            rows = "Cells beyond the ranges of the schema, if there are some, are moved to their ends"
        elif self._bounds_were_found:
            rows = "Rows are shortened to a bound that was found in the data, which some exceed"
        elif self._shortened:
            rows = f"By a noisy count about {self._shortened:.0%} of the rows were shortened to row_bound"
        else:
            rows = "Rows beyond row_bound, if there are some, are shortened"
        said = [f"{rows}: the bias of that is not covered."]
        if hasattr(self, "classes_"):
            said.append("Assumed: labels follow a logistic model, and scores are close to Gaussian.")
        else:
            said.append(f"Targets beyond {self.target_bound_:.4g}, if there are some, are clipped: likewise.")
            said.append("Assumed: residuals are close to Gaussian and of one spread, whatever the row.")
        return tuple(said)
