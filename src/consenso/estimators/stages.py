"""What a fit releases before it starts, within one budget that is fixed, and reserved, before anything is drawn."""

from __future__ import annotations

import math
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from consenso.arrays import Array
from consenso.estimators.privacy_params import PrivacyParams
from consenso.privacy.earlier import Earlier
from consenso.privacy.events import Event, Gaussian
from consenso.privacy.guarantee import Guarantee
from consenso.privacy.ledger import Scope
from consenso.privacy.observers import Eavesdropper, Observer
from consenso.privacy.relations import Relation, bounds_of
from consenso.privacy.releaser import ReleaseRecord
from consenso.privacy.theorems import Composition
from consenso.problem import Unit


@dataclass(kw_only=True)
class Stages:
    """The terms of a fit, and what was released so far.

    `terms` are those of what follows: they have no ledger, since everything is reserved.
    """

    terms: PrivacyParams
    released: list[ReleaseRecord] = field(default_factory=list)
    begun: bool = False

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
        """Counts with noise."""
        assert self.terms.sampler is not None
        return planned.release(time, exact, self.terms.adjacency, self.terms.sampler, self.released.append)


@contextmanager
def open_stages(terms: PrivacyParams, share: float, what: str) -> Iterator[Stages]:
    """Reserve the whole budget of a fit that first releases something for a share of the squared budget.

    Without a share nothing is reserved, and the fit is charged by itself. Replacing a unit is removing one and adding
    another, whatever is released.
    """
    if share == 0 or terms.ledger is None:
        yield Stages(terms=replace(terms, share=share))
        return
    from consenso.engine.ledger_charge import LedgerCharge, reserve

    mu, excess = terms.whole_mu, terms.whole_excess
    steps = {"add-remove": 1.0, "replace-one": 2.0} if terms.adjacency == "add-remove" else {"replace-one": 1.0}
    charges = {
        Scope(observer=Eavesdropper().key, unit=terms.unit, adjacency=adjacency): Gaussian(1 / mu, moved, excess)  # type: ignore[arg-type]
        for adjacency, moved in steps.items()
    }
    stages = Stages(terms=replace(terms, share=share, ledger=None))
    charge = LedgerCharge(ledger=terms.ledger, run_id=f"{terms.owner}-{uuid.uuid4()}")
    with reserve(charge, charges, f"{terms.owner}: {what}", lambda: stages.begun or bool(stages.released)):
        yield stages


def prove_release(
    event: Event, *, why: str, observer: Observer, adjacency: Relation, unit: Unit, simulation: bool
) -> Guarantee:
    """What whoever sees a release that stands by itself can learn of a unit that went through this event."""
    theorem = Composition(released=event, why=why, adjacency=bounds_of(adjacency), unit=unit)
    return Guarantee.of(theorem, observer, adjacency, simulation=simulation)
