"""What runs cost a budget together: their curves are composed, never their epsilons added."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from consenso.errors import BudgetError
from consenso.privacy.events import Event, compose, repeat
from consenso.privacy.guarantee import Guarantee
from consenso.privacy.ledger.budgets import Budget, Charges, Scope, explain_uncovered, find_covering

# Deltas at which the costs of different parties are compared.
_LOOKS = (1e-1, 1e-3, 1e-5, 1e-7, 1e-9, 1e-12)


def charge(charges: Charges, budget: Budget) -> Event:
    """What a run's stated costs charge to a budget, which one of them must cover."""
    from consenso.privacy.accountants import epsilon

    found = find_covering(charges, budget)
    # Each of them is a valid cost; ties are broken by text so that every process charges the same one.
    return found[0] if len(found) == 1 else min(found, key=lambda event: (epsilon(event, budget.delta), repr(event)))


def together(runs: Iterable[Charges], budget: Budget) -> Event:
    """What many runs charge to a budget, as one event; equal runs become one repeat, whatever stood between them."""
    counts = Counter(charge(charges, budget) for charges in runs)
    return compose(*(repeat(event, counts[event]) for event in sorted(counts, key=repr)))


def refuse_overspending(run_id: str, before: list[Charges], asked: Charges, budget: Budget) -> None:
    """Raise unless a budget covers all runs before and what a new run asks for."""
    from consenso.privacy.accountants import epsilon

    if not find_covering(asked, budget):
        raise BudgetError(
            f"Ledger.reserve(run_id={run_id!r}): the budget {budget} applies and {explain_uncovered(asked, budget)}."
        )
    total = epsilon(together([*before, asked], budget), budget.delta)
    if total <= budget.epsilon:
        return
    spent = epsilon(together(before, budget), budget.delta)
    alone = epsilon(charge(asked, budget), budget.delta)
    raise BudgetError(
        f"Ledger.reserve(run_id={run_id!r}): of the budget {budget}, {spent:.6g} is spent and "
        f"{max(budget.epsilon - spent, 0.0):.6g} is left; this run asks for {alone:.6g}, which would make {total:.6g} "
        "in all; run fewer rounds or add more noise."
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
