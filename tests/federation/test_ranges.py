"""Numbers that public facts do not allow are refused, from whoever they come, and honest numbers never are."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.engine.failing import make_tables, plan_failing

from consenso.algorithms import discover
from consenso.algorithms.consensus import ConsensusADMM, Down
from consenso.algorithms.preconditioned import PreconditionedFixedPoint
from consenso.algorithms.shape import HubAlgorithm
from consenso.engine.codec import encode, encode_values
from consenso.errors import MessageError
from consenso.federation.disk import Disk
from consenso.federation.hub import HubRun, check_star
from consenso.federation.node import Node
from consenso.federation.party import Party
from consenso.federation.ranges import cut_numbers, largest_number
from consenso.federation.single_party_step import SinglePartyStep
from consenso.losses import Hinge
from consenso.privacy.observers import Public
from consenso.privacy.run_spec import PrivacyQuery
from consenso.public_facts import PublicFacts
from consenso.shards import Shards
from consenso.testing.laws import plan_example
from consenso.testing.worlds import draw

HUBS = [name for name, kind in discover().items() if isinstance(kind.example().algorithm, HubAlgorithm)]
PEERS = [name for name in discover() if name not in HUBS]


def disk(folder: Path, owner: str) -> Disk:
    return Disk(folder / owner, owner=owner, run="ab" * 32, fingerprint="f")


def local_plan(name: str):
    return plan_example(discover()[name].example(), trust="local")


def is_served(name: str) -> bool:
    """Whether its parties add noise of their own and a server runs it."""
    if "local" not in discover()[name].example().trusts:
        return False
    try:
        check_star(local_plan(name))
    except ValueError:
        return False
    return True


def sent_arrays(made) -> dict[str, np.ndarray]:
    """What a hub sends first, by field."""
    down = made.algorithm.down(made.facts, made.algorithm.start(made.facts))
    return {field: value for field, value in vars(down).items() if isinstance(value, np.ndarray) and value.size}


SERVED = [name for name in HUBS if is_served(name)]


class Liars:
    """Parties around a hub, some of whose numbers are replaced on their way; told again when they are refused."""

    def __init__(self, made, folder: Path, huge: float | None) -> None:
        data = draw(made.problem, np.random.default_rng(0))
        self.parties = [
            Party(made, Shards.from_parties(made.problem, [data[i]], parties=[i]), i, disk(folder, f"p{i}"))
            for i in range(made.parties)
        ]
        self.huge, self.refused = huge, 0

    def ask(self, questions, check, *, partial):
        answers = {}
        for party, question in questions.items():
            answer = self.parties[party].answer(
                round_=question.round, stage=question.stage, body=question.body, counted=question.counted
            )
            if self.huge is not None and answer:
                with pytest.raises(MessageError, match=rf"of party {party} is larger|is not finite"):
                    check(party, answer[:-8] + np.array([self.huge]).tobytes())
                self.refused += 1
            check(party, answer)
            answers[party] = answer
        return answers


@pytest.mark.parametrize("name", SERVED)
def test_a_huge_number_of_one_party_is_refused_and_the_run_goes_on(name: str, tmp_path: Path) -> None:
    made = local_plan(name)
    models = []
    for huge in (None, 1e150, -1e308, np.inf):
        parties = Liars(made, tmp_path / str(huge), huge)
        hub = HubRun(made, disk(tmp_path / str(huge), "hub"))
        for _ in hub.rounds(parties):
            pass
        assert parties.refused or huge is None
        models.append(hub.model())
    # What is refused leaves nothing behind, and what honest parties sent was never refused.
    for model in models[1:]:
        np.testing.assert_array_equal(model, models[0])


def test_within_its_range_a_party_spoils_the_model_and_is_not_named(tmp_path: Path) -> None:
    made = local_plan("DPSGD")
    honest, spoiled = (HubRun(made, disk(tmp_path / kind, "hub")) for kind in ("honest", "spoiled"))
    parties = Liars(made, tmp_path / "honest", None), Liars(made, tmp_path / "spoiled", None)
    ask = parties[1].ask

    def lie(questions, check, *, partial):
        answers = ask(questions, check, partial=partial)
        if answers.get(0):
            # Thirty standard deviations of the sum's noise: within what an honest party could send.
            answers[0] = answers[0][:-8] + np.array([30 * made.facts.noise["gradient"] / made.parties]).tobytes()
            check(0, answers[0])
        return answers

    parties[1].ask = lie
    for hub, those in zip((honest, spoiled), parties, strict=True):
        for _ in hub.rounds(those):
            pass
    assert np.linalg.norm(spoiled.model() - honest.model()) > 1


@pytest.mark.parametrize("name", [name for name in SERVED if sent_arrays(local_plan(name))])
def test_what_a_hub_sends_beyond_the_range_is_refused_before_data_are_touched(name: str, tmp_path: Path) -> None:
    made = local_plan(name)
    down = made.algorithm.down(made.facts, made.algorithm.start(made.facts))
    field = next(iter(sent_arrays(made)))
    parties = Liars(made, tmp_path, None)
    for huge in (1.01 * largest_number(made.problem), 1e300, -1e300):
        lie = replace(down, **{field: np.full_like(getattr(down, field), huge)})
        with pytest.raises(MessageError):
            parties.parties[0].answer(round_=0, stage="step", body=encode(lie), counted=-1)
    assert parties.parties[0].disk.journal() == []
    assert parties.parties[0].round == -1


@pytest.mark.parametrize("name", PEERS)
def test_a_huge_number_of_a_neighbour_is_refused(name: str, tmp_path: Path) -> None:
    made = plan_example(discover()[name].example())
    data = draw(made.problem, np.random.default_rng(0))
    shards = Shards.from_parties(made.problem, [data[0]], parties=[0])
    node = Node(made, shards, 0, disk(tmp_path, "p0"))
    node.begin()
    said = node.get_message(0, 1)
    node.check(0, 1, said)
    for huge in (1e150, 1.01 * largest_number(made.problem)):
        with pytest.raises(MessageError, match="larger than"):
            node.check(0, 1, said[:-8] + np.array([huge]).tobytes())


def test_numbers_are_cut_to_the_range_and_left_alone_within_it() -> None:
    inside = Down(z=np.array([1.0, -2.0]))
    assert cut_numbers(inside, 2.0) is inside
    np.testing.assert_array_equal(cut_numbers(Down(z=np.array([1e300, -3.0, np.nan])), 2.0).z, [2.0, -2.0, 0.0])


# --- steps that fail because of the rows ------------------------------------------------------------------------------


def test_a_step_that_rows_keep_from_its_end_is_answered_like_one_without_records(tmp_path: Path) -> None:
    made = plan_failing()
    data, empty = make_tables(made)
    taken = []
    for tables in (data, empty):
        shards = Shards.from_parties(made.problem, [tables[0]], parties=[0])
        step = SinglePartyStep(made, shards, 0)
        taken.append(step.take(0, step.enroll(), {}, Down(z=np.zeros(made.problem.dim))))
    one, other = taken
    np.testing.assert_array_equal(one.message.increment, other.message.increment)
    np.testing.assert_array_equal(one.state.u, other.state.u)
    assert one.releases == other.releases
    assert one.releases[0]["scale"] > 0
    party = Party(made, Shards.from_parties(made.problem, [data[0]], parties=[0]), 0, disk(tmp_path, "p0"))
    question = {"round_": 0, "stage": "step", "body": encode(Down(z=np.zeros(made.problem.dim))), "counted": -1}
    assert party.answer(**question) == party.answer(**question)
    (row,) = (row for row in party.disk.journal() if row["what"] == "step")
    assert row["releases"] == list(other.releases)


def test_a_question_that_nobody_could_answer_is_refused_whatever_the_rows() -> None:
    example = ConsensusADMM.example()
    made = plan_example(replace(example, algorithm=replace(example.algorithm, tolerance=1e-18)), trust="local")
    data = draw(made.problem, np.random.default_rng(0))
    for rows, targets in (data[0], (np.zeros_like(data[0][0]), data[0][1])):
        step = SinglePartyStep(made, Shards.from_parties(made.problem, [(rows, targets)], parties=[0]), 0)
        with pytest.raises(MessageError, match="rounding alone may exceed it"):
            step.take(0, step.enroll(), {}, Down(z=np.ones(made.problem.dim)))


# --- a metric that is none --------------------------------------------------------------------------------------------


def twisted(change):
    vectors, values = np.eye(3), np.ones(3)
    change(vectors, values)
    return vectors, values


METRICS = {
    "a direction as long as 2^80": lambda vectors, values: vectors.__setitem__((slice(None), 0), 2.0**80),
    "a direction of 1e200": lambda vectors, values: vectors.__setitem__((0, 0), 1e200),
    "not orthonormal by 1e-6": lambda vectors, values: vectors.__setitem__((0, 1), 1e-6),
    "a value of 2^-160": lambda vectors, values: values.__setitem__(0, 2.0**-160),
    "a value below the floor": lambda vectors, values: values.__setitem__(0, 0.9e-6),
    "a value above the row bound": lambda vectors, values: values.__setitem__(0, 1.1),
    "a negative value": lambda vectors, values: values.__setitem__(0, -1.0),
}


@pytest.mark.parametrize("what", METRICS)
def test_a_metric_that_no_released_moment_has_is_refused(what: str, tmp_path: Path) -> None:
    made = local_plan("PreconditionedFixedPoint")
    algorithm: PreconditionedFixedPoint = made.algorithm
    parties = Liars(made, tmp_path, None)
    honest = algorithm.down(made.facts, algorithm.start(made.facts))
    vectors, values = twisted(METRICS[what])
    lie = encode(replace(honest, vectors=vectors, values=values, share=0.1))
    with pytest.raises(MessageError, match=r"metric|larger than"):
        parties.parties[0].answer(round_=algorithm.moment_releases, stage="step", body=lie, counted=-1)
    assert parties.parties[0].disk.journal() == []
    good = encode(replace(honest, vectors=np.eye(3), values=np.ones(3), share=0.1))
    assert parties.parties[0].answer(round_=algorithm.moment_releases, stage="step", body=good, counted=-1)


@pytest.mark.parametrize(
    ("field", "number"),
    [
        (field, number)
        for field in ("clip", "width", "share")
        for number in (0.0, -1.0, 5e-324, 1e9, 1e300)
        if (field, number) != ("share", 5e-324)  # a small share is the hub's loss: its noise grows
    ],
)
def test_a_clip_width_or_share_that_no_honest_hub_names_is_refused(field: str, number: float, tmp_path: Path) -> None:
    made = local_plan("PreconditionedFixedPoint")
    parties = Liars(made, tmp_path, None)
    honest = made.algorithm.down(made.facts, made.algorithm.start(made.facts))
    lie = encode(replace(honest, **{field: number}))
    with pytest.raises(MessageError):
        parties.parties[0].answer(round_=1, stage="step", body=lie, counted=-1)
    assert parties.parties[0].disk.journal() == []


# --- what a hub can do ------------------------------------------------------------------------------------------------


def test_a_hub_may_end_a_run_with_any_model(tmp_path: Path) -> None:
    made = local_plan("ConsensusADMM")
    party = Liars(made, tmp_path, None).parties[0]
    nonsense = np.full(made.problem.dim, 42.0)
    party.end(encode_values("Model", {"model": nonsense}))
    np.testing.assert_array_equal(party.model, nonsense)


def test_a_loss_with_kinks_makes_no_claim_that_needs_every_prox_to_end() -> None:
    example = ConsensusADMM.example()
    kinks = replace(example.problem, loss=Hinge(), unit="record")
    smooth = replace(example.problem, unit="record")
    assert _theorems(example, example.problem)
    assert not _theorems(example, replace(kinks, unit="party"))
    facts = PublicFacts.everyone(kinks, rounds=1)
    (release,) = example.algorithm.releases(facts)
    assert np.all(release.bounds.record_replace_one == release.bounds.party_replace_one)
    (release,) = example.algorithm.releases(PublicFacts.everyone(smooth, rounds=1))
    assert np.all(release.bounds.record_replace_one < release.bounds.party_replace_one)


def _theorems(example, problem) -> list[object]:
    made = plan_example(replace(example, problem=problem), trust="secure-sum")
    query = PrivacyQuery(observer=Public(), unit="party", adjacency="replace-one", party=0)
    return list(made.algorithm.theorems(made, query))
