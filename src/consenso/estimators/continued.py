"""Fits that start from a released model, and `partial_fit`, which goes on from its own."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, Self

import numpy as np

from consenso.arrays import Array
from consenso.errors import InputError
from consenso.estimators.prior import Prior
from consenso.estimators.row_map import RowMap
from consenso.privacy.accountants import is_unbounded
from consenso.privacy.guarantee import CHOSEN_BEFORE, Guarantee
from consenso.privacy.rounding import round_up

STARTED = (
    "The fit started from a released model, and this is what the fit has cost. What the model had cost is its own: a "
    "record that is in both has what both cost together, start.guarantee_.compose(guarantee_)."
)


class Continued:
    """What a model takes over from an earlier one; not for direct use."""

    epsilon: float
    adjacency: Any
    n_features_in_: int
    row_map_: RowMap
    coef_: Any
    intercept_: Any
    target_bound_: float | None
    guarantee_: Guarantee
    notes_: tuple[str, ...]
    _middle: float
    _delta: float
    _records_learnt: int
    _remarks: Mapping[str, str]
    _started: bool

    @abstractmethod
    def _set_model(self, coefficients: Array, intercepts: Array) -> None:
        """Keep coefficients (features, outputs) and intercepts (outputs,) as scikit-learn does."""

    @abstractmethod
    def _keep_evidence(self, evidence: Any) -> None: ...

    def _prior(self, start: Any, features: int) -> Prior | None:
        """The released model to start from."""
        if start is None:
            return None
        owner = type(self).__name__
        if type(start) is not type(self) or not hasattr(start, "row_map_"):
            raise InputError(f"{owner}.fit(start=...): a fitted {owner} is needed, whose model was released.")
        if start.n_features_in_ != features:
            raise InputError(
                f"{owner}.fit(start=...): the model has {start.n_features_in_} columns, and X has {features}."
            )
        start._require_guarantee(f"{owner}.fit(start=...)")
        if math.isfinite(self.epsilon) and is_unbounded(start.guarantee_.event):
            raise InputError(
                f"{owner}.fit(start=...): the model was fitted without privacy, so that whatever starts from it tells "
                "of its records; start from a private fit."
            )
        return start._collect_prior()

    def _collect_prior(self) -> Prior:
        """What this fit released, for a later one."""
        return Prior(
            rows=self.row_map_,
            coefficients=np.atleast_2d(self.coef_).T,
            intercepts=np.atleast_1d(self.intercept_),
            target_bound=self.target_bound_,
            middle=self._middle,
            records=self._records_learnt,
        )

    def _go_on(self, fit: Callable[[], object], *, of_people: bool) -> Self:
        """Fit to more records, and average the models, each with the weight of the records that it has learnt from.

        Bounds and labels are those of the first call. What all calls together tell of a record that is in each of them
        is `guarantee_`; a record that is in one call has the guarantee of that call, which is on its card.
        """
        if not hasattr(self, "row_map_"):
            fit()
            return self
        self._check_going_on("person" if of_people else "record")
        before, promised, started = self._collect_prior(), self.guarantee_, self._started
        fit()
        whole = before.average(self._collect_prior())
        self._set_model(whole.coefficients, whole.intercepts)
        self._keep_evidence(None)  # each call has told of its own records alone
        self._records_learnt = whole.records
        self.guarantee_, self._started = promised.compose(self.guarantee_), started
        if math.isfinite(self.epsilon):
            delta = self._delta
            said = (
                "The model is the mean of those of several calls of partial_fit, and this card is of the last of them. "
                f"All calls together have epsilon {round_up(self.guarantee_.epsilon(delta))} at delta {delta:g} "
                f"({self.guarantee_.adjacency}): that is what a {self.guarantee_.unit} has which may be in any of them."
            )
            said += f" {CHOSEN_BEFORE}" + (f" {STARTED}" if started else "")
            self._remarks = {**self._remarks, "calls": said}
            self.__dict__.pop("_card", None)
            self.notes_ = (said, *self.notes_)
        return self

    def _require_guarantee(self, call: str) -> None:
        """Refuse a model of which nobody knows what it has cost, such as one of a file without a card."""
        if not hasattr(self, "guarantee_"):
            raise InputError(f"{call}: the model has no card, so that nobody knows what it tells of its records.")

    def _check_going_on(self, unit: str) -> None:
        """Refuse what could not be stated together with the calls before, while nothing is spent."""
        owner = type(self).__name__
        self._require_guarantee(f"{owner}.partial_fit")
        before = self.guarantee_
        if math.isfinite(self.epsilon) and is_unbounded(before.event):
            raise InputError(
                f"{owner}.partial_fit: the model was fitted without privacy, so that whatever goes on from it tells of "
                "its records; begin with a private fit."
            )
        if (before.unit, before.adjacency) != (unit, self.adjacency):
            raise InputError(
                f"{owner}.partial_fit: the calls before are for {before.unit}s under {before.adjacency} and this one "
                f"is for {unit}s under {self.adjacency}, and costs of different kinds do not add up; give users= in "
                "all calls or in none, and keep adjacency."
            )
