"""The plans that are tried: an algorithm's example and its variants, with everything around them changed."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from consenso.algorithms.shape import Example
from consenso.audit.neighbours import linear
from consenso.conventions import ADJACENCIES, UNITS
from consenso.errors import ConsensoError
from consenso.planning.plan import Plan, plan
from consenso.privacy.noise import GaussianNoise, Geometric
from consenso.privacy.samplers import Seeded
from consenso.regularizers import L2, NoPenalty
from consenso.schedules import (
    Cyclic,
    Everyone,
    FixedSubset,
    PoissonSubset,
    RandomOrder,
    RandomStopping,
    RandomWalk,
    Schedule,
)
from consenso.testing.exact_values.scripted import scripts
from consenso.topology import Topology

# Targets of the linear problem lie so far out that no noise gets a loss to where it bends.
FAR = 1e10
# The multiplier with which quadratic losses stay quadratic.
SMALL = 0.005
# How many choices of each kind the covering set is made from; those that come first matter most.
FEW = {"noise": 4, "schedule": 7, "graph": 2, "parties": 3, "rounds": 3, "sizes": 4}

# In how many ways the coins of a schedule may fall: in the covering set, and where all is tried.
FEW_SCRIPTS, MOST_SCRIPTS = 12, 64
# How many choices are tried before the usual one is taken.
TRIED = 3

# One label for each thing that can be changed. The first label of each is what is not mentioned.
Row = tuple[tuple[str, str], ...]

NOISE: dict[str, Any] = {
    "constant": 1.0,
    "falling": Geometric(first=1.0, ratio=0.1),
    "rising": Geometric(first=1.0, ratio=10.0),
    # Sampling amplifies only where the noise is large: otherwise no theorem on it is ever the strongest.
    "constant, large": 6.0,
    # Only where all is tried.
    "falling, large": Geometric(first=6.0, ratio=0.1),
    "rising, large": Geometric(first=6.0, ratio=10.0),
    "constant, small": 0.3,
}
# Parties and rounds of a long run.
LONG = "12"
CORE_NOISE = ("falling", "constant, large")
SCHEDULES: dict[str, Callable[[int], Any]] = {
    "Everyone": lambda parties: Everyone(),
    "Cyclic": lambda parties: Cyclic(),
    "RandomOrder": lambda parties: RandomOrder(),
    "RandomStopping": lambda parties: RandomStopping(),
    "RandomWalk": lambda parties: RandomWalk(),
    "PoissonSubset(0.5)": lambda parties: PoissonSubset(0.5),
    "FixedSubset(1)": lambda parties: FixedSubset(1),
    # Only where all is tried.
    "RandomWalk on a path": lambda parties: RandomWalk(Topology.path(parties)),
    "FixedSubset(2)": lambda parties: FixedSubset(2),
    "PoissonSubset(0.1)": lambda parties: PoissonSubset(0.1),
}
GRAPHS: dict[str, Callable[[int], Topology]] = {"ring": Topology.ring, "star": Topology.star, "path": Topology.path}


@dataclass(frozen=True)
class Shape:
    """How many records the parties have, and what they have in common."""

    sizes: Callable[[int], list[int]]
    weighting: Literal["record", "party"] = "record"
    equal: Literal["epsilon", "noise"] = "epsilon"


SHAPES = {
    "equal": Shape(lambda parties: [2] * parties),
    "rising": Shape(lambda parties: [1 + i for i in range(parties)]),
    "falling, parties weigh the same": Shape(lambda parties: [parties - i for i in range(parties)], "party"),
    "rising, equal noise": Shape(lambda parties: [1 + i for i in range(parties)], equal="noise"),
    "one record": Shape(lambda parties: [1] * parties, "party"),
}


@dataclass(frozen=True, eq=False)
class Cases:
    """All that can be changed about the plans of an example."""

    example: Example
    choices: Mapping[str, Mapping[str, Any]]  # by what is changed, by label; the usual choice first
    most_scripts: int  # rounds are left out of a plan whose schedule's coins could fall in more ways

    def row(self, **labels: str) -> Row:
        """The usual choices but for these."""
        return tuple((name, labels.get(name, next(iter(choice)))) for name, choice in self.choices.items())

    def text(self, row: Row) -> str:
        """What is not usual about a row."""
        usual = dict(self.row())
        return ", ".join(f"{name} {label}" for name, label in row if usual[name] != label) or "as usual"

    def change_rows(self, most: int) -> Iterator[Row]:
        """All rows in which at most `most` choices differ from the usual ones."""
        names = list(self.choices)
        for count in range(most + 1):
            for chosen in itertools.combinations(names, count):
                for labels in itertools.product(*(list(self.choices[name])[1:] for name in chosen)):
                    yield self.row(**dict(zip(chosen, labels, strict=True)))

    def cover_choices(self, accepts: Callable[[Row], bool], *, pairs: bool = True, core: bool = True) -> Iterator[Row]:
        """The core, and accepted rows in which every two choices that can stand together do so, few of them.

        Greedy: a row begins with the first two choices that were not yet together. Of everything else it gets what
        is with these for the first time most often, if the row is still accepted, and what is usual otherwise. Without
        `pairs` it ends as soon as every choice that can be made was made once.
        """
        few = {name: list(choice)[: FEW.get(name)] for name, choice in self.choices.items()}
        waiting = dict.fromkeys(
            ((one, a), (other, b))
            for one, other in itertools.combinations(few, 2)
            for a in few[one]
            for b in few[other]
        )
        alone = dict.fromkeys((name, label) for name, labels in few.items() for label in labels)
        for row in filter(accepts, self.core() if core else ()):
            _strike(row, waiting, alone)
            yield row
        while (pair := next((each for each in waiting if pairs or alone.keys() & each), None)) is not None:
            if not accepts(self.row(**dict(pair))):
                del waiting[pair]
                continue
            row = self._fill(dict(pair), few, waiting, accepts)
            _strike(row, waiting, alone)
            yield row

    def core(self) -> Iterator[Row]:
        """Every schedule that the example is made for, under every trust, with noise that falls and with large noise.

        These three together decide which theorem is the strongest.
        """
        made_for = {type(schedule).__name__ for schedule in self.example.schedules}
        schedules = [label for label in self.choices["schedule"] if label.partition("(")[0] in made_for]
        for schedule, trust, noise in itertools.product(schedules, self.choices["trust"], CORE_NOISE):
            yield self.row(schedule=schedule, trust=trust, noise=noise)

    def long(self) -> Iterator[Row]:
        """One turn for each of many parties, with every choice of parameters: where iterations amplify."""
        schedules = [
            label for label in ("Cyclic", "RandomOrder", "RandomStopping") if label in self.choices["schedule"]
        ]
        for schedule, parameters in itertools.product(schedules, self.choices["parameters"]):
            yield self.row(
                schedule=schedule,
                parameters=parameters,
                parties=LONG if LONG in self.choices["parties"] else "1",
                rounds=LONG,
            )

    def _fill(
        self,
        labels: dict[str, str],
        few: Mapping[str, list[str]],
        waiting: Mapping[Any, None],
        accepts: Callable[[Row], bool],
    ) -> Row:
        names = list(self.choices)
        for name in names:
            if name in labels:
                continue
            news = {label: _news(names, labels, name, label, waiting) for label in few[name]}
            usual = next(iter(news))
            for label in sorted(news, key=lambda label: -news[label])[:TRIED]:
                if label == usual or accepts(self.row(**labels, **{name: label})):
                    labels[name] = label
                    break
            else:
                labels[name] = usual
        return self.row(**labels)


def _strike(row: Row, waiting: dict[Any, None], alone: dict[Any, None]) -> None:
    """Take what stands in a row off the pairs and the choices that are waited for."""
    for together in itertools.combinations(row, 2):
        waiting.pop(together, None)
    for choice in row:
        alone.pop(choice, None)


def _news(names: list[str], labels: Mapping[str, str], name: str, label: str, waiting: Mapping[Any, None]) -> int:
    """How many of the chosen labels would be with this one for the first time."""
    count = 0
    for other, chosen in labels.items():
        one, two = sorted(((name, label), (other, chosen)), key=lambda each: names.index(each[0]))
        count += (one, two) in waiting
    return count


def cases_of(example: Example, *, few: bool = True) -> Cases:
    """What can be changed about an example: its parameters, and everything around the algorithm."""
    problem = example.problem
    labels = {"example": example} | {
        parameters_of(each.algorithm, example.algorithm) or f"variant {number}": each
        for number, each in enumerate(example.variants, start=1)
    }
    # Hidden coins of records are accounted numerically, which takes time: they are not the usual case.
    examples = dict(sorted(labels.items(), key=lambda item: getattr(item[1].algorithm, "rate", 1.0) < 1))
    alone = problem.parties == 1
    own = (problem.unit, problem.adjacency)
    scopes = sorted(itertools.product(UNITS, ADJACENCIES), key=lambda scope: scope != own)
    first = type(example.schedules[0]).__name__
    schedules = dict(sorted(SCHEDULES.items(), key=lambda item: item[0].partition("(")[0] != first))
    everything: dict[str, dict[str, Any]] = {
        "parameters": examples,
        "noise": NOISE,
        "schedule": schedules if example.topology is None else {"Everyone": SCHEDULES["Everyone"]},
        "graph": GRAPHS if example.topology is not None else {"none": None},
        "trust": {trust: trust for trust in sorted(("local", "secure-sum", "curator"), key=_after(example))},
        "parties": {"1": 1} if alone else {"2": 2, "3": 3, "1": 1, "4": 4, LONG: int(LONG)},
        "rounds": {"2": 2, "3": 3, "1": 1, LONG: int(LONG)},
        "scope": {f"{unit}, {adjacency}": (unit, adjacency) for unit, adjacency in scopes},
        "sizes": {"equal": SHAPES["equal"]} if alone else SHAPES,
        "penalty": {"none": NoPenalty(), "quadratic": L2(strength=0.5)},
        "colluders": {"0": 0} if alone or example.topology is not None else {"0": 0, "1": 1},
        "others": {"silent": False, "quadratic": True},
    }
    return _with_a_plan(Cases(example, everything, FEW_SCRIPTS if few else MOST_SCRIPTS))


def _with_a_plan(cases: Cases) -> Cases:
    """The same choices in another order, if what is usual is refused: with parameters and a scope that are not."""
    parameters, scopes = cases.choices["parameters"], cases.choices["scope"]
    for name, scope in itertools.product(parameters, scopes):
        try:
            plan_of(cases, cases.row(parameters=name, scope=scope))
        except ConsensoError:
            continue
        first = {"parameters": _lead_with(parameters, name), "scope": _lead_with(scopes, scope)}
        return replace(cases, choices=dict(cases.choices) | first)
    return cases


def _lead_with(choice: Mapping[str, Any], label: str) -> dict[str, Any]:
    return {label: choice[label]} | dict(choice)


def _after(example: Example) -> Callable[[str], int]:
    """The trusts of the example come first, in its order."""
    trusts: tuple[str, ...] = example.trusts
    return lambda trust: trusts.index(trust) if trust in trusts else len(trusts)


def plan_of(cases: Cases, row: Row) -> Plan:
    """The plan of a row: with one feature, or with as many as the example has where its parameters ask for them."""
    chosen = {name: cases.choices[name][label] for name, label in row}
    example: Example = chosen["parameters"]
    parties: int = chosen["parties"]
    noise: Any = GaussianNoise(multiplier=SMALL if chosen["others"] else chosen["noise"])
    unit, adjacency = chosen["scope"]
    schedule = chosen["schedule"](parties)
    rounds = 1 if example.rounds == 1 else chosen["rounds"]
    while rounds > 1 and _exceeds(schedule, parties, rounds, cases.most_scripts):
        rounds -= 1
    shape: Shape = chosen["sizes"]
    refused: ConsensoError | None = None
    for features in dict.fromkeys((1, example.problem.features)):
        problem = replace(
            linear(example.problem),
            features=features,
            target_bound=FAR,
            regularizer=chosen["penalty"],
            sizes=np.array(shape.sizes(parties)),
            unit=unit,
            adjacency=adjacency,
            weighting=shape.weighting,
        )
        try:
            return plan(
                problem,
                example.algorithm,
                rounds=rounds,
                noise=dict.fromkeys(example.noise, noise) if isinstance(example.noise, Mapping) else noise,
                schedule=schedule,
                trust=chosen["trust"],
                topology=None if chosen["graph"] is None else chosen["graph"](parties),
                sampler=Seeded(0),
                colluders=chosen["colluders"],
                equal=shape.equal,
            )
        except ConsensoError as error:
            refused = error
    assert refused is not None
    raise refused


def _exceeds(schedule: Schedule, parties: int, rounds: int, most: int) -> bool:
    return sum(1 for _ in itertools.islice(scripts(schedule, parties, rounds), most + 1)) > most


def parameters_of(algorithm: Any, usual: Any) -> str:
    """What is different about the parameters of an algorithm."""
    return ", ".join(
        f"{each.name}={getattr(algorithm, each.name)!r}"
        for each in dataclasses.fields(algorithm)
        if repr(getattr(algorithm, each.name)) != repr(getattr(usual, each.name))
    )
