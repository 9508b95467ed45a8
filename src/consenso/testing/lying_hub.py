"""Law 11: whatever a hub or a neighbour sends, one record moves no release by more than was declared.

Every field of what an algorithm hears is replaced by unkind numbers: huge, tiny, infinite, none, of turning signs,
matrices that are no rotations. The same messages, round after round, go to a party of two neighbouring data sets. What
the party refuses it must refuse in both, and what it releases must be as near as declared.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from consenso.algorithms.shape import Example, HubAlgorithm
from consenso.arrays import Array, IntArray
from consenso.engine.round import Neighbourhood
from consenso.errors import ConsensoError, MessageError
from consenso.federation.message_schemas import spread_messages
from consenso.federation.ranges import check_numbers, cut_numbers, largest_number
from consenso.federation.round_log import Spent
from consenso.federation.single_party_step import SinglePartyStep
from consenso.planning.plan import Plan
from consenso.privacy.release import Release
from consenso.problem import Adjacency, Unit
from consenso.shards import Shards
from consenso.testing.plans import ADJACENCIES, UNITS, execute, plan_example, shards_of
from consenso.testing.worlds import Pair, pairs

ROUNDS = 4
# How many messages have all of their fields replaced at once.
TOGETHER = 24

Lie = Callable[[Array, int], Array]


@dataclass(frozen=True)
class Answered:
    """What came of one question: a refusal, or the values that would have been released."""

    refusal: str
    values: tuple[tuple[Release, Array, float], ...] = ()


def lies_gain_nothing(example: Example) -> None:
    """Law 11: no message makes one record move a release by more than declared, or decide what is refused."""
    if "local" not in example.trusts:
        return
    rng, planned_any = np.random.default_rng(23), False
    for unit in UNITS:
        for adjacency in ADJACENCIES:
            problem = replace(example.problem, unit=unit, adjacency=adjacency)
            try:
                made = plan_example(replace(example, problem=problem), trust="local")
            except ConsensoError:
                continue  # nothing is promised here
            planned_any = True
            worlds = [*pairs(problem, unit, adjacency, rng), *_flat(problem, unit, adjacency, rng)]
            for number, (what, lie) in enumerate(_sequences(made, example, rng)):
                pair = worlds[number % len(worlds)]
                _compare(made, pair, unit, adjacency, what, lie)
    assert planned_any, "no unit and adjacency could be planned"


# --- what is sent ----------------------------------------------------------------------------------------------------


def _fill(number: float) -> Lie:
    return lambda value, round_: np.full_like(value, number)


def _turn(number: float) -> Lie:
    return lambda value, round_: np.full_like(value, number * (-1) ** round_)


def _scale(number: float) -> Lie:
    return lambda value, round_: value * number


def _first(number: float) -> Lie:
    def lie(value: Array, round_: int) -> Array:
        changed = np.array(value)
        if value.size:
            changed.reshape(len(changed), -1)[:, 0] *= number
        return changed

    return lie


def _flat_direction(number: float) -> Lie:
    """The first vector of a matrix is the direction in which rows whose entries add up to zero vanish.

    The first number of a vector is next to nothing: as an eigenvalue it makes that direction the longest.
    """

    def lie(value: Array, round_: int) -> Array:
        changed = np.array(value)
        if value.ndim == 2 and value.size:
            changed[:, 0] = number
        elif value.size:
            changed[0] = 2.0**-160
        return changed

    return lie


LIES: tuple[tuple[str, Lie], ...] = (
    *((f"{number:g} everywhere", _fill(number)) for number in (1e300, -1e300, np.inf, np.nan, 5e-324, 0.0, 1e-12)),
    *((f"{number:g} everywhere", _fill(number)) for number in (1.0, 1e3, 7e3, 2e4, 1e5, 9e5)),
    *((f"{number:g} with turning signs", _turn(number)) for number in (3.0, 1e4, 5e5)),
    *((f"2^{power} times as large", _scale(2.0**power)) for power in (80, 16, -16, -80)),
    *((f"its first entries 2^{power} times as large", _first(2.0**power)) for power in (80, 20, -20, -80)),
    *((f"2^{power} along one direction", _flat_direction(2.0**power)) for power in (80, 16, 0)),
)


def _sequences(made: Plan, example: Example, rng: np.random.Generator) -> Iterator[tuple[str, Callable[..., Any]]]:
    """Ways to change what is sent: one field, all of them, and nothing but the model."""
    names = _names(made, example)
    for name in names:
        for what, lie in LIES:
            yield f"{name}: {what}", _changer({name: lie})
    for _ in range(TOGETHER if len(names) > 1 else 0):
        chosen = {name: LIES[int(rng.integers(len(LIES)))] for name in names}
        yield (
            ", ".join(f"{name}: {what}" for name, (what, _) in chosen.items()),
            _changer({name: lie for name, (_, lie) in chosen.items()}),
        )
    if len(names) > 1:
        for number in (2.0**80, 2.0**16, 1.0):
            along = {name: _flat_direction(number) for name in names[1:3]}
            yield f"one direction {number:g} times as long", _changer(along)


def _changer(lies: dict[str, Lie]) -> Callable[[Any, int], Any]:
    def change(record: Any, round_: int) -> Any:
        changed: dict[str, Any] = {}
        for name, lie in lies.items():
            value = getattr(record, name)
            with np.errstate(all="ignore"):
                found = lie(np.atleast_1d(np.asarray(value, dtype=np.float64)), round_)
            changed[name] = found if isinstance(value, np.ndarray) else float(found[0])
        return replace(record, **changed)

    return change


def _names(made: Plan, example: Example) -> list[str]:
    sent = _send(made, example)
    if not sent:
        return []
    return [
        each.name
        for each in dataclasses.fields(sent[0])
        if isinstance(getattr(sent[0], each.name), float)
        or (isinstance(getattr(sent[0], each.name), np.ndarray) and getattr(sent[0], each.name).dtype.kind == "f")
    ]


_KEPT: dict[int, tuple[Plan, list[Any]]] = {}


def _send(made: Plan, example: Example) -> list[Any]:
    """What honest ones send in each round: the hub's messages, or what nodes say."""
    if id(made) in _KEPT and _KEPT[id(made)][0] is made:
        return _KEPT[id(made)][1]
    found: list[Any] = []
    is_hub = isinstance(made.algorithm, HubAlgorithm)

    def watch(round_: int, message: Any, hub: Any) -> None:
        found.append(made.algorithm.down(made.spec.facts.at(round_), hub) if is_hub else message)

    execute(made, shards_of(example), watch=watch)
    _KEPT.clear()
    _KEPT[id(made)] = (made, found)
    return found


# --- what comes of it ------------------------------------------------------------------------------------------------


def _flat(problem: Any, unit: Unit, adjacency: Adjacency, rng: np.random.Generator) -> Iterator[Pair]:
    """Neighbours whose rows all vanish in one direction, exactly: their entries are halves and add up to zero."""
    size = problem.row_bound / 2
    shapes = np.zeros((6, problem.features))
    for number in range(len(shapes)):
        one, other = rng.choice(problem.features, 2, replace=False) if problem.features > 1 else (0, 0)
        shapes[number, one] += size
        shapes[number, other] -= size

    def table(shards: Shards, start: int) -> list[tuple[Array, Any]]:
        parts = []
        for party in range(problem.parties):
            cohort = shards.cohort([party])
            rows = shapes[(start + np.arange(cohort.rows)) % len(shapes)]
            parts.append((rows, np.asarray(cohort._targets)))
        return parts

    for pair in pairs(problem, unit, adjacency, rng):
        one = table(pair.one, 0)
        other = [
            (rows, targets) if party != pair.party else _changed(one[party], rows, targets, unit, adjacency)
            for party, (rows, targets) in enumerate(table(pair.other, 0))
        ]
        yield Pair(
            Shards.from_parties(problem, one), Shards.from_parties(problem, other), pair.party, f"flat, {pair.what}"
        )


def _changed(
    before: tuple[Array, Any], rows: Array, targets: Any, unit: Unit, adjacency: Adjacency
) -> tuple[Array, Any]:
    """The other world's rows: the same but for the last record; of a party opposite ones, or zeros where it is gone."""
    if unit == "party":
        return (-rows if adjacency == "replace-one" else np.zeros_like(rows)), targets
    rows = np.array(rows)
    if len(rows) == len(before[0]):
        rows[-1] = -rows[-1]
    return rows, targets


def _compare(
    made: Plan, pair: Pair, unit: Unit, adjacency: Adjacency, what: str, change: Callable[[Any, int], Any]
) -> None:
    one, other = (_answers(made, world, pair.party, change) for world in (pair.one, pair.other))
    for round_, (here, there) in enumerate(zip(one, other, strict=True)):
        about = f"in round {round_} ({unit}, {adjacency}, {pair.what}; {what})"
        assert here.refusal == there.refusal, f"rows decide what is refused {about}"
        for (release, left, bound), (_, right, _) in zip(here.values, there.values, strict=True):
            declared = np.max(release.bounds.at(unit, adjacency)) * bound
            gap = (left - right)[0]
            moved = float(np.abs(gap).sum() if release.norm == 1 else np.linalg.norm(gap))
            assert moved <= declared * (1 + 1e-9) + 1e-12 * bound, (
                f"{release.name!r} moved by {moved:.6g}, declared {declared:.6g}, {about}"
            )


def _answers(made: Plan, shards: Shards, party: int, change: Callable[[Any, int], Any]) -> list[Answered]:
    """What a party answers to a run of lies; a question that it refuses leaves it where it was."""
    seen: list[tuple[Release, Array, float]] = []

    def probe(round_: int, release: Release, cohort: IntArray, value: Array, bound: float) -> None:
        seen.append((release, value.copy(), bound))

    step = SinglePartyStep(replace(made, probe=probe), shards, party)
    is_hub, sent = isinstance(made.algorithm, HubAlgorithm), _KEPT[id(made)][1]
    state, answers = step.enroll(), []
    spent: Spent = {}
    for round_ in range(min(len(sent), ROUNDS)):
        del seen[:]
        try:
            heard = (change(sent[round_], round_),) if is_hub else ()
            with np.errstate(all="ignore"):
                taken = step.take(round_, state, spent, *heard)
                state, spent = taken.state, taken.spent
                if not is_hub:
                    state = _absorb(made, step, party, round_, state, taken.message, change(sent[round_], round_))
        except MessageError as error:
            answers.append(Answered(f"{type(error).__name__}: {error}"))
            continue
        except ConsensoError as error:
            answers.append(Answered(f"{type(error).__name__}: {error}"))
            break
        due = sum(release.times for release in made.algorithm.releases(step.facts(round_)))
        values = tuple(seen[-due:]) if due else ()
        answers.append(Answered("", tuple(each for each in values if not each[0].perturbs_objective)))
    return answers


def _absorb(made: Plan, step: SinglePartyStep, party: int, round_: int, state: Any, own: Any, said: Any) -> Any:
    """The state after hearing neighbours; messages beyond the range are refused, and the node waits where it is."""
    topology, largest = made.spec.topology, largest_number(made.problem)
    assert topology is not None
    check_numbers(said, largest)
    everything = {
        node: type(said)(**{each.name: getattr(said, each.name)[[node]] for each in dataclasses.fields(said)})
        for node in range(made.spec.parties)
    }
    everything[party] = cut_numbers(own, largest)
    me = np.array([party], dtype=np.int64)
    heard = Neighbourhood(spread_messages(everything, made.spec.parties), me, topology)
    return made.algorithm.absorb(step.facts(round_), state, heard)
