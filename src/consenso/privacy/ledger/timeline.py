"""What was spent of each budget, row by row: the ledger as a curve over time."""

from __future__ import annotations

from dataclasses import dataclass

from consenso.privacy.ledger.book import Ledger
from consenso.privacy.ledger.budgets import Budget
from consenso.privacy.ledger.chain import ChainFault
from consenso.privacy.ledger.costs import add_up
from consenso.privacy.ledger.history import replay

# Rows between which nothing is computed when there are more of them: every point costs an accounting.
MOST_POINTS = 200


@dataclass(frozen=True, kw_only=True)
class Spending:
    """One budget, and what was spent of it after each row that is shown."""

    budget: Budget
    times: tuple[str, ...]
    spent: tuple[float, ...]  # in the period of that moment, of a budget that renews


def follow_spending(ledger: Ledger) -> tuple[Spending, ...]:
    """Every budget of a ledger over time; of a long ledger some of the rows, the last one among them."""
    rows = ledger.rows()
    stride = -(-len(rows) // MOST_POINTS)
    shown = sorted({*range(0, len(rows), stride), len(rows) - 1})
    times: list[str] = []
    spent: dict[Budget, list[float]] = {budget: [] for budget in ledger.budgets}
    for number in shown:
        history = replay(rows[: number + 1])
        assert not isinstance(history, ChainFault), "the ledger was checked as a whole"
        time = rows[number].time
        times.append(time)
        for budget, values in spent.items():
            charged = history.list_charges(budget, history.period_at(time))
            values.append(add_up(charged, budget).epsilon)
    return tuple(Spending(budget=budget, times=tuple(times), spent=tuple(values)) for budget, values in spent.items())
