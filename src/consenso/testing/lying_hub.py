"""Law 11: whatever a hub or a neighbour sends, one record moves no release by more than was declared.

Every field of what an algorithm hears is replaced by unkind numbers: huge, tiny, infinite, none, of turning signs,
matrices that are no rotations. The same messages, round after round, go to a party of two neighbouring data sets. What
the party refuses it must refuse in both, and what it releases must be as near as declared.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from consenso.algorithms.shape import Example, HubAlgorithm
from consenso.arrays import Array, IntArray
from consenso.engine.release_records import Spent
from consenso.errors import ConsensoError, MessageError
from consenso.federation.node_round import take_node_round
from consenso.federation.ranges import check_numbers, cut_numbers, largest_number
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


def lies_gain_nothing(example: Example, *, one_in: int = 1, first: int = 0, rounds: int = ROUNDS) -> None:
    """Law 11: no message makes one record move a release by more than declared, or decide what is refused.

    one_in: of so many lies one is told, beginning with number `first`. rounds: in how many it is told.
    """
    if "local" not in example.trusts:
        return
    rng, promised = np.random.default_rng(23), list(_plan_what_is_promised(example))
    assert promised, "no unit and adjacency could be planned"
    # What a lie does to a party is the same in every unit and adjacency: where there are several each is told in half.
    apart = min(len(promised), 2)
    for turn, made in enumerate(promised):
        unit, adjacency = made.problem.unit, made.problem.adjacency
        worlds = itertools.cycle(
            [*pairs(made.problem, unit, adjacency, rng), *_flat(made.problem, unit, adjacency, rng)]
        )
        party = _Questioned(made, example, rounds)
        start = turn % apart + apart * first
        for what, lie in itertools.islice(_sequences(party.sent, rng), start, None, apart * one_in):
            _compare(party, next(worlds), what, lie)


def _plan_what_is_promised(example: Example) -> Iterator[Plan]:
    """A plan for each unit and adjacency for which something is promised."""
    for unit, adjacency in itertools.product(UNITS, ADJACENCIES):
        with suppress(ConsensoError):
            problem = replace(example.problem, unit=unit, adjacency=adjacency)
            yield plan_example(replace(example, problem=problem), trust="local")


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


def _sequences(sent: Sequence[Any], rng: np.random.Generator) -> Iterator[tuple[str, Callable[..., Any]]]:
    """Ways to change what is sent: one field, all of them, and nothing but the model."""
    names = _names(sent)
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


def _names(sent: Sequence[Any]) -> list[str]:
    if not sent:
        return []
    return [
        each.name
        for each in dataclasses.fields(sent[0])
        if isinstance(getattr(sent[0], each.name), float)
        or (isinstance(getattr(sent[0], each.name), np.ndarray) and getattr(sent[0], each.name).dtype.kind == "f")
    ]


def _send(made: Plan, example: Example) -> list[Any]:
    """What honest ones send in each round: the hub's messages, or what nodes say."""
    found: list[Any] = []
    is_hub = isinstance(made.algorithm, HubAlgorithm)

    def watch(round_: int, message: Any, hub: Any) -> None:
        found.append(made.algorithm.down(made.facts.at(round_), hub) if is_hub else message)

    execute(made, shards_of(example), watch=watch)
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
            (rows, targets) if party != pair.party else _change_rows(one[party], rows, targets, unit, adjacency)
            for party, (rows, targets) in enumerate(table(pair.other, 0))
        ]
        yield Pair(
            Shards.from_parties(problem, one), Shards.from_parties(problem, other), pair.party, f"flat, {pair.what}"
        )


def _change_rows(
    before: tuple[Array, Any], rows: Array, targets: Any, unit: Unit, adjacency: Adjacency
) -> tuple[Array, Any]:
    """The other world's rows: the same but for the last record, opposite ones, or none of a party that is gone."""
    if unit == "party":
        # A party without records has rows of zeros, which are none to a loss of a margin.
        return (np.zeros_like(rows) if adjacency == "add-remove" else -rows), targets
    rows = np.array(rows)
    if len(rows) == len(before[0]):
        rows[-1] = -rows[-1]
    return rows, targets


def _compare(asked: _Questioned, pair: Pair, what: str, change: Callable[[Any, int], Any]) -> None:
    unit, adjacency = asked.made.problem.unit, asked.made.problem.adjacency
    one, other = (asked.answer(world, pair.party, change) for world in (pair.one, pair.other))
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


class _Questioned:
    """Parties of a plan that note what they would have released, and what honest ones send them."""

    def __init__(self, made: Plan, example: Example, rounds: int) -> None:
        self.sent = _send(made, example)[:rounds]
        self._seen: list[tuple[Release, Array, float]] = []
        self.made = replace(made, probe=self._note)

    def _note(self, round_: int, release: Release, cohort: IntArray, value: Array, bound: float) -> None:
        self._seen.append((release, value.copy(), bound))

    def answer(self, shards: Shards, party: int, change: Callable[[Any, int], Any]) -> list[Answered]:
        """What a party answers to a run of lies; a question that it refuses leaves it where it was."""
        made, seen = self.made, self._seen
        step = SinglePartyStep(made, shards, party)
        is_hub = isinstance(made.algorithm, HubAlgorithm)
        state, answers = step.enroll(), []
        spent: Spent = {}
        for round_, honest in enumerate(self.sent):
            del seen[:]
            try:
                heard = (change(honest, round_),) if is_hub else ()
                with np.errstate(all="ignore"):
                    taken = step.take(round_, state, spent, *heard)
                    state, spent = taken.state, taken.spent
                    if not is_hub:
                        state = _absorb(made, step, party, round_, state, taken.message, change(honest, round_))
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
    largest = largest_number(made.problem)
    check_numbers(said, largest)
    everything = {
        node: type(said)(**{each.name: getattr(said, each.name)[[node]] for each in dataclasses.fields(said)})
        for node in range(made.parties)
    }
    everything[party] = cut_numbers(own, largest)
    return take_node_round(made, step.facts(round_), state, everything)
