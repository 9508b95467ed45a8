"""A party's own budget: whether its own ledger allows a run, asked before the party releases anything."""

from __future__ import annotations

from typing import Protocol

from consenso.errors import PrivacyError
from consenso.privacy.ledger import charges_of
from consenso.privacy.noise import NoNoise
from consenso.runtime.charge import Charge
from consenso.runtime.plan import Plan


class Allowance(Protocol):
    """Who is asked whether a party may spend."""

    def open(self) -> None:
        """Reserve all that the run may cost, or raise; asking again for the same run changes nothing."""
        ...

    def close(self) -> None:
        """The run has ended: what was reserved is spent."""
        ...


class LedgerAllowance:
    """A ledger on the party's own disk, charged with the most that the plan can cost, as the party computes it."""

    def __init__(self, plan: Plan, charge: Charge) -> None:
        if not plan.setting.doorway.sampler.private:
            raise PrivacyError(
                "a seeded run is a simulation and protects nobody, whatever a ledger says; leave the ledger out, or "
                "remove the seed."
            )
        self._plan, self._charge, self._asked = plan, charge, False

    def open(self) -> None:
        """Reserve; a run that goes on after a restart keeps its reservation."""
        if self._asked:
            return
        ledger, plan = self._charge.ledger, self._plan
        if any(run.run_id == self._charge.run_id and run.state == "committed" for run in ledger.runs()):
            self._asked = True  # the run ended before: what it repeats was paid for
            return
        deltas = [balance.budget.delta for balance in ledger.balances()]
        guarantees = [promise.guarantee for promise in plan.every_promise(min(deltas))]
        what = f"{type(plan.algorithm).__name__}, {plan.setting.rounds} rounds"
        ledger.reserve(self._charge.run_id, charges_of(guarantees), what=what)
        self._asked = True

    def close(self) -> None:
        """Commit all of it: a run that stopped early may have stopped because of what it saw."""
        self._charge.ledger.commit(self._charge.run_id)


class Unledgered:
    """No ledger: for seeded runs and for runs without any noise, which protect nobody and say so."""

    def __init__(self, plan: Plan) -> None:
        doorway = plan.setting.doorway
        if doorway.sampler.private and not all(isinstance(noise, NoNoise) for noise in doorway.noise.values()):
            raise PrivacyError(
                "a party charges what it releases to a ledger of its own, and none was named; make one with "
                "`consenso ledger create` and name it with --ledger."
            )

    def open(self) -> None:
        """Nothing to reserve."""

    def close(self) -> None:
        """Nothing to commit."""
