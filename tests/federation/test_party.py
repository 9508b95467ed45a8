"""Parties and hubs on their own disks, without a network in between: what is said once is said for ever."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from consenso.algorithms.consensus import ConsensusADMM
from consenso.algorithms.dp_sgd import DPSGD
from consenso.algorithms.dual_consensus import DualConsensusADMM
from consenso.algorithms.gradient_admm import GradientADMM
from consenso.algorithms.preconditioned import PreconditionedFixedPoint
from consenso.engine.codec import MessageError, encode
from consenso.engine.coins import make_coins
from consenso.engine.ledger_charge import LedgerCharge
from consenso.errors import BudgetError, InputError, PrivacyError
from consenso.federation.attendance import Attendance
from consenso.federation.budget_guard import LedgerGuard
from consenso.federation.disk import Disk, DiskError, read_journal
from consenso.federation.hub import HubRun, Question
from consenso.federation.party import Party
from consenso.federation.single_party_step import SinglePartyStep
from consenso.privacy.ledger import Budget, Ledger
from consenso.privacy.samplers import Safe, Seeded
from consenso.schedules import Cyclic, FixedSubset, PoissonSubset, RandomWalk
from consenso.shards import Shards
from consenso.testing.laws import execute, plan_example
from consenso.testing.worlds import draw

ROUNDS = 8


class KilledError(Exception):
    """The process is gone."""


class Star:
    """Parties and a hub that can be killed and started again; they keep nothing but their disks."""

    def __init__(self, made, folder: Path, **options: Any) -> None:
        self.made, self.folder, self.options = made, folder, options
        self.data = draw(made.problem, np.random.default_rng(0))
        self.parties: dict[int, Party] = {}
        self.asked: list[tuple[int, Question, bytes]] = []
        self.deaf: set[tuple[int, int]] = set()  # (party, round): the answer is lost on its way
        self.hub = self.start_hub()

    def disk(self, owner: str) -> Disk:
        return Disk(self.folder / owner, owner=owner, run="ab" * 32, fingerprint="f")

    def start_hub(self) -> HubRun:
        if hasattr(self, "hub"):
            self.hub.disk.close()
        return HubRun(self.made, self.disk("hub"))

    def party(self, index: int) -> Party:
        if index not in self.parties:
            shards = Shards.from_parties(self.made.problem, [self.data[index]], parties=[index])
            self.parties[index] = Party(self.made, shards, index, self.disk(f"p{index}"), **self.options)
        return self.parties[index]

    def kill(self, index: int) -> None:
        self.parties.pop(index).disk.close()

    def ask(self, questions, check, *, partial) -> dict[int, bytes]:
        found = {}
        for index, question in questions.items():
            answer = self.party(index).answer(
                round_=question.round, stage=question.stage, body=question.body, counted=question.counted
            )
            self.asked.append((index, question, answer))
            if (index, question.round) in self.deaf:
                assert partial, "a lost answer is asked for again"
                continue
            check(index, answer)
            found[index] = answer
        return found

    def run(self) -> np.ndarray:
        for _ in self.hub.rounds(self):
            pass
        return self.hub.model()

    def local(self) -> np.ndarray:
        return execute(self.made, Shards.from_parties(self.made.problem, self.data), one_by_one=True)[0]

    def steps(self, index: int) -> list[int]:
        return [row["round"] for row in self.party(index).disk.journal() if row["what"] == "step"]


def consensus(**changes: Any):
    return plan_example(ConsensusADMM.example(), **changes)


# --- a restarted party ------------------------------------------------------------------------------------------------


def test_a_party_that_is_killed_after_every_answer_gives_the_same_model(tmp_path):
    class Fragile(Star):
        def ask(self, questions, check, *, partial):
            found = super().ask(questions, check, partial=partial)
            for index in list(self.parties):
                self.kill(index)
            return found

    star = Fragile(consensus(), tmp_path)
    assert np.array_equal(star.run(), star.local())
    assert [star.steps(index) for index in range(6)] == [list(range(ROUNDS))] * 6


@pytest.mark.parametrize("sampler", [Seeded(3), Safe()])
def test_a_restarted_party_repeats_its_bytes_and_draws_no_second_noise(tmp_path, sampler):
    star = Star(consensus(sampler=sampler), tmp_path, guard=Free())
    next(star.hub.rounds(star))
    index, question, answer = star.asked[2]
    for _ in range(3):
        star.kill(index)
        again = star.party(index).answer(
            round_=question.round, stage=question.stage, body=question.body, counted=question.counted
        )
        assert again == answer
    assert star.steps(index) == [0]


class Free:
    """A ledger without a bottom."""

    charge = None

    def open(self) -> None: ...

    def close(self) -> None: ...


def test_a_question_with_another_content_gets_the_answer_that_was_given(tmp_path):
    star = Star(consensus(), tmp_path)
    next(star.hub.rounds(star))
    index, question, answer = star.asked[0]
    other = encode(replace(ConsensusADMM.example().algorithm.down(star.made.facts, _Hub(np.ones(3)))))
    assert other != question.body
    assert star.party(index).answer(round_=0, stage="step", body=other, counted=-1) == answer
    assert star.steps(index) == [0]


class _Hub:
    def __init__(self, z: np.ndarray) -> None:
        self.z = z


@pytest.mark.parametrize("round_", [0, 1, 2])
def test_a_stale_round_is_refused_and_releases_nothing(tmp_path, round_):
    star = Star(consensus(), tmp_path)
    rounds = star.hub.rounds(star)
    for _ in range(4):
        next(rounds)
    before = star.party(1).disk.journal()
    with pytest.raises(MessageError, match="is over for this party"):
        star.party(1).answer(round_=round_, stage="step", body=star.asked[1][1].body, counted=-1)
    assert star.party(1).disk.journal() == before


@pytest.mark.parametrize("round_", [-1, ROUNDS, 10**9])
def test_a_round_that_the_plan_does_not_have_is_refused(tmp_path, round_):
    star = Star(consensus(), tmp_path)
    with pytest.raises(MessageError, match="the plan has rounds"):
        star.party(1).answer(round_=round_, stage="step", body=b"", counted=-1)


def test_a_malformed_question_is_refused_and_releases_nothing(tmp_path):
    star = Star(consensus(), tmp_path)
    body = encode(star.made.algorithm.down(star.made.facts, star.hub._hub))
    for wrong in (b"", body[:-1], body + b"0", body.replace(b"Down", b"Hub!"), bytes(len(body))):
        with pytest.raises(MessageError):
            star.party(0).answer(round_=0, stage="step", body=wrong, counted=-1)
    with pytest.raises(MessageError, match="stage"):
        star.party(0).answer(round_=0, stage="unmask", body=body, counted=-1)
    assert star.party(0).disk.journal() == []
    assert star.party(0).round == -1


def test_a_hub_that_counts_what_was_never_sent_is_refused(tmp_path):
    star = Star(consensus(), tmp_path)
    body = encode(star.made.algorithm.down(star.made.facts, star.hub._hub))
    with pytest.raises(MessageError, match="counts a round"):
        star.party(0).answer(round_=3, stage="step", body=body, counted=2)


def test_after_the_end_nothing_is_answered_and_no_exact_state_is_kept(tmp_path):
    star = Star(consensus(), tmp_path)
    star.run()
    party = star.party(0)
    party.end(star.hub.model_bytes())
    party.end(star.hub.model_bytes())
    assert np.array_equal(party.model, star.hub.model())
    with pytest.raises(MessageError, match="has ended"):
        party.answer(round_=ROUNDS - 1, stage="step", body=b"", counted=-1)
    assert not any(party.disk.read_bytes(name) for name in ("settled", "pending", "said"))
    with pytest.raises(MessageError):
        Star(consensus(), tmp_path / "other").party(0).end(b"no model")


# --- a restarted hub --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("example", "changes"),
    [
        (ConsensusADMM, {}),
        (DPSGD, {"trust": "curator", "schedule": PoissonSubset(0.5)}),
        (DPSGD, {"trust": "curator", "schedule": FixedSubset(2)}),
        (GradientADMM, {}),
        (PreconditionedFixedPoint, {"trust": "curator"}),
    ],
)
def test_a_hub_that_is_killed_in_every_round_gives_the_same_model(tmp_path, example, changes):
    """Once before it has heard everybody and once after it has kept the round."""

    class Fragile(Star):
        dying = False

        def ask(self, questions, check, *, partial):
            found = super().ask(questions, check, partial=partial)
            self.dying = not self.dying
            if self.dying:
                raise KilledError
            return found

    star = Fragile(plan_example(example.example(), **changes), tmp_path)
    while not star.hub.finished:
        with contextlib.suppress(KilledError):
            next(star.hub.rounds(star))
        star.hub = star.start_hub()
    assert np.array_equal(star.hub.model(), star.local())
    for index, question, answer in star.asked:
        assert all(a == answer for i, q, a in star.asked if (i, q.round) == (index, question.round))


def test_a_hub_asks_the_parties_that_it_drew_also_with_noise_that_cannot_be_drawn_again(tmp_path):
    star = Star(plan_example(DPSGD.example(), schedule=FixedSubset(2), trust="local", sampler=Safe()), tmp_path)
    drawn = star.hub._place["active"]
    for _ in range(5):
        star.hub = star.start_hub()
        assert star.hub._place["active"] == drawn


# --- partial participation --------------------------------------------------------------------------------------------


def poisson(**changes: Any):
    return plan_example(DualConsensusADMM.example(), schedule=PoissonSubset(0.9), trust="local", **changes)


def test_parties_draw_the_coins_that_the_local_engine_draws(tmp_path):
    for made in (consensus(schedule=PoissonSubset(0.5)), consensus(schedule=PoissonSubset(1e-9))):
        star = Star(made, tmp_path / str(made.schedule.rate))
        assert np.array_equal(star.run(), star.local())
        coins = make_coins(Seeded(7))
        for round_ in range(ROUNDS):
            expected = set(made.schedule.active(round_, None, 6, coins).tolist())
            assert {index for index in range(6) if round_ in star.steps(index)} == expected


def test_a_coin_that_was_drawn_stays_drawn(tmp_path):
    star = Star(consensus(schedule=PoissonSubset(0.5), sampler=Safe()), tmp_path, guard=Free())
    next(star.hub.rounds(star))
    for index, question, answer in list(star.asked):
        star.kill(index)
        for _ in range(5):
            again = star.party(index).answer(round_=0, stage="step", body=question.body, counted=-1)
            assert again == answer


def test_a_party_whose_answer_was_lost_counts_as_not_sampled(tmp_path):
    made = consensus(schedule=PoissonSubset(0.9))
    star = Star(made, tmp_path)
    star.deaf = {(2, 3), (4, 3), (4, 5)}
    heard = [done.missing for done in star.hub.rounds(star)]
    assert heard[3] == (2, 4)
    assert heard[5] == (4,)
    # The hub's mean is the mean of the states, so a lost step must have been taken back.
    u = {i: _state(star.party(i)) for i in range(6)}
    assert np.allclose(star.hub._hub.mean, np.mean(list(u.values()), axis=0), atol=1e-12)
    # What left stays in the journal.
    coins = make_coins(Seeded(7))
    for index in range(6):
        sampled = [r for r in range(ROUNDS) if index in made.schedule.active(r, None, 6, coins)]
        assert star.steps(index) == sampled


def _state(party: Party) -> np.ndarray:
    from consenso.algorithms.consensus import State
    from consenso.engine.codec import decode

    place = party._place
    return decode(State, party.disk.read_bytes("pending" if place["pending"] >= 0 else "settled")).u[0]


def test_a_round_waits_for_everybody_unless_the_sampling_is_poisson(tmp_path):
    star = Star(consensus(), tmp_path)
    star.deaf = {(2, 3)}
    with pytest.raises(AssertionError, match="asked for again"):
        star.run()


# --- what a party knows of the schedule -------------------------------------------------------------------------------


def test_a_party_refuses_a_turn_that_is_not_its_own(tmp_path):
    star = Star(plan_example(GradientADMM.example(), schedule=Cyclic()), tmp_path)
    body = encode(star.made.algorithm.down(star.made.facts, star.hub._hub))
    with pytest.raises(MessageError, match="another party's turn"):
        star.party(1).answer(round_=0, stage="step", body=body, counted=-1)
    assert star.party(1).disk.journal() == []


def test_a_party_refuses_more_turns_than_an_honest_draw_would_give():
    made = consensus(schedule=FixedSubset(1), rounds=100)
    attendance = Attendance(made, 0)
    attendance.check(99, 30)
    with pytest.raises(MessageError, match="hardly"):
        attendance.check(99, 60)
    walk = Attendance(consensus(schedule=RandomWalk(), rounds=100), 0)
    with pytest.raises(MessageError, match="hardly"):
        walk.check(99, 60)


# --- budget -----------------------------------------------------------------------------------------------------------


def ledger_of(folder: Path, epsilon: float) -> Ledger:
    budget = Budget(observer="public", unit="party", adjacency="replace-one", epsilon=epsilon, delta=1e-5)
    return Ledger.create(folder / f"{epsilon}.ledger", dataset="d", budgets=[budget])


def test_a_party_reserves_before_it_releases_and_commits_in_the_end(tmp_path):
    made = consensus(sampler=Safe(), rounds=2)
    ledger = ledger_of(tmp_path, 1000.0)
    star = Star(made, tmp_path, guard=LedgerGuard(made, LedgerCharge(ledger=ledger, run_id="r")))
    assert not ledger.runs()
    next(star.hub.rounds(star))
    assert [run.state for run in ledger.runs()] == ["reserved"]
    spent = ledger.balances()[0].spent
    star.kill(0)
    star.run()
    star.party(0).end(star.hub.model_bytes())
    assert [run.state for run in ledger.runs()] == ["committed"]
    assert ledger.balances()[0].spent == spent


def test_a_ledger_that_does_not_allow_the_run_keeps_everything_inside(tmp_path):
    made = consensus(sampler=Safe())
    ledger = ledger_of(tmp_path, 0.01)
    star = Star(made, tmp_path, guard=LedgerGuard(made, LedgerCharge(ledger=ledger, run_id="r")))
    with pytest.raises(BudgetError):
        next(star.hub.rounds(star))
    assert star.party(0).disk.journal() == []
    assert not ledger.runs()


def test_safe_noise_needs_a_ledger_and_seeded_noise_has_none(tmp_path):
    with pytest.raises(PrivacyError, match="ledger of its own"):
        Star(consensus(sampler=Safe()), tmp_path).party(0)
    with pytest.raises(PrivacyError, match="simulation"):
        LedgerGuard(consensus(), LedgerCharge(ledger=ledger_of(tmp_path, 1.0), run_id="r"))


def test_the_journal_has_the_scales_of_the_plan_and_says_what_was_handed_over(tmp_path):
    local = Star(consensus(), tmp_path / "local")
    local.run()
    scale = local.made.facts.noise["residual"]
    for row in (row for row in local.party(3).disk.journal() if row["what"] == "step"):
        assert row["releases"] == [{"name": "residual", "scale": scale, "bound": 1.0, "share": 1.0}]
    trusted = Star(plan_example(DPSGD.example(), trust="curator"), tmp_path / "curator")
    trusted.run()
    rows = [row for row in trusted.party(3).disk.journal() if row["what"] == "step"]
    assert [row["releases"] for row in rows] == [[{"name": "gradient", "scale": None}]] * ROUNDS
    added = [row["releases"] for row in trusted.hub.disk.journal()]
    assert [each[0]["name"] for each in added] == ["gradient"] * ROUNDS
    assert all(each[0]["scale"] > 0 for each in added)


def test_a_plan_without_a_source_of_noise_is_refused_by_hubs_and_parties(tmp_path):
    made = replace(consensus(), sampler_chosen=False)
    with pytest.raises(PrivacyError, match="no source of noise"):
        Star(made, tmp_path)
    with pytest.raises(PrivacyError, match="no source of noise"):
        SinglePartyStep(made, Shards.from_parties(made.problem, draw(made.problem, np.random.default_rng(0))), 0)


# --- what a hub refuses -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("offset", [0, 8])
def test_a_contribution_that_claims_another_cost_is_refused(tmp_path, offset):
    """A smaller bound, or a smaller part of the cost, would change the noise on everybody's sum."""

    class Forging(Star):
        def ask(self, questions, check, *, partial):
            found = super().ask(questions, check, partial=partial)
            if questions[0].round < 1:
                return found
            forged = bytearray(found[0])
            place = len(forged) - 16 + offset  # the message ends with its bound and its share
            assert np.frombuffer(forged, dtype=np.float64, count=1, offset=place)[0] > 0
            forged[place : place + 8] = np.float64(1e-3).tobytes()
            check(0, bytes(forged))
            raise KilledError

    star = Forging(plan_example(PreconditionedFixedPoint.example(), trust="curator"), tmp_path)
    with pytest.raises(MessageError, match="not everybody's"):
        star.run()


def test_nobody_sits_out_of_a_round_that_is_not_drawn_by_the_parties(tmp_path):
    class Lazy(Star):
        def ask(self, questions, check, *, partial):
            check(0, b"")
            raise KilledError

    with pytest.raises(MessageError, match="empty message"):
        Lazy(consensus(), tmp_path / "everyone").run()
    with pytest.raises(KilledError):
        Lazy(consensus(schedule=PoissonSubset(0.5)), tmp_path / "sampled").run()


def test_a_plain_sum_refuses_what_must_be_masked(tmp_path):
    with pytest.raises(InputError, match="secure sum"):
        Star(consensus(trust="secure-sum"), tmp_path)


# --- disks ------------------------------------------------------------------------------------------------------------


def test_a_full_disk_is_an_error_and_nothing_is_sent_or_lost(tmp_path):
    star = Star(consensus(rounds=30), tmp_path)
    next(star.hub.rounds(star))
    disk = star.party(2).disk
    pages = disk._connection.execute("PRAGMA page_count").fetchone()[0]
    disk._connection.execute(f"PRAGMA max_page_count = {pages}")
    with pytest.raises(DiskError, match="full"):
        star.run()
    stopped = star.party(2).round
    assert 0 <= stopped < 29
    assert star.steps(2) == list(range(stopped + 1))
    star.kill(2)  # and there is room again
    assert np.array_equal(star.run(), star.local())
    assert star.steps(2) == list(range(30))


def test_one_folder_is_for_one_process_one_run_and_one_owner(tmp_path):
    disk = Disk(tmp_path / "a", owner="a", run="1", fingerprint="f")
    with pytest.raises(InputError, match="another process"):
        Disk(tmp_path / "a", owner="a", run="1", fingerprint="f")
    disk.close()
    for change in ({"owner": "b"}, {"run": "2"}, {"fingerprint": "g"}):
        with pytest.raises(InputError, match="belongs to another"):
            Disk(tmp_path / "a", **({"owner": "a", "run": "1", "fingerprint": "f"} | change))
    Disk(tmp_path / "a", owner="a", run="1", fingerprint="f").close()


def test_a_commit_is_all_or_nothing_and_only_for_its_owner(tmp_path):
    disk = Disk(tmp_path / "a", owner="a", run="1", fingerprint="f")
    disk.commit({"x": b"1", "y": {"z": 1}}, [{"what": "first"}])
    with pytest.raises(TypeError):
        disk.commit({"x": b"2"}, [{"what": object()}])
    assert disk.read_bytes("x") == b"1"
    disk.commit({"x": None})
    assert disk.read_bytes("x") is None
    disk.close()
    assert read_journal(tmp_path / "a") == [{"what": "first"}]
    assert (tmp_path / "a").stat().st_mode & 0o077 == 0
    assert all(file.stat().st_mode & 0o077 == 0 for file in (tmp_path / "a").iterdir())
    with pytest.raises(InputError, match="no run is kept"):
        read_journal(tmp_path / "b")
