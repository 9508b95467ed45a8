"""A run and its budget: reserved before data are touched, committed at the end, kept where a crash leaves it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from consenso.engine.in_process import InProcessRun
from consenso.errors import PrivacyError
from consenso.privacy.events import Event
from consenso.privacy.ledger import Ledger, Scope, charges_of


@dataclass(frozen=True, kw_only=True)
class LedgerCharge:
    """Which ledger a run is charged to, and the name of the run there.

    A run that goes on from its checkpoint keeps its name; without a checkpoint a name is used once.
    """

    ledger: Ledger
    run_id: str


@contextmanager
def charge_run(
    run: InProcessRun, charge: LedgerCharge | None, *, open_: Callable[[], None], fresh: bool
) -> Iterator[None]:
    """Reserve all that the plan may cost; commit it when the block ends.

    The most is charged that the plan allows: a run that stopped early may have stopped because of what it saw. A
    reservation is given back only when a `fresh` run fails before anything went through the releaser. `open_` makes the
    run the one continuation, and raises where another copy of it went on: that leaves what was charged as it is.
    """
    if charge is None:
        open_()
        yield
        return
    plan = run.plan
    if not plan.sampler.private:
        raise PrivacyError(
            "run(charge=...): seeded noise protects nobody, whatever a ledger says; plan with sampler=Safe(), or "
            "simulate without a ledger."
        )
    if any(each.run_id == charge.run_id and each.state == "committed" for each in charge.ledger.runs()):
        open_()  # it was charged in full, and what is left to do is paid for
        yield
        return
    deltas = [balance.budget.delta for balance in charge.ledger.balances()]
    guarantees = plan.prove_all(min(deltas))
    what = f"{type(plan.algorithm).__name__}, {plan.rounds} rounds"
    is_continuation = False
    with reserve(charge, charges_of(guarantees), what, lambda: not (fresh and is_continuation) or len(run.entries) > 0):
        # A copy that is refused here leaves what was charged as it is: it is the charge of the run that went on.
        open_()
        is_continuation = True
        yield


@contextmanager
def reserve(
    charge: LedgerCharge, charges: Mapping[Scope, Event], what: str, has_released: Callable[[], bool]
) -> Iterator[None]:
    """Reserve costs, commit them when the block ends, give them back if it fails before anything was released."""
    charge.ledger.reserve(charge.run_id, charges, what=what)
    try:
        yield
    except BaseException as error:
        if not has_released():
            reason = f"stopped by {type(error).__name__} before anything was released"
            charge.ledger.release(charge.run_id, nothing_was_released=True, reason=reason)
        raise
    charge.ledger.commit(charge.run_id)
