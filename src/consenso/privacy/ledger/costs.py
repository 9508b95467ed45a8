"""What runs cost a budget together: their curves are composed, never their epsilons added.

Whoever asks for a run has seen what earlier runs released, and may have chosen it by that. Of two curves each of which
fits into a budget, none may fit where results choose between them. So the runs after the first one are either all
Gaussian, which are ordered by one number, or their Renyi divergences are added up at one order that the budget decides;
and the two share delta, together with what samplers miss and what is told by name, which results may choose as well
(docs/privacy.md#runs-that-are-chosen-by-results).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from consenso.errors import BudgetError
from consenso.privacy.events import Event, compose, repeat
from consenso.privacy.guarantee import Guarantee
from consenso.privacy.ledger.budgets import Budget, Charges, Scope, explain_uncovered, find_covering
from consenso.privacy.rounding import round_down, round_up

if TYPE_CHECKING:
    from consenso.privacy.accountants import Cost

MISSED = "labels and categories that are told by name"
# Deltas at which the costs of different parties are compared.
_LOOKS = (1e-1, 1e-3, 1e-5, 1e-7, 1e-9, 1e-12)
# Of the delta of a budget, what histories have in which a run after the first is not Gaussian; and what all histories
# have for samplers that miss their laws and for names that are told: ten fits that look for labels with this delta.
OTHER_SHARE, MISSED_SHARE = 0.01, 0.1
GAUSSIAN_SHARE = 1 - OTHER_SHARE - MISSED_SHARE
# Several runs get no more than this, whatever the budget: exp(epsilon) multiplies what samplers miss.
MOST_EPSILON = 300.0


def charge(charges: Charges, budget: Budget) -> Event:
    """What a run's stated costs charge to a budget, which one of them must cover."""
    from consenso.privacy.accountants import epsilon

    found = find_covering(charges, budget)
    # Each of them is a valid cost; ties are broken by text so that every process charges the same one.
    return found[0] if len(found) == 1 else min(found, key=lambda event: (epsilon(event, budget.delta), repr(event)))


def add_up(runs: Iterable[Charges], budget: Budget) -> Cost:
    """What runs cost a budget together, in the order in which they were reserved, however each was chosen."""
    from consenso.privacy.accountants import Cost, best, gdp, ideal, pure

    events = [charge(charges, budget) for charges in runs]
    counts = Counter(events)  # equal runs become one repeat, whatever stood between them
    composed = compose(*(repeat(event, counts[event]) for event in sorted(counts, key=repr)))
    if len(events) < 2 or budget.delta == 0:
        return best(composed, budget.delta)
    budget = replace(budget, epsilon=min(budget.epsilon, MOST_EPSILON))
    if _find_missed(composed, budget) > MISSED_SHARE * budget.delta:
        return Cost(math.inf, MISSED)
    found = [_add_divergences(events, budget)]
    if all(gdp(event) is not None for event in events[1:]):
        found.append(ideal(composed, GAUSSIAN_SHARE * budget.delta))
    added = pure(composed)
    if added is not None:
        found.append(Cost(added, "pure"))
    least = min(found, key=lambda cost: cost.epsilon)
    return least if least.epsilon <= MOST_EPSILON else Cost(math.inf, least.method)


def _find_missed(event: Event, budget: Budget) -> float:
    """What samplers that miss their laws and names that are told add to the delta of a budget."""
    from consenso.privacy.accountants import excess, find_told

    return find_told(event) + (1 + math.exp(budget.epsilon)) * excess(event)


def _add_divergences(events: Sequence[Event], budget: Budget) -> Cost:
    """The epsilon of Renyi divergences that are added up at the order of a budget."""
    from consenso.privacy.accountants import Cost, rdp

    share = OTHER_SHARE * budget.delta
    order, _ = choose_order(budget.epsilon, share)
    total = math.fsum(rdp(event, order) for event in events)
    return Cost(max(total + _convert(order, share), 0.0), f"RDP of order {order:.4g}")


@lru_cache(maxsize=64)
def choose_order(epsilon: float, delta: float) -> tuple[float, float]:
    """The order at which a budget lets zCDP runs spend most, whole where that is cheaper; and what it lets them."""
    orders = 1 + np.geomspace(0.01, 1e4, 2000)
    orders = np.where(orders > 4, np.rint(orders), orders)
    left = np.array([epsilon - _convert(float(order), delta) for order in orders])
    best = int(np.argmax(left / orders))
    return float(orders[best]), float(left[best])


def _convert(order: float, delta: float) -> float:
    """What is added to a Renyi divergence to make an epsilon of it."""
    return math.log1p(-1 / order) - (math.log(delta) + math.log(order)) / (order - 1)


def refuse_overspending(run_id: str, before: list[Charges], asked: Charges, budget: Budget) -> None:
    """Raise unless a budget covers all runs before and what a new run asks for."""
    from consenso.privacy.accountants import epsilon

    if not find_covering(asked, budget):
        raise BudgetError(
            f"Ledger.reserve(run_id={run_id!r}): the budget {budget} applies and {explain_uncovered(asked, budget)}."
        )
    cost = add_up([*before, asked], budget)
    total = cost.epsilon
    if total <= budget.epsilon:
        return
    if cost.method == MISSED:
        raise BudgetError(
            f"Ledger.reserve(run_id={run_id!r}): of the delta of the budget {budget}, {MISSED_SHARE:.0%} is for labels "
            "and categories that are told by name and for samplers that miss their laws, and with this run that would "
            "be exceeded; declare classes=[...] and categories, or take a smaller delta for each fit."
        )
    spent = add_up(before, budget).epsilon
    alone = epsilon(charge(asked, budget), budget.delta)
    raise BudgetError(
        f"Ledger.reserve(run_id={run_id!r}): of the budget {budget}, {round_up(spent, 6)} is spent and "
        f"{round_down(max(budget.epsilon - spent, 0.0), 6)} is left; this run asks for "
        f"{round_up(alone, 6)}, which would make {round_up(total, 6)} in all; run fewer rounds or add more noise."
    )


def find_exceeded(reserved: Charges, charged: Charges, budgets: Iterable[Budget]) -> tuple[str, ...]:
    """Scopes in which more was spent than reserved, at any delta that a budget uses."""
    from consenso.privacy.accountants import epsilon

    deltas = sorted({budget.delta for budget in budgets})
    found = []
    for scope, event in charged.items():
        before = reserved.get(scope)
        if event == before:
            continue
        if before is None or any(epsilon(event, delta) > epsilon(before, delta) for delta in deltas):
            found.append(str(scope))
    return tuple(sorted(found))


def charges_of(guarantees: Iterable[Guarantee]) -> dict[Scope, Event]:
    """What to reserve for a run that gives these guarantees.

    What is claimed of a blanked record is no budget's scope and is left out. Several for one scope are those of
    different kinds of parties. The worst of them is charged; where none is the worst at every delta, those that are the
    worst somewhere are charged together, because a later run may meet either.
    """
    found: dict[Scope, dict[Event, None]] = {}
    for guarantee in guarantees:
        if guarantee.adjacency == "blanked":
            continue
        scope = Scope(observer=guarantee.observer, unit=guarantee.unit, adjacency=guarantee.adjacency)
        found.setdefault(scope, {})[guarantee.event] = None
    return {scope: compose(*_worst(list(events))) for scope, events in found.items()}


def _worst(events: list[Event]) -> list[Event]:
    """The event that costs the most at every delta, or those of which each costs the most at some delta."""
    from consenso.privacy.accountants import epsilon

    if len(events) == 1:
        return events
    costs = {event: [epsilon(event, delta) for delta in _LOOKS] for event in events}
    most = [max(column) for column in zip(*costs.values(), strict=True)]
    for event, own in costs.items():
        if own == most:
            return [event]
    return [event for event, own in costs.items() if any(a == b > 0 for a, b in zip(own, most, strict=True))]
