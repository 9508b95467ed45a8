"""The secure sum as engines carry it: a real hub and real parties, each on its own disk, without a network between.

Law 1: a secure sum adds whole steps of a public grid, and so does the in-process engine under this trust. Where the
noise is discrete (deployment) every value is a whole number of steps; under a seed noise is continuous, and both round
it to the finest grid on which the largest sum fits. Either way the models are the same bit for bit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

from consenso.algorithms import discover
from consenso.engine.codec import MessageError, decode_values
from consenso.errors import ConsensoError, InputError, PreconditionError
from consenso.federation.disk import Disk
from consenso.federation.hub import HubRun, Question
from consenso.federation.party import Party
from consenso.federation.sum_protocol import Check
from consenso.planning.plan import Plan, plan
from consenso.privacy.noise import GaussianNoise, LaplaceNoise
from consenso.privacy.samplers import Key, Safe, Seeded
from consenso.problem import Problem
from consenso.schedules import Cyclic, Everyone, FixedSubset, PoissonSubset
from consenso.secure_sum import DiscardedError, secure_parts, terms_of
from consenso.shards import Shards
from consenso.testing.laws import execute, plan_example
from consenso.testing.worlds import draw


@dataclass
class Federation:
    """A hub and its parties in one process. `before` sees every question and may keep it from its party."""

    made: Plan
    folder: Path
    patience: int | None = 0
    before: Callable[[int, Question], bool] = lambda party, question: True
    after: Callable[[int, Question, bytes], bytes] = lambda party, question, answer: answer
    heard: list[tuple[int, Question, bytes]] = field(default_factory=list)
    parties: dict[int, Party] = field(default_factory=dict)
    hub: HubRun | None = None

    def __post_init__(self) -> None:
        problem = self.made.problem
        self.shards = Shards.from_parties(problem, draw(problem, np.random.default_rng(0)))
        for party in range(problem.parties):
            self.start_party(party)
        self.start_hub()

    def start_party(self, party: int) -> None:
        if party in self.parties:
            self.parties[party].disk.close()
        disk = Disk(self.folder / f"party{party}", owner=str(party), run="r", fingerprint="f")
        self.parties[party] = Party(self.made, self.shards, party, disk, contributor=secure_parts(self.made)[1])

    def start_hub(self) -> None:
        if self.hub is not None:
            self.hub.disk.close()
        disk = Disk(self.folder / "hub", owner="hub", run="r", fingerprint="f")
        self.hub = HubRun(self.made, disk, summation=secure_parts(self.made, patience=self.patience)[0])

    def ask(self, questions: Mapping[int, Question], check: Check, *, partial: bool) -> dict[int, bytes]:
        answers = {}
        for party, question in questions.items():
            if not self.before(party, question):
                continue
            answer = self.parties[party].answer(
                round_=question.round, stage=question.stage, body=question.body, counted=question.counted
            )
            answer = self.after(party, question, answer)
            check(party, answer)
            self.heard.append((party, question, answer))
            answers[party] = answer
        return answers

    def run(self) -> np.ndarray:
        assert self.hub is not None
        for _ in self.hub.rounds(self):
            pass
        return self.hub.model()

    def close(self) -> None:
        for party in self.parties.values():
            party.disk.close()
        if self.hub is not None:
            self.hub.disk.close()


@contextmanager
def federation(made: Plan, folder: Path, **changes: Any) -> Iterator[Federation]:
    at = Federation(made, folder, **changes)
    try:
        yield at
    finally:
        at.close()


@dataclass(frozen=True)
class OnTheGrid:
    """Seeded noise rounded to the grid of the safe sampler: what deployment draws, but it can be drawn again."""

    seed: int = 5
    name: ClassVar[str] = "seeded on a grid (simulation, not private)"
    private: ClassVar[bool] = False

    def gaussian(self, values: np.ndarray, std: Any, key: Key, *, sensitivity: Any) -> np.ndarray:
        zero = np.zeros_like(values)
        noise = Seeded(self.seed).gaussian(zero, std, key, sensitivity=sensitivity)
        scales, sizes = (np.broadcast_to(each, (len(values),)) for each in (std, sensitivity))
        steps = np.array([self.grid(float(s), float(d), values.shape[1]) for s, d in zip(scales, sizes, strict=True)])
        return (np.rint(values / steps[:, None]) + np.rint(noise / steps[:, None])) * steps[:, None]

    def uniform(self, key: Key, count: int) -> np.ndarray:
        return Seeded(self.seed).uniform(key, count)

    def grid(self, scale: float, sensitivity: float, dim: int) -> float:
        return Safe().grid(scale, sensitivity, dim)

    def widening(self, scale: float, sensitivity: float, dim: int, norm: Any) -> float:
        return Safe().widening(scale, sensitivity, dim, norm)

    def displacement(self, scale: float, sensitivity: float, dim: int) -> float:
        return Safe().displacement(scale, sensitivity, dim)

    def excess(self, scale: float, sensitivity: float, dim: int, kind: Any) -> float:
        return Safe().excess(scale, sensitivity, dim, kind)


ALGORITHMS = [cls for cls in discover().values() if "secure-sum" in cls.example().trusts]
SETTINGS = [
    pytest.param(cls, schedule, id=f"{cls.__name__}-{type(schedule).__name__}")
    for cls in ALGORITHMS
    for schedule in cls.example().schedules
    if isinstance(schedule, Everyone | PoissonSubset)
]
NEEDED = "PreconditionedFixedPoint"  # one round more than its steps
ROUNDS = {NEEDED: discover()[NEEDED].example().rounds}


def of_example(cls: Any, **changes: Any) -> Plan:
    """The example of an algorithm under a secure sum; a few rounds suffice to see a difference."""
    return plan_example(cls.example(), **({"trust": "secure-sum", "rounds": ROUNDS.get(cls.__name__, 3)} | changes))


def in_process(made: Plan, shards: Shards) -> np.ndarray:
    return execute(made, shards, one_by_one=True)[0]


def test_there_are_algorithms_to_test() -> None:
    assert len(ALGORITHMS) >= 6
    assert {type(each.values[1]) for each in SETTINGS} == {Everyone, PoissonSubset}


@pytest.mark.parametrize(("cls", "schedule"), SETTINGS)
def test_law_1_with_noise_on_the_grid_bit_for_bit(cls: Any, schedule: Any, tmp_path: Path) -> None:
    made = of_example(cls, schedule=schedule, colluders=1, sampler=OnTheGrid())
    with federation(made, tmp_path) as at:
        assert np.array_equal(at.run(), in_process(made, at.shards))


@pytest.mark.sweep(by=lambda cls, schedule: {"schedule": type(schedule)})
@pytest.mark.parametrize(("cls", "schedule"), SETTINGS)
def test_law_1_with_continuous_noise_bit_for_bit(cls: Any, schedule: Any, tmp_path: Path) -> None:
    made = of_example(cls, schedule=schedule, colluders=2)
    with federation(made, tmp_path) as at:
        assert np.array_equal(at.run(), in_process(made, at.shards))


# --- who is in the sum ------------------------------------------------------------------------------------------------

SGD = next(cls for cls in ALGORITHMS if cls.__name__ == "DPSGD")
ADMM = next(cls for cls in ALGORITHMS if cls.__name__ == "ConsensusADMM")


@pytest.mark.parametrize("cls", [SGD, ADMM])
def test_the_sample_stays_hidden(cls: Any, tmp_path: Path) -> None:
    """Every party answers in every round with as many bytes, and the hub counts all of them."""
    made = of_example(cls, schedule=PoissonSubset(0.4), sampler=Seeded(3))
    with federation(made, tmp_path) as at:
        model = at.run()
        steps = [(party, len(answer)) for party, question, answer in at.heard if question.stage == "step"]
        assert len(steps) == 3 * 6
        assert len({length for _, length in steps}) == 1
        drawn = [row for party in at.parties.values() for row in party.disk.journal() if row["what"] != "sent"]
        assert {row["what"] for row in drawn} == {"step", "silent"}
        assert at.hub is not None
        assert at.hub.disk.read_json("place")["counted"] == [2] * 6
        assert np.array_equal(model, in_process(made, at.shards))


def messages_in(at: Federation, stage: str = "step") -> dict[int, dict[int, bytes]]:
    """By round, the integers that parties sent."""
    found: dict[int, dict[int, bytes]] = {}
    for party, question, answer in at.heard:
        if question.stage == stage and question.body:
            found.setdefault(question.round, {})[party] = answer
    return found


def test_a_party_that_drops_out_is_not_in_the_sum_and_comes_back(tmp_path: Path) -> None:
    made = of_example(SGD, colluders=2, rounds=5)
    said: dict[tuple[int, int], np.ndarray] = {}

    def before(party: int, question: Question) -> bool:
        return not (party == 2 and question.round == 1)

    def after(party: int, question: Question, answer: bytes) -> bytes:
        if question.stage == "step" and question.body:
            message = at.parties[party].disk.read_bytes("said")
            assert message is not None
            form = at.parties[party]._schemas.at(question.round).up
            said[question.round, party] = decode_values(message, form.schema)["gradient"][0]
        return answer

    totals: dict[int, np.ndarray] = {}
    with federation(made, tmp_path, before=before, after=after) as at:
        original = made.algorithm.combine

        def combine(self: Any, facts: Any, hub: Any, total: Any) -> Any:
            totals[facts.round] = total.gradient
            return original(facts, hub, total)

        spy = type("DPSGD", (type(made.algorithm),), {"combine": combine})
        spied = object.__new__(spy)
        spied.__dict__.update(made.algorithm.__dict__)
        assert at.hub is not None
        at.hub.plan = replace(made, algorithm=spied)
        at.run()
        # Without keys for round 2 it is asked for those of round 3 only.
        members = {round_: sorted(found) for round_, found in messages_in(at).items()}
        everyone = list(range(6))
        assert members == {0: everyone, 1: [0, 1, 3, 4, 5], 2: [0, 1, 3, 4, 5], 3: everyone, 4: everyone}
        for round_, parties in members.items():
            expected = sum(said[round_, party] for party in parties)
            np.testing.assert_allclose(totals[round_], expected, rtol=0, atol=1e-14)
        assert at.hub.disk.read_json("place")["counted"] == [4] * 6


def test_a_party_that_drops_out_before_it_reveals_is_in_the_sum(tmp_path: Path) -> None:
    made = of_example(SGD, colluders=2)
    with federation(made, tmp_path, before=lambda party, q: not (party == 1 and q.stage.startswith("reveal"))) as at:
        assert np.array_equal(at.run(), in_process(made, at.shards))


@pytest.mark.parametrize("stage", ["step", "reveal"])
def test_one_drop_out_too_many_discards_the_round(stage: str, tmp_path: Path) -> None:
    made = of_example(SGD, colluders=2)
    gone = (1, 2, 5)
    with federation(
        made, tmp_path, before=lambda party, q: not (party in gone and q.round == 1 and q.stage.startswith(stage))
    ) as at:
        assert terms_of(made).dropouts == 2
        with pytest.raises(DiscardedError, match="only 3 of 6 parties answered and 4 are needed"):
            at.run()
        assert at.hub is not None
        assert at.hub.round == 1  # the round is not over
        revealed = [q for _, q, _ in at.heard if q.stage.startswith("reveal") and q.round == 1]
        assert len(revealed) == (0 if stage == "step" else 3)
        # When they are back the same round goes on, with the same messages: no noise is drawn twice.
        at.before = lambda party, q: True
        assert np.array_equal(at.run(), in_process(made, at.shards))


# --- restarts ---------------------------------------------------------------------------------------------------------


class CrashError(Exception):
    pass


@pytest.mark.parametrize("schedule", [Everyone(), PoissonSubset(0.5)])
def test_restarts_at_every_question_change_nothing(schedule: Any, tmp_path: Path) -> None:
    """The hub, or the party that was asked, dies before or after each answer in turn."""
    made = of_example(SGD, schedule=schedule, colluders=0, rounds=2)
    moments = iter([1, 4, 7, 13, 19, 20, 27, 33, 40, 44, 51, 58])  # counted from the last crash
    passed = {"since": 0, "due": next(moments), "crashes": 0}

    def crash_now() -> bool:
        passed["since"] += 1
        if passed["since"] < passed["due"]:
            return False
        passed.update(since=0, due=next(moments, 10**9), crashes=passed["crashes"] + 1)
        return True

    def before(party: int, question: Question) -> bool:
        if crash_now():
            if passed["crashes"] % 2:
                raise CrashError
            at.start_party(party)
        return True

    def after(party: int, question: Question, answer: bytes) -> bytes:
        if crash_now():
            if passed["crashes"] % 2:
                raise CrashError  # the answer is lost with the hub
            at.start_party(party)
        return answer

    with federation(made, tmp_path, before=before, after=after) as at:
        restarts = 0
        while True:
            try:
                model = at.run()
                break
            except CrashError:
                restarts += 1
                at.start_hub()
        assert restarts >= 5
        assert passed["crashes"] >= 9
        assert np.array_equal(model, in_process(made, at.shards))
        # What left a party in a stage is one answer, however often it was asked.
        sent: dict[tuple[int, int, str], set[bytes]] = {}
        for party, question, answer in at.heard:
            sent.setdefault((party, question.round, question.stage), set()).add(answer)
        assert all(len(answers) == 1 for answers in sent.values())


def test_a_hub_that_dies_while_it_opens_a_sum_opens_that_sum_and_no_other(tmp_path: Path) -> None:
    made = of_example(SGD, colluders=2)

    def before(party: int, question: Question) -> bool:
        if question.round == 1 and question.stage.startswith("reveal") and party == 3:
            raise CrashError
        return not (party == 5 and question.round == 1)

    with federation(made, tmp_path, before=before) as at:
        with pytest.raises(CrashError):
            at.run()
        # Parties 0, 1 and 2 agreed to the survivors 0 to 4. Now party 5 is there as well: it comes too late.
        at.start_hub()
        at.before = lambda party, question: True
        at.run()
        assert at.hub is not None
        survivors = [
            np.flatnonzero(decode_values(q.body, secure_parts(made)[1].wire.survivors)["survivors"]).tolist()
            for _, q, _ in at.heard
            if q.round == 1 and q.stage.startswith("reveal")
        ]
        assert survivors
        assert all(listed == [0, 1, 2, 3, 4] for listed in survivors)


# --- what is refused --------------------------------------------------------------------------------------------------


def test_changed_answers_and_questions_are_refused(tmp_path: Path) -> None:
    made = of_example(SGD, colluders=2)
    for stage in ("hello", "advert", "step", "reveal"):
        for where in ("head", "end", "cut"):

            def after(party: int, question: Question, answer: bytes, stage: str = stage, where: str = where) -> bytes:
                if party != 2 or not question.stage.startswith(stage):
                    return answer
                if where == "cut":
                    return answer[:-1]
                return bytes([answer[0] ^ 1]) + answer[1:] if where == "head" else answer + b"\0"

            with (
                federation(made, tmp_path / f"{stage}-{where}", after=after) as at,
                pytest.raises(MessageError),
            ):
                at.run()


@pytest.mark.parametrize(
    ("stage", "body", "reason"),
    [
        ("step", b"x" * 40, "bytes|head|message"),
        ("advert", b"", "broke off"),
        ("reveal/0", b"", "broke off"),
        ("other", b"", "a stage that a secure sum does not have"),
    ],
)
def test_a_party_refuses_questions_that_are_not_in_order(stage: str, body: bytes, reason: str, tmp_path: Path) -> None:
    made = of_example(SGD)
    with federation(made, tmp_path) as at:
        party = at.parties[0]
        with pytest.raises(MessageError, match=reason):
            party.answer(round_=0, stage=stage, body=body, counted=-1)
        assert not [row for row in party.disk.journal() if row["what"] != "sent"]
        assert np.array_equal(at.run(), in_process(made, at.shards))


def test_a_party_does_not_take_its_step_for_a_call_that_is_refused(tmp_path: Path) -> None:
    made = of_example(SGD)
    with federation(made, tmp_path) as at:
        seen: list[str] = []

        def before(party: int, question: Question) -> bool:
            if party == 0 and question.stage == "step" and not seen:
                other = secure_parts(made)[1].wire
                cut = other.call.size
                wrong = bytearray(question.body)
                wrong[cut - 200] ^= 1  # inside the envelopes with shares
                try:
                    at.parties[0].answer(round_=0, stage="step", body=bytes(wrong), counted=-1)
                except MessageError as error:
                    seen.append(str(error))
                assert not [row for row in at.parties[0].disk.journal() if row["what"] != "sent"]
            return True

        at.before = before
        at.run()
        assert len(seen) == 1
        assert "does not open" in seen[0]


def _problem(**changes: Any) -> Problem:
    return replace(SGD.example().problem, **changes)


@pytest.mark.parametrize(
    ("changes", "error", "reason"),
    [
        ({"schedule": FixedSubset(2)}, InputError, "cannot draw for themselves"),
        ({"schedule": Cyclic()}, InputError, "cannot draw for themselves"),
        ({"trust": "curator"}, InputError, "with trust='secure-sum'"),
        ({"noise": LaplaceNoise(multiplier=1.0)}, PreconditionError, "shares of this law do not add up"),
    ],
)
def test_what_cannot_be_summed_is_refused_before_anything_starts(
    changes: dict[str, Any], error: type[Exception], reason: str
) -> None:
    with pytest.raises(error, match=reason):
        secure_parts(of_example(SGD, **changes))


def test_one_party_alone_is_refused() -> None:
    problem = _problem(sizes=np.array([30]))
    noise, algorithm = GaussianNoise(multiplier=1.0), SGD.example().algorithm
    with pytest.raises(ConsensoError, match=r"a sum of one party|may collude"):
        terms_of(plan(problem, algorithm, rounds=2, noise=noise, trust="secure-sum"))


def test_two_parties_can_sum(tmp_path: Path) -> None:
    problem = _problem(sizes=np.array([5, 5]))
    made = plan(
        problem,
        SGD.example().algorithm,
        rounds=2,
        noise=GaussianNoise(multiplier=1.0),
        trust="secure-sum",
        sampler=Seeded(7),
    )
    with federation(made, tmp_path) as at:
        assert np.array_equal(at.run(), in_process(made, at.shards))
