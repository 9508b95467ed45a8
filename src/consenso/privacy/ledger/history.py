"""What the rows of a ledger say, read from the first to the last."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import Any, Literal

from consenso import registry
from consenso.errors import ConsensoError
from consenso.privacy.ledger.budgets import Budget, Charges, charges_from_json, find_covering
from consenso.privacy.ledger.chain import ChainFault, ChainRow, canonical

State = Literal["reserved", "committed", "released"]

_FIELDS: dict[str, frozenset[str]] = {
    "create": frozenset({"kind", "time", "dataset", "budgets"}),
    "reserve": frozenset({"kind", "time", "run", "what", "charges"}),
    "commit": frozenset({"kind", "time", "run", "charges", "exceeds"}),
    "release": frozenset({"kind", "time", "run", "reason"}),
}


@dataclass(frozen=True, kw_only=True)
class Run:
    """One run: what it announced, and what it is charged now."""

    run_id: str
    what: str
    state: State
    reserved: Charges
    charged: Charges
    exceeds: tuple[str, ...]  # scopes in which the run spent more than it had reserved
    row: int  # of the reservation
    closed: int | None  # row of the commit or release
    time: str
    period: str  # the month (UTC) of a budget that renews: that of the reservation, never before that of an earlier run


@dataclass(frozen=True, kw_only=True)
class History:
    """The data set, its budgets and every run, in the order of their reservations."""

    dataset: str
    budgets: tuple[Budget, ...]
    runs: dict[str, Run]

    def list_charges(self, budget: Budget | None = None, period: str = "") -> list[Charges]:
        """Costs of the runs that count: committed, or reserved and never heard of again.

        Of a budget that renews, those of one period.
        """
        every = budget is None or budget.renews is None
        return [
            run.charged for run in self.runs.values() if run.state != "released" and (every or run.period == period)
        ]

    def period_at(self, time: str) -> str:
        """The period of a run that is reserved now: a clock that was set back opens no period a second time."""
        return max([time[:7], *(run.period for run in self.runs.values())])


def replay(rows: tuple[ChainRow, ...]) -> History | ChainFault:
    """The history that sound rows tell, or the first row that does not fit what came before it."""
    dataset, budgets, runs = "", (), {}  # type: str, tuple[Budget, ...], dict[str, Run]
    latest = ""
    for row in rows:
        try:
            content = _content(row)
            if content["kind"] == "create":
                dataset = content["dataset"]
                budgets = tuple(
                    Budget(**{**budget, "unit": registry.rename("units", budget["unit"])})
                    for budget in content["budgets"]
                )
            else:
                run = _run_after(runs.get(content["run"]), row, content, latest)
                latest = max(latest, run.period)
                _check_cover(run, budgets)
                runs[run.run_id] = run
        except (ConsensoError, ValueError, TypeError, KeyError, AttributeError) as error:
            return ChainFault(row=row.number, reason=f"it cannot be read ({error})")
    return History(dataset=dataset, budgets=budgets, runs=runs)


def _content(row: ChainRow) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(row.content)
    if canonical(content).encode() != row.content:
        raise ValueError("it is not canonical JSON")
    kind = content["kind"]
    if content.keys() != _FIELDS[kind]:
        raise ValueError(f"a row of kind {kind!r} has the fields {sorted(_FIELDS[kind])}")
    if (kind == "create") != (row.number == 0):
        raise ValueError(f"a row of kind {kind!r} cannot stand here")
    return content


def _run_after(run: Run | None, row: ChainRow, content: dict[str, Any], latest: str) -> Run:
    if content["kind"] == "reserve":
        if run is not None:
            raise ValueError(f"the run {run.run_id!r} is reserved a second time")
        charges = charges_from_json(content["charges"])
        return Run(
            run_id=content["run"],
            what=content["what"],
            state="reserved",
            reserved=charges,
            charged=charges,
            exceeds=(),
            row=row.number,
            closed=None,
            time=content["time"],
            period=max(latest, content["time"][:7]),
        )
    if run is None or run.state != "reserved":
        raise ValueError(f"the run {content['run']!r} has no open reservation")
    if content["kind"] == "release":
        return replace(run, state="released", charged={}, closed=row.number)
    charges = charges_from_json(content["charges"])
    if not charges.keys() >= run.reserved.keys():
        raise ValueError(f"the run {run.run_id!r} drops a cost that it had reserved")
    exceeds = tuple(content["exceeds"])
    return replace(run, state="committed", charged=charges, exceeds=exceeds, closed=row.number)


def _check_cover(run: Run, budgets: tuple[Budget, ...]) -> None:
    for budget in budgets:
        if run.state != "released" and not find_covering(run.charged, budget):
            raise ValueError(f"the run {run.run_id!r} charges nothing to the budget {budget}")
