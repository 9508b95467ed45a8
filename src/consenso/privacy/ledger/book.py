"""The ledger of one data set: what it may cost in all, what it has cost, and who is still spending."""

from __future__ import annotations

import datetime
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from consenso.errors import BudgetError, InputError, TamperError
from consenso.privacy.events import Event
from consenso.privacy.guarantee import Guarantee
from consenso.privacy.ledger import lease, store, tokens
from consenso.privacy.ledger.budgets import Budget, Charges, Scope, charges_json
from consenso.privacy.ledger.chain import Anchor, ChainFault, ChainRow, check_pin
from consenso.privacy.ledger.costs import add_up, find_exceeded, refuse_overspending
from consenso.privacy.ledger.history import History, Run, replay
from consenso.privacy.serial import from_json


@dataclass(frozen=True, kw_only=True)
class Balance:
    """One budget and what all runs together have charged to it."""

    budget: Budget
    spent: float  # in this period, of a budget that renews
    method: str
    period: str | None = None  # a month, of a budget that renews
    overall: float = 0.0  # epsilon of all runs of all periods, composed

    @property
    def left(self) -> float:
        """Epsilon not yet spent; below zero when a run spent more than it had reserved."""
        return self.budget.epsilon - self.spent


@dataclass(frozen=True, kw_only=True)
class Receipt:
    """Proof of an entry: its row, and the hash of the chain up to it, which can be pinned."""

    run_id: str
    row: int
    head: str


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """Whether a ledger can be believed: no fault, and what it was checked against."""

    path: Path
    rows: int
    head: str
    fault: ChainFault | None

    @property
    def sound(self) -> bool:
        """True when nothing was found."""
        return self.fault is None


@dataclass(frozen=True, kw_only=True)
class Ledger:
    """The budget ledger of one data set, shared by all processes that touch the data.

    `reserve` before data are touched, `commit` when the run has ended, `release` only if nothing left the run.
    A reservation that is never committed stays charged in full: what a crashed run may have released is not known.

        ledger = Ledger.create("adult.ledger", dataset="adult", budgets=[Budget(observer="public", unit="record",
                               adjacency="replace-one", epsilon=1.0, delta=1e-5)])
        ledger.reserve("run-1", {Scope(observer="public", unit="record", adjacency="replace-one"): event}, what="...")
        ledger.commit("run-1")
    """

    path: Path
    dataset: str
    budgets: tuple[Budget, ...]
    timeout: float = 120.0

    @classmethod
    def create(cls, path: str | Path, *, dataset: str, budgets: Iterable[Budget], timeout: float = 120.0) -> Ledger:
        """A new ledger with its budgets, which never change; an existing file is never replaced."""
        stated = tuple(budgets)
        if not dataset.strip():
            raise InputError(f"Ledger.create(dataset={dataset!r}): a data set has a name; give one.")
        if not stated:
            raise InputError("Ledger.create(budgets=[]): a ledger enforces at least one budget; give one.")
        keys = [(budget.scope, budget.delta) for budget in stated]
        if len(set(keys)) < len(keys):
            raise InputError("Ledger.create(budgets=...): two budgets have the same scope and delta; keep one of them.")
        content = {
            "kind": "create",
            "time": _now(),
            "dataset": dataset,
            # What says nothing is left out: ledgers that never renew stay readable by earlier versions.
            "budgets": [{n: value for n, value in asdict(each).items() if value is not None} for each in stated],
        }
        store.create(Path(path).resolve(), content, timeout)
        return cls.open(path, timeout=timeout)

    @classmethod
    def open(cls, path: str | Path, *, timeout: float = 120.0) -> Ledger:
        """An existing ledger; raises TamperError when its chain does not hold."""
        # One ledger has one anchor file, by whatever link it was reached.
        path = Path(path).resolve()
        history = _sound(path, store.read(path, timeout))
        return cls(path=path, dataset=history.dataset, budgets=history.budgets, timeout=timeout)

    def reserve(self, run_id: str, charges: Mapping[Scope, Event | dict[str, Any]], *, what: str) -> Receipt:
        """Charge the most that a run may cost, or raise BudgetError and leave the ledger as it was.

        The costs are those of the whole run, one event for each scope that the run states. Reserving again under the
        same `run_id` with the same content continues the reservation (a resumed run), and is charged once.
        """
        asked = _events(charges)
        if not run_id.strip():
            raise InputError(f"Ledger.reserve(run_id={run_id!r}): a run has a name; give one that no other run uses.")
        with store.open_writer(self.path, self.timeout) as writer:
            history = _replay(self.path, writer.rows)
            known = history.runs.get(run_id)
            if known is not None:
                return self._continue(known, asked, what, writer.rows)
            now = _now()
            for budget in history.budgets:
                before = history.list_charges(budget, history.period_at(now))
                refuse_overspending(run_id, before, asked, budget)
            row = writer.append(
                {"kind": "reserve", "time": now, "run": run_id, "what": what, "charges": charges_json(asked)}
            )
        return Receipt(run_id=run_id, row=row.number, head=row.hash)

    def commit(self, run_id: str, spent: Mapping[Scope, Event | dict[str, Any]] | None = None) -> Receipt:
        """Replace a reservation by what was really spent (None: all of it).

        A scope that `spent` leaves out keeps what was reserved. Spending more than was reserved is recorded in full,
        flagged, and then raises BudgetError. Committing the same content twice is charged once.
        """
        with store.open_writer(self.path, self.timeout) as writer:
            history = _replay(self.path, writer.rows)
            run = _find_run(history, run_id, "commit")
            charged = {**run.reserved, **(_events(spent) if spent is not None else {})}
            if run.state == "committed" and run.charged == charged and run.closed is not None:
                row, exceeds = writer.rows[run.closed], run.exceeds
            else:
                _require_open(run, "commit")
                exceeds = find_exceeded(run.reserved, charged, history.budgets)
                row = writer.append(
                    {
                        "kind": "commit",
                        "time": _now(),
                        "run": run_id,
                        "charges": charges_json(charged),
                        "exceeds": list(exceeds),
                    }
                )
        if exceeds:
            raise BudgetError(
                f"Ledger.commit(run_id={run_id!r}): the run spent more than it had reserved for ({exceeds[0]}); the "
                "larger cost is charged and the entry is flagged; reserve the most that a run can spend."
            )
        return Receipt(run_id=run_id, row=row.number, head=row.hash)

    def release(self, run_id: str, *, nothing_was_released: bool, reason: str) -> Receipt:
        """Give a reservation back; the run states that no data-dependent value left it, and why it stopped."""
        if nothing_was_released is not True:
            raise BudgetError(
                f"Ledger.release(run_id={run_id!r}, nothing_was_released={nothing_was_released!r}): a reservation is "
                "given back only when nothing left the run; commit what was spent."
            )
        with store.open_writer(self.path, self.timeout) as writer:
            run = _find_run(_replay(self.path, writer.rows), run_id, "release")
            if run.state == "released" and run.closed is not None:
                row = writer.rows[run.closed]
            else:
                _require_open(run, "release")
                row = writer.append({"kind": "release", "time": _now(), "run": run_id, "reason": reason})
        return Receipt(run_id=run_id, row=row.number, head=row.hash)

    def token(self, run_id: str) -> str | None:
        """The token of the one copy of a run that may go on; None before a run has one."""
        return store.read_aside(self.path, self.timeout, lambda aside: tokens.read_token(aside, run_id))

    def replace_token(self, run_id: str, *, before: str | None, now: str) -> None:
        """Let the copy that holds `before` go on, with a new token; PrivacyError when another copy went on."""
        store.replace_token(self.path, self.timeout, run_id, before=before, now=now)

    def holder(self) -> str | None:
        """The host that may write to this ledger; None in a ledger that was made before hosts were named."""
        return store.read_aside(self.path, self.timeout, lease.read_lease)

    def place(self) -> str | None:
        """The one file that may be written to; None after it was handed over, or where none was noted yet."""
        found = store.read_aside(self.path, self.timeout, lease.read_place)
        return None if found is None else found.path

    def hand_over(self, host: str) -> None:
        """Let another host write, and this one no more; copy the ledger there afterwards."""
        store.write_lease(self.path, self.timeout, lease.check_host(host), take_over=False)

    def take_over(self) -> None:
        """Let this host write to this file. The caller states that no other copy is in use: two would spend twice."""
        store.write_lease(self.path, self.timeout, lease.this_host(), take_over=True)

    def balances(self) -> tuple[Balance, ...]:
        """What is spent and left of every budget, open reservations included."""
        history = self._history()
        period, found = history.period_at(_now()), []
        for budget in history.budgets:
            overall = add_up(history.list_charges(), budget)
            if budget.renews is None:
                found.append(
                    Balance(budget=budget, spent=overall.epsilon, method=overall.method, overall=overall.epsilon)
                )
                continue
            cost = add_up(history.list_charges(budget, period), budget)
            found.append(
                Balance(budget=budget, spent=cost.epsilon, method=cost.method, period=period, overall=overall.epsilon)
            )
        return tuple(found)

    def rows(self) -> tuple[ChainRow, ...]:
        snapshot = store.read(self.path, self.timeout)
        _sound(self.path, snapshot)
        return snapshot.rows

    def runs(self) -> tuple[Run, ...]:
        """Every run, in the order of their reservations."""
        return tuple(self._history().runs.values())

    def head(self) -> Anchor:
        """Number of rows and hash of the last one: note it elsewhere, and `verify` finds any change before it."""
        rows = store.read(self.path, self.timeout).rows
        return Anchor(count=len(rows), hash=rows[-1].hash)

    def verify(self, expected_head: str | None = None) -> Verdict:
        """Check the file, the chain, the anchors and the history; see `verify_file`."""
        return verify_file(self.path, expected_head, timeout=self.timeout)

    def export(self) -> dict[str, Any]:
        """Every row with its hash, for safekeeping and for checking by other means."""
        snapshot = store.read(self.path, self.timeout)
        _sound(self.path, snapshot)
        rows = [{"number": r.number, "hash": r.hash, "content": json.loads(r.content)} for r in snapshot.rows]
        return {"format": store.FORMAT, "dataset": self.dataset, "head": snapshot.rows[-1].hash, "rows": rows}

    def _history(self) -> History:
        return _sound(self.path, store.read(self.path, self.timeout))

    def _continue(self, run: Run, asked: Charges, what: str, rows: tuple[ChainRow, ...]) -> Receipt:
        if run.state != "reserved":
            raise BudgetError(
                f"Ledger.reserve(run_id={run.run_id!r}): that run is {run.state} already; give a new run a new run_id."
            )
        if run.reserved != asked or run.what != what:
            raise BudgetError(
                f"Ledger.reserve(run_id={run.run_id!r}): that run has reserved something else; continue it with the "
                "same content, or give a new run a new run_id."
            )
        return Receipt(run_id=run.run_id, row=run.row, head=rows[run.row].hash)


def verify_file(path: str | Path, expected_head: str | None = None, *, timeout: float = 120.0) -> Verdict:
    """Whether a ledger can be believed; unlike `Ledger.open`, answers for any damage instead of raising.

    `expected_head` is a head that was noted earlier: it must be part of the chain, which may have grown since.
    """
    path = Path(path).resolve()
    try:
        snapshot = store.read(path, timeout, thorough=True)
    except (TamperError, InputError) as error:
        if not path.is_file():
            raise
        return Verdict(path=path, rows=0, head="", fault=ChainFault(row=None, reason=str(error)))
    fault = snapshot.fault()
    if fault is None:
        told = replay(snapshot.rows)
        fault = told if isinstance(told, ChainFault) else None
    if fault is None and expected_head is not None:
        fault = check_pin(snapshot.rows, expected_head)
    head = snapshot.rows[-1].hash if snapshot.rows else ""
    return Verdict(path=path, rows=len(snapshot.rows), head=head, fault=fault)


def _sound(path: Path, snapshot: store.Snapshot) -> History:
    fault = snapshot.fault()
    if fault is not None:
        raise store.refuse(path, fault)
    return _replay(path, snapshot.rows)


def _replay(path: Path, rows: tuple[ChainRow, ...]) -> History:
    told = replay(rows)
    if isinstance(told, ChainFault):
        raise store.refuse(path, told)
    return told


def _events(charges: Mapping[Scope, Event | dict[str, Any]]) -> dict[Scope, Event]:
    found = {scope: from_json(event) if isinstance(event, dict) else event for scope, event in charges.items()}
    for scope, event in found.items():
        # Refuses an event that was built for the other adjacency and would be charged too little.
        Guarantee(
            event=event, adjacency=scope.adjacency, unit=scope.unit, observer=scope.observer, theorem="as reserved"
        )
    return found


def _find_run(history: History, run_id: str, verb: str) -> Run:
    run = history.runs.get(run_id)
    if run is None:
        raise BudgetError(f"Ledger.{verb}(run_id={run_id!r}): that run has reserved nothing; call reserve first.")
    return run


def _require_open(run: Run, verb: str) -> None:
    if run.state != "reserved":
        raise BudgetError(
            f"Ledger.{verb}(run_id={run.run_id!r}): that run is {run.state} already, with other content; a run is "
            "closed once."
        )


def _now() -> str:
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
