"""What a fit releases before it starts, within one budget that is fixed, and reserved, before anything is drawn."""

from __future__ import annotations

import math
import uuid
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from consenso.arrays import Array
from consenso.estimators.privacy_params import PrivacyParams
from consenso.privacy.earlier import Earlier
from consenso.privacy.events import Event, Gaussian, Told, compose
from consenso.privacy.guarantee import Guarantee
from consenso.privacy.ledger import Scope
from consenso.privacy.observers import Eavesdropper, Observer
from consenso.privacy.relations import Relation, bounds_of
from consenso.privacy.releaser import ReleaseRecord
from consenso.privacy.theorems import Composition
from consenso.problem import Adjacency, Unit

if TYPE_CHECKING:
    from consenso.engine.ledger_charge import LedgerCharge


class Stages:
    """The terms of a fit, and what was released so far.

    `terms` are those of what follows: they have no ledger once everything is reserved.
    """

    def __init__(self, terms: PrivacyParams) -> None:
        self.terms = terms
        self.released: list[ReleaseRecord] = []
        self.begun = False

    @contextmanager
    def reserve(self, share: float, what: str, *, replaced: float = 2.0) -> Iterator[None]:
        """Reserve the whole budget of a fit that first releases something for a share of the squared budget.

        Without a share nothing is reserved, and the fit is charged by itself. replaced: how much more than adding or
        removing a unit replacing one costs, in mu.
        """
        terms = self.terms
        charge = make_charge(terms) if share else None
        self.terms = replace(terms, share=share, ledger=terms.ledger if charge is None else None)
        if charge is None:
            yield
            return
        has_released = lambda: self.begun or bool(self.released)  # noqa: E731
        with reserve_budget(charge, terms, terms.whole_mu, what, has_released, replaced):
            yield

    def begin(self) -> None:
        """The fit, or a count of its records, is about to release something: from now on nothing is given back."""
        self.begun = True

    def plan(self, share: float, **told: Any) -> Earlier:
        """A release with a share of the squared budget, put on the card; see `Earlier`."""
        terms = self.terms
        assert terms.sampler is not None
        mu = math.sqrt(share) * terms.whole_mu
        made = Earlier.plan(mu, terms.adjacency, terms.sampler, place=len(terms.earlier), **told)
        self.terms = replace(terms, earlier=(*terms.earlier, made))
        return made

    def release(self, planned: Earlier, time: int, exact: Array) -> Array:
        assert self.terms.sampler is not None
        return planned.release(time, exact, self.terms.adjacency, self.terms.sampler, self.released.append)


def make_charge(terms: PrivacyParams) -> LedgerCharge | None:
    """The ledger of the terms, and a new name there."""
    if terms.ledger is None:
        return None
    from consenso.engine.ledger_charge import LedgerCharge

    return LedgerCharge(ledger=terms.ledger, run_id=f"{terms.owner}-{uuid.uuid4()}")


def reserve_budget(
    charge: LedgerCharge | None,
    terms: PrivacyParams,
    mu: float,
    what: str,
    has_released: Callable[[], bool],
    replaced: float = 2.0,
) -> AbstractContextManager[None]:
    """Reserve one mu for whatever is released in a block: replacing a unit is removing one and adding another.

    replaced: less than 2 where the two move different numbers.
    """
    if charge is None:
        return nullcontext()
    from consenso.engine.ledger_charge import reserve

    steps: dict[Adjacency, float] = {"add-remove": 1.0, "replace-one": replaced}
    if terms.adjacency == "replace-one":
        steps = {"replace-one": 1.0}
    charges = {
        Scope(observer=Eavesdropper().key, unit=terms.unit, adjacency=adjacency): compose(
            Gaussian(1 / mu, moved, terms.excess), Told(terms.tells)
        )
        for adjacency, moved in steps.items()
    }
    return reserve(charge, charges, f"{terms.owner}: {what}", has_released)


def prove_release(
    event: Event, *, why: str, observer: Observer, adjacency: Relation, unit: Unit, simulation: bool
) -> Guarantee:
    """What whoever sees a release that stands by itself can learn of a unit that went through this event."""
    theorem = Composition(released=event, why=why, adjacency=bounds_of(adjacency), unit=unit)
    return Guarantee.of(theorem, observer, adjacency, simulation=simulation)
