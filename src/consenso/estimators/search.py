"""A private choice of hyperparameters: the best of a random number of fits (docs/privacy.md#private-search).

    K    hidden, logarithmic: P(K = k) proportional to (1 - gamma)^k / k
    each of K times:  a candidate at random, a fit on the one part of the records, a noisy score on the other part
    released:         the fit with the best noisy score, its parameters and that score, and nothing of the others

A record lies in one part, so that a fit and its score together are mu-GDP where each is. The cost of the whole does not
grow with the number of candidates, and little with the number of draws (Papernot and Steinke 2022, Theorem 2).
"""

from __future__ import annotations

import itertools
import math
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from scipy.optimize import brentq
from sklearn.base import MetaEstimatorMixin, is_classifier
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from consenso.arrays import Array, IntArray
from consenso.errors import InputError, PrivacyError
from consenso.estimators.frames import bound_of, feature_names_of
from consenso.estimators.linear import PrivateLinearModel
from consenso.estimators.privacy_params import EXCESS_SHARE, PrivacyParams, is_number, terms_of
from consenso.estimators.private import PrivateEstimator
from consenso.estimators.reading import read_records, without_warnings
from consenso.estimators.stages import prove_release
from consenso.planning.replan import compare_all
from consenso.privacy.accountants import epsilon as epsilon_of
from consenso.privacy.accountants import excess, gdp
from consenso.privacy.calibrate import EpsilonDelta, calibrate_noise
from consenso.privacy.card import Card
from consenso.privacy.earlier import Earlier
from consenso.privacy.events import BestOf, Gaussian
from consenso.privacy.guarantee import Guarantee
from consenso.privacy.ledger import Ledger, charges_of
from consenso.privacy.observers import Public
from consenso.privacy.samplers import Key, Safe, Sampler, Seeded
from consenso.problem import Adjacency

SEARCH = "search"  # what a card says the algorithm is
# The most draws that are looked for; more have a probability below 1e-60 at the largest mean that is allowed.
MOST_DRAWS, MOST_MEAN = 100_000, 100.0
# How far the number of draws, from 53 bits and a rounded law, may miss its law.
_EXCESS = 1e-11
_GRID = 2.0**20
# How far one held-out record moves a sum of numbers in [0, 1].
SCORE_MOVES = 1.0
# A fit is asked for a little less than it may cost: noise is calibrated to a tolerance.
_ROOM = 1 - 1e-6


@dataclass(frozen=True, kw_only=True)
class SearchPlan:
    """What a search may cost, from public facts. mu: of one fit with its score."""

    mu: float
    gamma: float
    delta: float
    simulation: bool

    @classmethod
    def calibrate(cls, epsilon: float, delta: float, draws: float, *, simulation: bool) -> SearchPlan:
        """The largest mu within epsilon and delta, for a mean number of draws."""
        gamma = float(brentq(lambda gamma: (1 / gamma - 1) / -math.log(gamma) - draws, 1e-9, 1 - 1e-9, xtol=1e-15))

        def at(multiplier: float) -> SearchPlan:
            return cls(mu=1 / multiplier, gamma=gamma, delta=delta, simulation=simulation)

        asked = EpsilonDelta(epsilon=epsilon, delta=delta)
        return at(calibrate_noise(lambda multiplier: at(multiplier).event, asked))

    @property
    def event(self) -> BestOf:
        """What one record goes through in the whole search."""
        return BestOf(self.mu**2 / 2, self.gamma, _EXCESS)

    @property
    def promise(self) -> Guarantee:
        """For whoever sees the fit that was chosen."""
        return prove_release(
            self.event,
            why="a fit on one part of the records and its noisy score on the other are GDP with one mu, and the number "
            "of draws is hidden (docs/privacy.md#private-search)",
            observer=Public(),
            adjacency="replace-one",
            unit="record",
            simulation=self.simulation,
        )

    @property
    def card(self) -> Card:
        """The privacy card: a claim for the public only, since whoever watches the draws sees all fits."""
        return Card.build(
            algorithm=SEARCH,
            parameters={"mu": self.mu, "gamma": self.gamma},
            data={"unit": "record", "adjacency": "replace-one"},
            trust="curator",
            sampler=Seeded(0) if self.simulation else Safe(),
            delta=self.delta,
            promises=[self.promise],
        )


def differences(card: Card) -> list[str]:
    """Entries of a card of a search that its own parameters do not give; empty when all follow."""
    told = card.parameters
    again = SearchPlan(mu=told["mu"], gamma=told["gamma"], delta=card.delta, simulation=card.simulation)
    return compare_all(card, again.card)


def _delegates(name: str) -> Callable[[Any], bool]:
    """Whether the model that is searched can do it, as scikit-learn asks."""
    return lambda search: hasattr(search.estimator, name)


class PrivateSearchCV(MetaEstimatorMixin, PrivateEstimator):  # type: ignore[misc]
    """Chooses parameters of a private linear model within a budget; scikit-learn's interface of a search.

    estimator: its epsilon, delta, ledger and random_state are set by the search, which has one budget for all. It works
    under replace-one. param_grid: names and lists of public values, as in GridSearchCV. draws: the mean number of fits,
    at most 100. validation: the share of the records that scores are computed on. Scores are accuracy, or for
    regressions 1 less the mean of residuals over target_bound, each at most 1, which has to be given.

    Fitted: best_estimator_, best_params_, best_score_ (noisy), classes_, guarantee_, card_, notes_, n_features_in_. How
    many fits there were is secret. How long it took tells something of it: that is not covered.
    """

    adjacency: ClassVar[Adjacency] = "replace-one"  # type: ignore[misc]
    records: ClassVar[None] = None  # type: ignore[misc]

    def __init__(
        self,
        estimator: Any,
        param_grid: Mapping[str, Sequence[Any]],
        *,
        epsilon: float = 1.0,
        delta: float | None = None,
        draws: float = 10.0,
        validation: float = 0.2,
        ledger: Ledger | str | Path | None = None,
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.param_grid = param_grid
        self.epsilon = epsilon
        self.delta = delta
        self.draws = draws
        self.validation = validation
        self.ledger = ledger
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> Self:
        """Search within the budget."""
        self._check_privacy()
        candidates = self._candidates()
        self._warn_of_spending()
        bound, names = bound_of(X), feature_names_of(X)
        with without_warnings():
            X, y = read_records(self, X, y, real=not is_classifier(self.estimator))
            terms = terms_of(self, "PrivateSearchCV", X.shape[0], divides=False)
            plan = SearchPlan.calibrate(
                terms.epsilon, terms.delta, float(self.draws), simulation=isinstance(terms.sampler, Seeded)
            )
            train, held = self._split(X.shape[0])
            with _charge(terms, plan):
                best = None
                for found in self._draw(plan, terms, candidates, X, y, train, held, bound):
                    best = found if best is None or found[0] > best[0] else best
        assert best is not None
        self.best_score_, self.best_params_, self.best_estimator_ = best
        self.guarantee_, self._plan = plan.promise, plan
        # The model that won is released by the search, and costs what the search does: not what one fit would.
        model = self.best_estimator_
        model.guarantee_, model._chosen_by = self.guarantee_, plan
        model._made_names = getattr(self, "feature_names_in_", names)
        said = "Chosen by PrivateSearchCV: card and guarantee are those of the whole search."
        self.notes_ = model.notes_ = (said, *model.notes_, *self._say_spent(terms.ledger))
        return self

    def _make_card(self) -> Card:
        return self._plan.card

    def predict(self, X: Any) -> Any:
        """Predictions of the fit that was chosen."""
        check_is_fitted(self)
        return self.best_estimator_.predict(X)

    @available_if(_delegates("decision_function"))  # type: ignore[untyped-decorator]
    def decision_function(self, X: Any) -> Array:
        """Scores of the fit that was chosen."""
        check_is_fitted(self)
        scores: Array = self.best_estimator_.decision_function(X)
        return scores

    @available_if(_delegates("predict_proba"))  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> Array:
        """Probabilities of the fit that was chosen."""
        check_is_fitted(self)
        chances: Array = self.best_estimator_.predict_proba(X)
        return chances

    @property
    def classes_(self) -> Any:
        """The labels, in the order of scores; a regression has none."""
        return self.best_estimator_.classes_

    def score(self, X: Any, y: Any) -> float:
        """Its score, as in scikit-learn."""
        check_is_fitted(self)
        return float(self.best_estimator_.score(X, y))

    def _draw(
        self,
        plan: SearchPlan,
        terms: PrivacyParams,
        candidates: list[dict[str, Any]],
        X: Any,
        y: Any,
        train: IntArray,
        held: IntArray,
        bound: float | None,
    ) -> Iterator[tuple[float, dict[str, Any], Any]]:
        """Noisy scores with parameters and fits; how many there are is secret."""
        sampler = terms.sampler
        assert sampler is not None
        many = _draw_count(plan.gamma, sampler)
        chosen = _uniforms(sampler, 1, many)
        seeds = _uniforms(sampler, 2, many)
        each = epsilon_of(Gaussian(1 / (plan.mu * _ROOM), 1.0), (1 - EXCESS_SHARE) * terms.delta)
        scorer = Earlier.plan(
            plan.mu, "replace-one", sampler, name="score", add_remove=SCORE_MOVES, replace_one=SCORE_MOVES, size=1
        )
        for number in range(many):
            params = candidates[int(chosen[number] * len(candidates))]
            seed = int(seeds[number] * 2**31) if isinstance(sampler, Seeded) else None
            own = {**self.estimator.get_params(deep=False), **params}
            if own["row_bound"] is None:
                own["row_bound"] = bound  # that of rows that a schema made
            own |= {"epsilon": each, "delta": terms.delta, "ledger": None, "random_state": seed}
            model = type(self.estimator)(**own).fit(X[train], y[train])
            cost = gdp(model.guarantee_.event)
            # All that samplers may miss their laws by, in all draws, has room in what is set aside for their number.
            if cost is None or cost > plan.mu or MOST_MEAN * excess(model.guarantee_.event) > _EXCESS:
                raise PrivacyError("PrivateSearchCV: a fit cost more than its share; this is a fault to report.")
            right = self._count_right(model, X[held], y[held])
            noisy = scorer.release(number, np.array([right]), terms.adjacency, sampler, lambda record: None)
            yield float(noisy[0]) / len(held), params, model

    def _count_right(self, model: Any, X: Any, y: Any) -> float:
        """A sum over records of numbers in [0, 1], which are cut to multiples of 2^-20: their sum is not rounded."""
        predicted = model.predict(X)
        if is_classifier(self.estimator):
            return float(np.count_nonzero(predicted == y))
        missed = np.minimum(np.abs(predicted - y) / float(self.estimator.target_bound), 1.0)
        return float(np.sum(np.floor((1 - missed) * _GRID))) / _GRID

    def _split(self, rows: int) -> tuple[IntArray, IntArray]:
        """By place, with a public permutation: a record that is replaced stays in its part."""
        order = np.random.default_rng(0).permutation(rows)
        many = math.floor(self.validation * rows)
        if not 0 < many < rows:
            raise InputError(
                f"PrivateSearchCV(validation={self.validation}): of {rows} records none would be left for one part."
            )
        return np.sort(order[many:]), np.sort(order[:many])

    def _candidates(self) -> list[dict[str, Any]]:
        owner, estimator = "PrivateSearchCV", self.estimator
        if math.isinf(self.epsilon):
            raise InputError(f"{owner}(epsilon=inf): without a budget nothing is random; use GridSearchCV.")
        if not isinstance(estimator, PrivateLinearModel) or estimator.adjacency != "replace-one":
            raise InputError(
                f"{owner}(estimator={type(estimator).__name__}): a private linear model is needed, under replace-one, "
                "since a record that is added or removed would move others between the parts; what comes before the "
                "model, such as SchemaTransformer, is applied first."
            )
        if not is_classifier(estimator) and getattr(estimator, "target_bound", None) is None:
            raise InputError(f"{owner}(estimator=...): scores of a regression need a public target_bound; give one.")
        if is_classifier(estimator) and (estimator.classes is None or isinstance(estimator.classes, str)):
            raise InputError(
                f"{owner}(estimator=...): every fit would look for labels, or take those of its own part of the "
                "records; declare classes=[...]."
            )
        if not is_number(self.draws) or not 1.01 <= self.draws <= MOST_MEAN:
            raise InputError(f"{owner}(draws={self.draws!r}): a mean number of fits lies in [1.01, {MOST_MEAN:g}].")
        if not is_number(self.validation) or not 0 < self.validation < 1:
            raise InputError(f"{owner}(validation={self.validation!r}): a share of the records lies in (0, 1).")
        grid = self.param_grid
        if (
            not isinstance(grid, Mapping)
            or not grid
            or not all(isinstance(v, list | tuple) and v for v in grid.values())
        ):
            raise InputError(f"{owner}(param_grid=...): a dictionary from names to lists of values is needed.")
        fixed = {"epsilon", "delta", "adjacency", "records", "ledger", "random_state", "classes"}
        strange = [name for name in grid if name in fixed or name not in estimator.get_params(deep=False)]
        if strange:
            raise InputError(
                f"{owner}(param_grid=...): {strange[0]!r} is not a parameter that can be searched; the budget, the "
                "ledger, the seed and the labels belong to the search."
            )
        names = list(grid)
        return [dict(zip(names, values, strict=True)) for values in itertools.product(*grid.values())]


def _draw_count(gamma: float, sampler: Sampler) -> int:
    """A logarithmic number of draws."""
    return int(np.searchsorted(_law_of_count(gamma), _uniforms(sampler, 0, 1)[0])) + 1


@lru_cache(maxsize=1)
def _law_of_count(gamma: float) -> Array:
    """Probabilities of at most 1, 2, ... draws."""
    many = np.arange(1, MOST_DRAWS + 1)
    below: Array = np.cumsum(np.exp(many * math.log1p(-gamma)) / many) / -math.log(gamma)
    return below


def _uniforms(sampler: Sampler, which: int, many: int) -> Array:
    key = Key(parties=np.zeros(1, dtype=np.int64), round=2**31 + 2**20 + which, release=0, repetition=0, stream=1)
    drawn: Array = sampler.uniform(key, many)[0]
    return drawn


class _charge:  # noqa: N801 - a context like a function
    """Reserve the search before anything is drawn, commit it at the end; what fails stays charged."""

    def __init__(self, terms: PrivacyParams, plan: SearchPlan) -> None:
        self.ledger, self.plan = terms.ledger, plan
        self.run_id = f"{terms.owner}-{uuid.uuid4()}"

    def __enter__(self) -> None:
        if self.ledger is not None:
            self.ledger.reserve(self.run_id, charges_of([self.plan.promise]), what="a private search")

    def __exit__(self, *failure: object) -> None:
        if self.ledger is not None and failure[0] is None:
            self.ledger.commit(self.run_id)
