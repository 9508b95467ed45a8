"""The budget ledger: what it charges, what it refuses, what a crash leaves charged."""

from __future__ import annotations

import hashlib
import json
import math
import sqlite3
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from consenso.errors import BudgetError, InputError
from consenso.privacy import accountants
from consenso.privacy.accountants import epsilon
from consenso.privacy.events import Event, Gaussian, Laplace, Nothing, Pure, Sampled, Told, Unbounded, compose, repeat
from consenso.privacy.guarantee import Guarantee
from consenso.privacy.ledger import Budget, Ledger, Scope, charges_of
from consenso.privacy.ledger.budgets import Charges
from consenso.privacy.ledger.costs import GAUSSIAN_SHARE, add_up
from consenso.privacy.serial import to_json

DELTA = 1e-5
STEP = 0.02  # of losses
SEVERAL = GAUSSIAN_SHARE * DELTA  # of Gaussian runs, where there are several
PUBLIC = Scope(observer="public", unit="record", adjacency="replace-one")
SMALL = Gaussian(std=40.0, sensitivity=1.0)


def scope(observer: str = "public", unit: str = "record", adjacency: str = "replace-one") -> Scope:
    return Scope(observer=observer, unit=unit, adjacency=adjacency)


def budget(limit: float = 1.0, **which: str) -> Budget:
    found = scope(**which)
    return Budget(observer=found.observer, unit=found.unit, adjacency=found.adjacency, epsilon=limit, delta=DELTA)


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger.create(tmp_path / "adult.ledger", dataset="adult", budgets=[budget()])


def spent(ledger: Ledger) -> float:
    (balance,) = ledger.balances()
    return balance.spent


def fits(ledger: Ledger, run_id: str, event: Event) -> bool:
    try:
        ledger.reserve(run_id, {PUBLIC: event}, what="as long as it fits")
    except BudgetError:
        return False
    return True


def test_a_new_ledger_has_spent_nothing_and_is_sound(ledger: Ledger) -> None:
    (balance,) = ledger.balances()
    assert (balance.spent, balance.left) == (0.0, 1.0)
    assert ledger.runs() == ()
    assert ledger.verify().sound
    assert Ledger.open(ledger.path) == ledger


def test_the_file_is_in_wal_mode_and_refuses_edits(ledger: Ledger) -> None:
    with sqlite3.connect(ledger.path) as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        for statement in ("DELETE FROM entries", "UPDATE entries SET content = '{}'"):
            with pytest.raises(sqlite3.IntegrityError, match="only grows"):
                connection.execute(statement)
    connection.close()


def test_runs_are_composed_by_their_curves_not_by_adding_epsilons(ledger: Ledger) -> None:
    for number in range(10):
        ledger.reserve(f"run-{number}", {PUBLIC: SMALL}, what="ten of the same")
        ledger.commit(f"run-{number}")
    composed = epsilon(repeat(SMALL, 10), SEVERAL)
    assert spent(ledger) == pytest.approx(composed, rel=1e-12)
    assert composed < 0.6 * 10 * epsilon(SMALL, DELTA)


def test_different_mechanisms_compose_too(ledger: Ledger) -> None:
    laplace = Laplace(scale=20.0, sensitivity=1.0)
    runs = [SMALL, laplace, SMALL, laplace]
    for number, event in enumerate(runs):
        ledger.reserve(f"run-{number}", {PUBLIC: event}, what="mixed")
    assert epsilon(compose(*runs), DELTA) < spent(ledger) < 1


def test_runs_whose_results_choose_the_next_one_stay_within_the_budget(ledger: Ledger) -> None:
    """A Gaussian run, then one of two others by what it told: each would fit, and both together do not."""
    first, small = Gaussian(std=10.0, sensitivity=1.0), 0.1
    gaussian, pure = Gaussian(std=4.03, sensitivity=1.0), Pure(0.67)
    assert max(epsilon(compose(first, each), DELTA) for each in (gaussian, pure)) < 1
    # The hockey-stick divergence of the whole: the loss of the first is normal, and the worse of the two follows.
    normal, width = np.linspace(-9, 12, 401), 21 / 400
    losses = small**2 / 2 + small * normal
    worse = np.array([max(divergence(each, 1 - loss) for each in (gaussian, pure)) for loss in losses])
    assert worse @ np.exp(-(normal**2) / 2) * width / np.sqrt(2 * np.pi) > 1.9 * DELTA
    ledger.reserve("first", {PUBLIC: first}, what="looked at")
    with pytest.raises(BudgetError):
        ledger.reserve("second", {PUBLIC: pure}, what="chosen by the first")
    ledger.reserve("second", {PUBLIC: Gaussian(std=4.08, sensitivity=1.0)}, what="chosen by the first")


def divergence(event: Event, value: float) -> float:
    """Delta at every real epsilon, of an event that is the same in both directions."""
    if value > 0:
        return accountants.delta(event, value)
    return 1 - math.exp(value) + (math.exp(value) * accountants.delta(event, -value) if value else 0.0)


@pytest.mark.parametrize(
    "events",
    [
        (Gaussian(10.0, 1.0), Gaussian(4.03, 1.0), Pure(0.25), Pure(0.67)),
        (Gaussian(10.0, 1.0), Gaussian(4.08, 1.0), Told(0.05 * DELTA), Told(0.5 * DELTA)),
    ],
)
def test_no_choice_of_runs_exceeds_a_budget(events: tuple[Event, ...]) -> None:
    """The largest delta over all ways to choose three runs by the losses so far: also how much is told by name."""
    assert _choose_worst(add_up, events) < 1.02 * DELTA  # what is computed on a grid is a little too large
    assert (
        _choose_worst(lambda runs, limit: accountants.best(compose(*(run[PUBLIC] for run in runs)), DELTA), events)
        > 1.2 * DELTA
    )


def test_labels_that_are_told_have_a_share_of_delta_of_their_own(ledger: Ledger) -> None:
    """Ten fits that look for labels with 1 % of delta each, and the next one is told to declare them."""
    fit = compose(Gaussian(std=40.0, sensitivity=1.0), Told(0.0099 * DELTA))
    for number in range(10):
        ledger.reserve(f"fit-{number}", {PUBLIC: fit}, what="labels are looked for")
    with pytest.raises(BudgetError, match="declare classes"):
        ledger.reserve("fit-10", {PUBLIC: fit}, what="labels are looked for")
    ledger.reserve("fit-10", {PUBLIC: Gaussian(std=40.0, sensitivity=1.0)}, what="labels are declared")


def _choose_worst(cost: Callable[[list[Charges], Budget], accountants.Cost], events: tuple[Event, ...]) -> float:
    """By dynamic programming backwards from the last run, for a ledger that charges runs so."""
    grid = np.arange(-3.0, 3.0, STEP)
    laws = {event: _losses(event) for event in events}

    def find_lost(past: tuple[Event, ...]) -> np.ndarray:
        """What is lost in the end for each loss so far, by the best choice that is allowed."""
        found = np.maximum(1 - np.exp(1 - grid), 0.0)
        for event, (losses, chances) in laws.items() if len(past) < 3 else ():
            if cost([{PUBLIC: each} for each in (*past, event)], budget()).epsilon <= 1:
                after = find_lost((*past, event))
                reached = [p * np.interp(grid + s, grid, after) for s, p in zip(losses, chances, strict=True)]
                told = accountants.find_told(event)  # then all is lost
                found = np.maximum(found, told + (1 - told) * sum(reached))
        return found

    return float(np.interp(0.0, grid, find_lost(())))


def _losses(event: Event) -> tuple[np.ndarray, np.ndarray]:
    """Losses on a grid and their probabilities, such that delta is that of an event at all its points."""
    if isinstance(event, Told):
        return np.zeros(1), np.ones(1)
    points = np.arange(-2.0, 2.0, STEP)
    deltas = np.array([divergence(event, float(point)) for point in points])
    chances = np.zeros(len(points))
    for place in range(len(points) - 2, -1, -1):  # delta(e) = sum over larger losses of p (1 - exp(e - loss))
        rest = chances[place + 2 :] @ -np.expm1(points[place] - points[place + 2 :])
        chances[place + 1] = max((deltas[place] - rest) / -np.expm1(-STEP), 0.0)
    return points[chances > 0], chances[chances > 0]


def test_an_open_reservation_is_charged_in_full(ledger: Ledger) -> None:
    ledger.reserve("crashed", {PUBLIC: repeat(SMALL, 20)}, what="never heard of again")
    assert Ledger.open(ledger.path).runs()[0].state == "reserved"
    assert spent(ledger) == epsilon(repeat(SMALL, 20), DELTA)


def test_commit_replaces_the_reservation_by_what_was_spent(ledger: Ledger) -> None:
    ledger.reserve("short", {PUBLIC: repeat(SMALL, 20)}, what="stopped by a public rule")
    ledger.commit("short", {PUBLIC: repeat(SMALL, 5)})
    assert spent(ledger) == epsilon(repeat(SMALL, 5), DELTA)
    (run,) = ledger.runs()
    assert (run.state, run.exceeds, run.reserved[PUBLIC]) == ("committed", (), repeat(SMALL, 20))


def test_over_budget_is_refused_with_the_figures_and_nothing_is_written(ledger: Ledger) -> None:
    ledger.reserve("first", {PUBLIC: repeat(SMALL, 60)}, what="most of it")
    before, head = spent(ledger), ledger.head()
    with pytest.raises(BudgetError) as refused:
        ledger.reserve("second", {PUBLIC: repeat(SMALL, 60)}, what="too much")
    for figure in (
        "(public, record, replace-one)",
        "epsilon 1 at delta 1e-05",
        f"{before:.6g} is spent",
        f"{1 - before:.6g} is left",
        f"asks for {before:.6g}",
    ):
        assert figure in str(refused.value)
    assert ledger.head() == head
    ledger.reserve("third", {PUBLIC: SMALL}, what="fits")


def test_the_budget_is_used_up_to_the_last_run_that_fits(ledger: Ledger) -> None:
    number = 0
    while fits(ledger, f"run-{number}", repeat(SMALL, 7)):
        number += 1
    assert epsilon(repeat(SMALL, 7 * number), SEVERAL) <= 1.0 < epsilon(repeat(SMALL, 7 * (number + 1)), SEVERAL)


def test_an_unbounded_event_is_refused(ledger: Ledger) -> None:
    with pytest.raises(BudgetError, match="asks for inf"):
        ledger.reserve("exact", {PUBLIC: Unbounded("no noise")}, what="no noise")


def test_reserving_again_continues_a_resumed_run(ledger: Ledger) -> None:
    first = ledger.reserve("run", {PUBLIC: SMALL}, what="a fit")
    assert ledger.reserve("run", {PUBLIC: to_json(SMALL)}, what="a fit") == first
    assert ledger.head().count == 2
    with pytest.raises(BudgetError, match="reserved something else"):
        ledger.reserve("run", {PUBLIC: repeat(SMALL, 2)}, what="a fit")
    with pytest.raises(BudgetError, match="reserved something else"):
        ledger.reserve("run", {PUBLIC: SMALL}, what="another fit")
    done = ledger.commit("run")
    assert ledger.commit("run") == done
    with pytest.raises(BudgetError, match="committed already"):
        ledger.commit("run", {PUBLIC: Nothing()})
    with pytest.raises(BudgetError, match="committed already"):
        ledger.reserve("run", {PUBLIC: SMALL}, what="a fit")
    with pytest.raises(BudgetError, match="committed already"):
        ledger.release("run", nothing_was_released=True, reason="too late")


def test_spending_more_than_was_reserved_is_charged_flagged_and_raised(ledger: Ledger) -> None:
    ledger.reserve("run", {PUBLIC: SMALL}, what="a fit")
    for _ in range(2):
        with pytest.raises(BudgetError, match=r"spent more than it had reserved for \(public, record, replace-one\)"):
            ledger.commit("run", {PUBLIC: repeat(SMALL, 200)})
    assert ledger.runs()[0].exceeds == (str(PUBLIC),)
    assert ledger.head().count == 3
    (balance,) = ledger.balances()
    assert balance.spent == epsilon(repeat(SMALL, 200), DELTA)
    assert balance.left < 0
    with pytest.raises(BudgetError, match="0 is left"):
        ledger.reserve("next", {PUBLIC: SMALL}, what="nothing is left")


def test_a_cost_that_was_not_reserved_at_all_is_flagged(ledger: Ledger) -> None:
    ledger.reserve("run", {PUBLIC: SMALL}, what="a fit")
    with pytest.raises(BudgetError, match=r"\(server, party, add-remove\)"):
        ledger.commit("run", {scope("server", "party", "add-remove"): SMALL})


def test_a_scope_left_out_of_a_commit_keeps_its_reservation(tmp_path: Path) -> None:
    both = [budget(), budget(observer="server")]
    ledger = Ledger.create(tmp_path / "l", dataset="d", budgets=both)
    ledger.reserve("run", {PUBLIC: repeat(SMALL, 4), scope("server"): repeat(SMALL, 9)}, what="a fit")
    ledger.commit("run", {PUBLIC: SMALL})
    assert [balance.spent for balance in ledger.balances()] == [
        epsilon(SMALL, DELTA),
        epsilon(repeat(SMALL, 9), DELTA),
    ]


def test_release_needs_the_statement_that_nothing_left(ledger: Ledger) -> None:
    ledger.reserve("run", {PUBLIC: repeat(SMALL, 60)}, what="a fit")
    with pytest.raises(BudgetError, match="nothing left the run"):
        ledger.release("run", nothing_was_released=False, reason="stopped")
    assert spent(ledger) > 0
    receipt = ledger.release("run", nothing_was_released=True, reason="the data file was missing")
    assert ledger.release("run", nothing_was_released=True, reason="again") == receipt
    assert spent(ledger) == 0.0
    with pytest.raises(BudgetError, match="released already"):
        ledger.reserve("run", {PUBLIC: repeat(SMALL, 60)}, what="a fit")
    with pytest.raises(BudgetError, match="released already"):
        ledger.commit("run")


@pytest.mark.parametrize("verb", ["commit", "release"])
def test_a_run_that_reserved_nothing_cannot_be_closed(ledger: Ledger, verb: str) -> None:
    arguments = {"nothing_was_released": True, "reason": "none"} if verb == "release" else {}
    with pytest.raises(BudgetError, match="reserved nothing"):
        getattr(ledger, verb)("ghost", **arguments)


@pytest.mark.parametrize(
    ("stated", "owed", "covered"),
    [
        (scope("server"), scope("public"), True),
        (scope("eavesdropper"), scope("public"), True),
        (scope("eavesdropper"), scope("server"), True),
        (scope("public"), scope("server"), False),
        (scope("server"), scope("eavesdropper"), False),
        (scope("eavesdropper"), scope("peer:1"), False),
        (scope("peer:1"), scope("peer:1"), True),
        (scope("peer:1"), scope("peer:2"), False),
        (scope("peer:1"), scope("coalition:1,2"), False),
        # What parties learn of others bounds nothing of their own data, which these budgets protect as well.
        (scope("coalition:1,2"), scope("peer:1"), False),
        (scope("peer:1"), scope("public"), False),
        (scope(unit="party"), scope(unit="record"), True),
        (scope(unit="record"), scope(unit="party"), False),
        (scope(unit="party", adjacency="add-remove"), scope(unit="record", adjacency="add-remove"), False),
        (scope(adjacency="replace-one"), scope(adjacency="add-remove"), False),
    ],
)
def test_which_cost_covers_which_budget(tmp_path: Path, stated: Scope, owed: Scope, covered: bool) -> None:
    owed_budget = budget(observer=owed.observer, unit=owed.unit, adjacency=owed.adjacency)
    ledger = Ledger.create(tmp_path / "l", dataset="d", budgets=[owed_budget])
    if covered:
        ledger.reserve("run", {stated: SMALL}, what="a fit")
        assert spent(ledger) == epsilon(SMALL, DELTA)
    else:
        with pytest.raises(BudgetError, match="applies and"):
            ledger.reserve("run", {stated: SMALL}, what="a fit")
        assert ledger.runs() == ()


def test_the_error_says_that_adjacencies_do_not_mix(ledger: Ledger) -> None:
    with pytest.raises(BudgetError, match="under add-remove only, which cannot be charged to a replace-one budget"):
        ledger.reserve("run", {scope(adjacency="add-remove"): SMALL}, what="a fit")
    ledger.reserve("run", {scope(adjacency="add-remove"): SMALL, PUBLIC: Gaussian(40.0, 2.0)}, what="both are stated")
    assert spent(ledger) == epsilon(Gaussian(40.0, 2.0), DELTA)


def test_an_event_built_for_the_other_adjacency_is_refused(ledger: Ledger) -> None:
    sampled = Sampled(std=40.0, contribution=1.0, rate=0.1, adjacency="add-remove")
    with pytest.raises(InputError, match="holds for the other adjacency only"):
        ledger.reserve("run", {PUBLIC: sampled}, what="a fit")


def test_the_own_cost_of_an_observer_is_charged_before_that_of_a_stronger_one(ledger: Ledger) -> None:
    ledger.reserve("run", {scope("eavesdropper"): repeat(SMALL, 1000), PUBLIC: SMALL}, what="a fit")
    assert spent(ledger) == epsilon(SMALL, DELTA)


def test_without_an_own_cost_the_smallest_that_covers_is_charged(ledger: Ledger) -> None:
    ledger.reserve("run", {scope("eavesdropper"): repeat(SMALL, 50), scope("server"): SMALL}, what="a fit")
    assert spent(ledger) == epsilon(SMALL, DELTA)


def test_a_budget_without_delta_takes_pure_mechanisms_only(tmp_path: Path) -> None:
    owed = Budget(observer="public", unit="record", adjacency="replace-one", epsilon=1.0, delta=0.0)
    ledger = Ledger.create(tmp_path / "l", dataset="d", budgets=[owed])
    with pytest.raises(BudgetError, match="asks for inf"):
        ledger.reserve("gaussian", {PUBLIC: SMALL}, what="has a delta at every epsilon")
    ledger.reserve("laplace", {PUBLIC: Laplace(scale=4.0, sensitivity=1.0)}, what="has none")
    assert spent(ledger) == pytest.approx(0.25, rel=1e-9)


def guarantee(event: Event, observer: str = "public") -> Guarantee:
    return Guarantee(
        event=event, adjacency="replace-one", unit="record", observer=observer, theorem="Composition", assumptions=()
    )


def test_the_worst_of_several_kinds_of_parties_is_charged() -> None:
    kinds = [guarantee(repeat(SMALL, count)) for count in (3, 9, 5)]
    charges = charges_of([*kinds, guarantee(SMALL, "server")])
    assert charges == {PUBLIC: repeat(SMALL, 9), scope("server"): SMALL}


def test_where_no_party_is_the_worst_at_every_delta_the_charge_covers_each_of_them() -> None:
    laplace, gaussian = Laplace(scale=1.0, sensitivity=1.0), Gaussian(std=3.0, sensitivity=1.0)
    assert epsilon(gaussian, 1e-1) < epsilon(laplace, 1e-1)
    assert epsilon(gaussian, 1e-7) > epsilon(laplace, 1e-7)
    (charge,) = charges_of([guarantee(laplace), guarantee(gaussian)]).values()
    for delta in (1e-1, 1e-3, 1e-5, 1e-7):
        assert epsilon(charge, delta) > max(epsilon(laplace, delta), epsilon(gaussian, delta))


def test_every_budget_is_enforced(tmp_path: Path) -> None:
    budgets = [budget(5.0), budget(0.5, observer="server")]
    ledger = Ledger.create(tmp_path / "l", dataset="d", budgets=budgets)
    event = repeat(SMALL, 40)
    assert 0.5 < epsilon(event, DELTA) < 5.0
    with pytest.raises(BudgetError, match=r"epsilon 0.5 at delta 1e-05 \(server"):
        ledger.reserve("run", {scope("server"): event}, what="within one of them")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"epsilon": math.inf}, "positive and finite"),
        ({"epsilon": 0.0}, "positive and finite"),
        ({"delta": -1e-9}, r"\[0, 1\)"),
        ({"delta": 1.0}, r"\[0, 1\)"),
        ({"unit": "household"}, "a unit is one of"),
        ({"adjacency": "substitute"}, "an adjacency is one of"),
        ({"observer": "everyone"}, "an observer is"),
    ],
)
def test_a_bad_budget_is_refused(change: dict[str, object], message: str) -> None:
    good = {"observer": "public", "unit": "record", "adjacency": "replace-one", "epsilon": 1.0, "delta": DELTA}
    with pytest.raises(InputError, match=message):
        Budget(**{**good, **change})


def test_bad_ledgers_are_refused(tmp_path: Path, ledger: Ledger) -> None:
    with pytest.raises(InputError, match="at least one budget"):
        Ledger.create(tmp_path / "l", dataset="d", budgets=[])
    with pytest.raises(InputError, match="same scope and delta"):
        Ledger.create(tmp_path / "l", dataset="d", budgets=[budget(), budget(2.0)])
    with pytest.raises(InputError, match="has a name"):
        Ledger.create(tmp_path / "l", dataset=" ", budgets=[budget()])
    with pytest.raises(InputError, match="folder does not exist"):
        Ledger.create(tmp_path / "none" / "l", dataset="d", budgets=[budget()])
    with pytest.raises(InputError, match="the file exists"):
        Ledger.create(ledger.path, dataset="d", budgets=[budget()])
    with pytest.raises(InputError, match="no such file"):
        Ledger.open(tmp_path / "none")
    with pytest.raises(InputError, match="a run has a name"):
        ledger.reserve("", {PUBLIC: SMALL}, what="a fit")
    assert sorted(path.name for path in tmp_path.iterdir() if "-" not in path.name) == [
        "adult.ledger",
        "adult.ledger.head",
    ]


def test_export_holds_every_row_and_the_head(ledger: Ledger) -> None:
    ledger.reserve("run", {PUBLIC: SMALL}, what="a fit")
    receipt = ledger.commit("run")
    exported = json.loads(json.dumps(ledger.export()))
    assert [row["content"]["kind"] for row in exported["rows"]] == ["create", "reserve", "commit"]
    assert exported["head"] == receipt.head == ledger.head().hash
    assert exported["rows"][1]["content"]["charges"][0]["event"] == to_json(SMALL)
    # The chain can be checked by anybody, as docs/ledger.md tells.
    previous = "0" * 64
    for row in exported["rows"]:
        content = json.dumps(row["content"], sort_keys=True, separators=(",", ":"))
        previous = hashlib.sha256((previous + content).encode("ascii")).hexdigest()
        assert row["hash"] == previous


def test_a_ledger_reached_through_a_link_is_the_same_ledger(ledger: Ledger, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(ledger.path)
    Ledger.open(tmp_path / "link").reserve("run", {PUBLIC: SMALL}, what="a fit")
    assert ledger.verify().sound
    assert not (tmp_path / "link.head").exists()


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(
    steps=st.lists(
        st.tuples(st.sampled_from(["reserve", "commit", "release"]), st.integers(0, 3), st.integers(1, 40)), max_size=12
    )
)
def test_any_order_of_calls_keeps_the_budget_and_the_books(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, int, int]]
) -> None:
    ledger = Ledger.create(tmp_path_factory.mktemp("l") / "l", dataset="d", budgets=[budget()])
    charged: dict[str, int] = {}
    opened: set[str] = set()
    for verb, number, count in steps:
        run = f"run-{number}"
        try:
            if verb == "reserve":
                ledger.reserve(run, {PUBLIC: repeat(SMALL, count)}, what="a fit")
                charged[run] = count
                opened.add(run)
            elif verb == "commit":
                least = min(count, charged.get(run, count))
                ledger.commit(run, {PUBLIC: repeat(SMALL, least)})
                charged[run] = least
                opened.discard(run)
            else:
                ledger.release(run, nothing_was_released=True, reason="test")
                charged[run] = 0
                opened.discard(run)
        except BudgetError:
            continue
    total = sum(charged.values())
    several = sum(count > 0 for count in charged.values()) > 1
    assert spent(ledger) == pytest.approx(epsilon(repeat(SMALL, total), SEVERAL if several else DELTA), rel=1e-12)
    assert spent(ledger) <= 1.0
    assert {run.run_id for run in ledger.runs() if run.state == "reserved"} == opened
    assert ledger.verify().sound
