"""A party's own budget: whether its own ledger allows a run, asked before the party releases anything."""

from __future__ import annotations

from typing import Protocol

from consenso.engine.continuation import draws_private_noise
from consenso.engine.ledger_charge import LedgerCharge
from consenso.errors import PrivacyError
from consenso.federation.disk import Disk, LiveDisk
from consenso.planning.plan import Plan
from consenso.privacy.ledger import charges_of


class BudgetGuard(Protocol):
    """Who is asked whether a party may spend."""

    @property
    def charge(self) -> LedgerCharge | None:
        """The ledger that is charged, which also says which copy of a run goes on; None where nothing is protected."""
        ...

    def open(self) -> None:
        """Reserve all that the run may cost, or raise; asking again for the same run changes nothing."""
        ...

    def close(self) -> None:
        """The run has ended: what was reserved is spent."""
        ...


class LedgerGuard:
    """A ledger on the party's own disk, charged with the most that the plan can cost, as the party computes it."""

    def __init__(self, plan: Plan, charge: LedgerCharge) -> None:
        if not plan.sampler.private:
            raise PrivacyError(
                "a seeded run is a simulation and protects nobody, whatever a ledger says; leave the ledger out, or "
                "remove the seed."
            )
        self._plan, self.charge, self._asked = plan, charge, False

    def open(self) -> None:
        """Reserve; a run that goes on after a restart keeps its reservation."""
        if self._asked:
            return
        ledger, plan = self.charge.ledger, self._plan
        if any(run.run_id == self.charge.run_id and run.state == "committed" for run in ledger.runs()):
            self._asked = True  # the run ended before: what it repeats was paid for
            return
        deltas = [balance.budget.delta for balance in ledger.balances()]
        guarantees = plan.prove_all(min(deltas))
        what = f"{type(plan.algorithm).__name__}, {plan.rounds} rounds"
        ledger.reserve(self.charge.run_id, charges_of(guarantees), what=what)
        self._asked = True

    def close(self) -> None:
        """Commit all of it: a run that stopped early may have stopped because of what it saw."""
        self.charge.ledger.commit(self.charge.run_id)


def go_on_with(disk: Disk, guard: BudgetGuard) -> LiveDisk:
    """A party's disk, where the ledger knows it as the one that goes on; refuses a copy of a run that went on."""
    charge = guard.charge
    if charge is None:
        return LiveDisk(disk, None, disk.run)
    return LiveDisk(disk, charge.ledger, f"{charge.run_id}/{disk.owner}")


class NoBudget:
    """No ledger: for seeded runs and for runs without any noise, which protect nobody and say so."""

    charge = None

    def __init__(self, plan: Plan) -> None:
        if draws_private_noise(plan):
            raise PrivacyError(
                "a party charges what it releases to a ledger of its own, and none was named; make one with "
                "`consenso ledger create` and name it with --ledger."
            )

    def open(self) -> None:
        """Reserve nothing: there is no ledger."""

    def close(self) -> None:
        """Commit nothing: there is no ledger."""
