"""The budget ledger of a data set: append-only, hash-chained, enforced across processes and crashes."""

from __future__ import annotations

from consenso.privacy.ledger.book import Balance, Ledger, Receipt, Verdict, verify_file
from consenso.privacy.ledger.budgets import Budget, Scope
from consenso.privacy.ledger.chain import Anchor, ChainFault
from consenso.privacy.ledger.costs import charges_of
from consenso.privacy.ledger.history import Run
from consenso.privacy.ledger.timeline import Spending, follow_spending

__all__ = [
    "Anchor",
    "Balance",
    "Budget",
    "ChainFault",
    "Ledger",
    "Receipt",
    "Run",
    "Scope",
    "Spending",
    "Verdict",
    "charges_of",
    "follow_spending",
    "verify_file",
]
