"""What all private estimators share: whose seed it is, what a pickle holds, the card, and what repeated fits spend.

*Parameters.* Estimators are dataclasses whose fields are the parameters. Each is declared once, in the first class that
has it, and a subclass adds its own. Attributes of a fit end with an underscore, as in scikit-learn.

*Whose seed.* Ensembles and searches of scikit-learn set `random_state` on clones. A seed makes the noise of a
fit known to whoever has the seed, so that one has to come from the owner: a seed that is set on an estimator that was
made without one is refused by `fit`, and so are its clones.

*Repeated fits.* An estimator and its clones have a lineage. The second fit of a lineage in one process that no ledger
is charged for gives a `SpendingWarning`: cross-validation, searches, one-versus-rest and loops of refits are all of
this kind. What the rows are plays no part in it, nor how many there are.
"""

from __future__ import annotations

import logging
import math
import uuid
import warnings
from abc import abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from sklearn.base import BaseEstimator
from sklearn.utils import estimator_html_repr

from consenso.estimators.pipelines import warn_of_learners
from consenso.estimators.privacy_params import check_terms
from consenso.privacy.card import Card
from consenso.privacy.ledger import Ledger
from consenso.privacy.rounding import round_down, round_up
from consenso.problem import Adjacency

_LOG = logging.getLogger(__name__)
_SEED = "random_state"
# Lineages that were fitted in this process with noise that protects and without a ledger.
_FITTED: set[str] = set()


class SpendingWarning(UserWarning):
    """Fits that no ledger adds up: each spends its own budget."""


@dataclass(kw_only=True, eq=False, repr=False)
class PrivateEstimator(BaseEstimator):  # type: ignore[misc]
    """Seeds, cards, pickles and warnings; not for direct use."""

    epsilon: float = 1.0
    delta: float | None = None
    adjacency: Adjacency = "replace-one"
    records: int | None = None
    ledger: Ledger | str | Path | None = None
    random_state: Any = None

    def __setattr__(self, name: str, value: Any) -> None:
        if name == _SEED and _SEED in vars(self):
            if value is None:
                self.__dict__.pop("_seed_is_foreign", None)
            elif self.random_state is None:
                self.__dict__["_seed_is_foreign"] = True
        super().__setattr__(name, value)

    def __sklearn_clone__(self) -> Self:
        """A clone that knows what it is a clone of, and whether its seed came from the owner."""
        copy: Self = super().__sklearn_clone__()
        copy._is_clone = True
        copy._lineage = self._own_lineage()
        if vars(self).get("_seed_is_foreign", False):
            copy.__dict__["_seed_is_foreign"] = True
        return copy

    def __getstate__(self) -> dict[str, Any]:
        """What a pickle or a copy holds: of a fitted object everything but the seed."""
        state: dict[str, Any] = super().__getstate__()
        return {**state, _SEED: None} if "guarantee_" in state else state

    def set_params(self, **params: Any) -> Self:
        """Set parameters, as in scikit-learn."""
        super().set_params(**params)
        if vars(self).get("_is_clone", False) and not params.keys() <= {_SEED}:
            self._is_searched = True
        return self

    @property
    def card_(self) -> Card:
        """The privacy card of the fit, for every observer; made when it is first looked at."""
        if not hasattr(self, "guarantee_"):
            raise AttributeError(f"{type(self).__name__}.card_: there is no card before fit.")
        return self._make_card()

    @abstractmethod
    def _make_card(self) -> Card:
        """The card of a fitted estimator."""

    def _html_repr(self) -> str:
        """What a notebook shows: scikit-learn's diagram, and below it, after fit, the card."""
        shown = str(estimator_html_repr(self))
        return shown + self.card_._repr_html_() if hasattr(self, "guarantee_") else shown

    def _check_privacy(self) -> None:
        """Refuse terms that cannot be, before data are looked at."""
        check_terms(self, type(self).__name__)

    def _warn_of_spending(self) -> None:
        """Warn of a fit of a search, and of a fit that nobody adds to an earlier one. Depends on no data."""
        if math.isinf(self.epsilon):
            return
        warn_of_learners(self)
        searched = vars(self).get("_is_searched", False)
        uncharged = self.ledger is None and self.random_state is None
        lineage = self._own_lineage()
        repeated = uncharged and lineage in _FITTED
        if uncharged:
            _FITTED.add(lineage)
        if not (searched or repeated):
            return
        what = "a clone with other parameters is fitted, as a search does" if searched else "this is a repeated fit"
        warnings.warn(
            f"{type(self).__name__}.fit: {what}; every fit spends its own epsilon={self.epsilon:g} on the rows it "
            "sees, guarantee_ states that of one fit only, and cross-validated scores are private; tune on public "
            "data, or pass ledger= to have every fit charged.",
            SpendingWarning,
            stacklevel=3,
        )

    def _say_spent(self, ledger: Ledger | None) -> tuple[str, ...]:
        """What the data set of a ledger has cost so far, in a sentence for each budget."""
        if ledger is None:
            return ()
        told = tuple(
            f"The data set {ledger.dataset!r} has cost epsilon {round_up(balance.spent, 3)} of "
            f"{balance.budget.epsilon:g} so far, at delta {balance.budget.delta:g} ({balance.budget.unit}, "
            f"{balance.budget.adjacency}, {balance.budget.observer}); {round_down(balance.left, 3)} are left."
            for balance in ledger.balances()
        )
        for sentence in told:
            _LOG.info("%s", sentence)
        return told

    def _own_lineage(self) -> str:
        return str(self.__dict__.setdefault("_lineage", uuid.uuid4().hex))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        # Noise of the operating system differs from fit to fit.
        tags.non_deterministic = math.isfinite(self.epsilon) and self.random_state is None
        return tags
