"""Planning: noise, rounds and every observer's guarantee, before any data are touched."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from consenso.algorithms.shape import find_theorems
from consenso.arrays import IntArray
from consenso.conventions import Unit
from consenso.errors import InputError, PreconditionError
from consenso.planning.checks import check_bounded, check_count, require_shape
from consenso.planning.graph_sums import check_graph_sums, describe
from consenso.planning.noise import with_calibrated_noise, with_noise_levels
from consenso.planning.parties import find_alike, find_outsider, find_representatives
from consenso.privacy.accountants import excess, gdp
from consenso.privacy.calibrate import Target
from consenso.privacy.card import Card
from consenso.privacy.card.html import DELTAS
from consenso.privacy.composition import Uses, amplify, compose_all
from consenso.privacy.count import Count
from consenso.privacy.declarations import Declarations
from consenso.privacy.earlier import Earlier
from consenso.privacy.events import compose
from consenso.privacy.guarantee import Guarantee
from consenso.privacy.noise import GaussianNoise, Noise
from consenso.privacy.observers import Observer, choose_observer, choose_trust, list_observers
from consenso.privacy.relations import Relation, bounds_of, check_claim, claims_of
from consenso.privacy.run_spec import PrivacyQuery, RunSpec, Trees
from consenso.privacy.samplers import Sampler, Seeded
from consenso.privacy.theorems import Composition, Theorem, strongest
from consenso.problem import Problem
from consenso.public_facts import PublicFacts
from consenso.schedules import Certain, Everyone, Independent, Schedule, is_fair
from consenso.topology import Topology
from consenso.trust import Trust, mode_of

_COUNTED = (
    "a noisy count of the records and every release of the run keep together to one mu, whatever the count is "
    "(docs/privacy.md#noisy-count)"
)


@dataclass(frozen=True, kw_only=True)
class Plan(RunSpec):
    """A run with its algorithm. Everything in it is public."""

    algorithm: Any
    count: Count | None = None  # the noisy number of records that was released before, and is paid for with the run
    earlier: tuple[Earlier, ...] = ()  # other releases that were made before, and are paid for with the run
    sampler_chosen: bool = True  # planning needs no source of noise, running does
    solver: str = ""  # whose rules chose the algorithm, if any did
    reason: str = ""  # why, in one sentence, from public facts only

    @property
    def problem(self) -> Problem:
        """What is learnt, and its public facts."""
        return self.facts.problem

    def observers(self) -> tuple[Observer, ...]:
        """Who can look at this run."""
        return list_observers(self)

    def prove(
        self,
        observer: Observer,
        party: int,
        delta: float,
        *,
        unit: Unit | None = None,
        adjacency: Relation | None = None,
    ) -> Guarantee:
        """The strongest guarantee that is proved for one party's data; refuses what this run does not support."""
        unit, relation = unit or self.problem.unit, adjacency or self.problem.adjacency
        check_claim(self.problem.adjacency, unit, relation)
        query = PrivacyQuery(observer=observer, unit=unit, adjacency=bounds_of(relation), party=party)
        declaration = self.algorithm.releases
        candidates: list[Callable[[], Theorem]] = []
        if not self.mode.on_graph:  # what they prove is for whoever sees all sums, or all messages
            candidates += find_theorems(self.algorithm, self, query)
        participation = self.schedule.participation(party, self.rounds, self.parties)
        if isinstance(participation, Independent):
            candidates.append(lambda: amplify(self, query, declaration))
        theorem, refusals = strongest(candidates, compose_all(self, query, declaration), delta)
        if self.count is not None:
            theorem = self._after_count(self.count, theorem)
        if self.earlier:
            theorem = self._after_others(theorem)
        simulation = self.sampler_chosen and not self.sampler.private
        return Guarantee.of(theorem, observer, relation, simulation=simulation, party=party, refusals=tuple(refusals))

    def _after_count(self, count: Count, theorem: Theorem) -> Theorem:
        """What holds for every count, of the count and of the run together."""
        if theorem.unit != "party" and theorem.adjacency == "add-remove":
            together = compose(count.event(self.sampler), theorem.event())
            mu = gdp(together)
            if mu is None or mu > count.mu or excess(together) > count.excess:
                raise PreconditionError(
                    f"plan(count=...): together with the noisy count the run must be GDP with mu={count.mu:.6g}, and "
                    "it is not; plan it for Mu(mu=count.rest), or declare a public number of records."
                )
        return Composition(
            released=count.promise(theorem.unit, theorem.adjacency),
            why=f"{_COUNTED} ({type(theorem).__name__})",
            adjacency=theorem.adjacency,
            unit=theorem.unit,
        )

    def _after_others(self, theorem: Theorem) -> Theorem:
        """The run and what was released before it, composed."""
        sampler, run = self.sampler, self.problem.adjacency
        before = [each.event(sampler, run, theorem.unit, theorem.adjacency) for each in self.earlier]
        names = ", ".join(each.name for each in self.earlier)
        return Composition(
            released=compose(*before, theorem.event()),
            why=f"{names} and every release of the run, composed (docs/privacy.md#releases-before-a-fit)",
            adjacency=theorem.adjacency,
            unit=theorem.unit,
        )

    def check(self) -> None:
        """Refuse a plan that could not say what it guarantees: the theorems of its card are stated, none is evaluated.

        Whether a theorem can be stated depends on the releases, the noise, the schedule and the sampler, and not on how
        large a party is: the first and the last kind of party stand for all.
        """
        representatives = self._representatives()
        for party in {int(representatives[0]), int(representatives[-1])}:
            for observer in self.observers():
                for unit in self.problem.stated_units:
                    for relation in claims_of(self.problem.adjacency, unit):
                        query = PrivacyQuery(observer=observer, unit=unit, adjacency=bounds_of(relation), party=party)
                        Uses(self, query, self.algorithm.releases).check()
                        for candidate in find_theorems(self.algorithm, self, query):
                            try:
                                excess(candidate().event())
                            except PreconditionError:
                                continue  # it does not apply here, and the card will say why

    def prove_each(
        self, observer: Observer, delta: float, *, unit: Unit | None = None, adjacency: Relation | None = None
    ) -> list[Guarantee]:
        """One promise for each kind of party that public facts tell apart, the observers' own data left out."""
        insiders = observer.insiders
        parties = [find_outsider(self, int(party), insiders) for party in self._representatives()]
        return [
            self.prove(observer, party, delta, unit=unit, adjacency=adjacency) for party in parties if party is not None
        ]

    def guarantee(
        self, observer: Observer, delta: float, *, unit: Unit | None = None, adjacency: Relation | None = None
    ) -> Guarantee:
        """The guarantee that holds for every party: that of the worst."""
        found = self.prove_each(observer, delta, unit=unit, adjacency=adjacency)
        if not found:
            raise InputError(
                f"Plan.guarantee({observer.key!r}): nobody is left whose data this observer does not have."
            )
        return max(found, key=lambda guarantee: guarantee.epsilon(delta))

    def prove_all(self, delta: float) -> list[Guarantee]:
        """What is promised against every observer, for both units, in every relation that the run supports."""
        return [
            promise
            for observer in self.observers()
            for unit in self.problem.units
            for relation in claims_of(self.problem.adjacency, unit)
            for promise in self.prove_each(observer, delta, unit=unit, adjacency=relation)
        ]

    def __str__(self) -> str:
        return str(self.card(DELTAS[0]))

    def _repr_html_(self) -> str:
        return self.card(DELTAS[0])._repr_html_()

    def card(self, delta: float) -> Card:
        """The privacy card: every promise to every unit that protects somebody."""
        problem = self.problem
        promises = [each for each in self.prove_all(delta) if each.unit in problem.stated_units]
        return Card.build(
            algorithm=type(self.algorithm).__name__,
            parameters={
                "algorithm": self.algorithm,
                "rounds": self.rounds,
                "schedule": self.schedule,
                "noise": dict(self.noise),
                "equal": "noise" if self.equal_noise else "epsilon",
                "colluders": self.colluders,
                **({} if self.count is None else {"count": self.count}),
                **({"earlier": list(self.earlier)} if self.earlier else {}),
                "edges": None if self.topology is None else [list(edge) for edge in self.topology.edges],
                **describe(self),
            },
            data={
                "loss": problem.loss,
                "regularizer": problem.regularizer,
                "features": problem.features,
                "sizes": [int(size) for size in problem.sizes],
                "row_bound": problem.row_bound,
                "target_bound": problem.target_bound,
                "unit": problem.unit,
                "adjacency": problem.adjacency,
                "weighting": problem.weighting,
                **({} if problem.capped else {"capped": False}),
                **({"weight_bound": problem.weight_bound} if problem.weight_bound != 1 else {}),
                **({"rows_per_unit": problem.rows_per_unit} if problem.rows_per_unit != 1 else {}),
            },
            # One party that holds all records is trusted with them, whoever else hears of noisy sums only.
            trust=choose_trust(1) if self.parties == 1 and self.mode.noise_on_messages else self.trust,
            sampler=self.sampler,
            delta=delta,
            promises=promises,
            kinds=self._kinds(promises),
        )

    def _representatives(self) -> IntArray:
        return find_representatives(self, self.algorithm.releases)

    def _kinds(self, promises: list[Guarantee]) -> dict[int, int]:
        """How many parties each party of a promise stands for: one, where every party has a guarantee of its own."""
        classes = len(self._representatives()) == len(self.facts.classes())
        return {each.party: len(find_alike(self, each.party)) if classes else 1 for each in promises}


def plan(
    problem: Problem,
    algorithm: Any,
    *,
    rounds: int,
    noise: Noise | Mapping[str, Noise] | None = None,
    target: Target | None = None,
    observer: Observer | None = None,
    schedule: Schedule | None = None,
    trust: Trust | None = None,
    topology: Topology | None = None,
    sampler: Sampler | None = None,
    colluders: int = 0,
    equal: Literal["epsilon", "noise"] = "epsilon",
    count: Count | None = None,
    trees: Trees = "one",
    masks: Topology | None = None,
    earlier: tuple[Earlier, ...] = (),
) -> Plan:
    """Plan a run: with explicit `noise`, or with the least noise that meets `target` for `observer`.

    Without an `observer` the target is for whoever is not trusted (`choose_observer`).

    `sampler` may be left out to plan; a run needs one. `colluders` is how many parties may pool what they know with
    whoever looks: every guarantee of the plan, the public's too, is against the observer together with so many parties.

    `equal` says what parties of different sizes or degrees have in common: their epsilon, each with its own noise, or
    the noise.

    `count` is a noisy number of records that was released before and that the problem's size was taken from. The target
    is then the mu that it leaves, and what is promised is the whole mu of the count. `earlier` are other releases that
    were made before: they are composed with the run.

    `trees` and `masks` are for sums on a graph: one spanning tree or another in each round, and which nodes share
    masks (None: the graph's own edges, and as many more as `colluders` asks for).
    """
    check_count(problem, target, count)
    if rounds < 1:
        raise InputError(f"plan(rounds={rounds}): a run has at least one round.")
    if (noise is None) == (target is None):
        raise InputError("plan(noise=..., target=...): give the noise or the target, one of the two.")
    shape = require_shape(algorithm)
    if problem.is_weighted and not getattr(algorithm, "takes_weights", False):
        raise PreconditionError(
            f"plan({type(algorithm).__name__}): its bounds are proved for rows without weights; take "
            "PreconditionedFixedPoint, or DPSGD with every record in every round."
        )
    if shape == "peer" and topology is None:
        raise InputError(f"plan(topology=None): {type(algorithm).__name__} runs on a graph; give its topology.")
    if topology is not None and topology.parties != problem.parties:
        raise InputError(
            f"plan(topology=...): the graph has {topology.parties} parties and the problem {problem.parties}; both "
            "must agree."
        )
    schedule = schedule or Everyone()
    if shape == "peer" and not isinstance(schedule, Everyone):
        raise InputError(
            f"plan(schedule=...): {type(algorithm).__name__} needs every node in every round; use Everyone()."
        )
    trust = trust or choose_trust(problem.parties)
    most = max(0, problem.parties - (2 if mode_of(trust).sums_in_steps else 1))
    if not 0 <= colluders <= most:
        raise InputError(
            f"plan(colluders={colluders}): between 0 and {most} of {problem.parties} parties may collude under "
            f"{trust!r} trust."
        )
    facts = PublicFacts.everyone(
        problem,
        rounds=rounds,
        rate=_rate(schedule, rounds, problem.parties),
        degrees=topology.degrees if topology and shape == "peer" else None,
    )
    declarations = Declarations(algorithm.releases)
    names = _names(declarations, facts)
    planned = Plan(
        algorithm=algorithm,
        facts=facts,
        schedule=schedule,
        noise=noise if isinstance(noise, Mapping) else dict.fromkeys(names, noise or GaussianNoise(multiplier=1.0)),
        sampler=sampler or Seeded(0),
        trust=trust,
        shares=1 if mode_of(trust).has_open_tree else max(1, problem.parties - colluders - 1),
        equal_noise=equal == "noise",
        sampler_chosen=sampler is not None,
        shape=shape,
        topology=topology,
        colluders=colluders,
        trees=trees,
        masks=masks,
        _declared={algorithm.releases: declarations},
    )
    check_graph_sums(algorithm, planned)
    algorithm.check(planned)
    check_bounded(algorithm, planned)
    if target is not None:
        planned = with_calibrated_noise(planned, target, observer or choose_observer(trust))
    planned = replace(with_noise_levels(planned), count=count, earlier=tuple(earlier))
    planned.check()
    return planned


def _rate(schedule: Schedule, rounds: int, parties: int) -> float:
    """Expected share of the parties in a round, for the normaliser of sampled sums.

    Where parties take part by different laws it is the mean over all of them.
    """
    asked = 1 if is_fair(schedule) else parties
    laws = [schedule.participation(party, rounds, parties) for party in range(asked)]
    known = [law for law in laws if isinstance(law, Certain | Independent)]
    if len(known) < asked:
        return 1.0 / parties  # one party in each round that is run
    if all(law == known[0] for law in known) and isinstance(known[0], Independent):
        return known[0].rate
    expected = sum(law.count if isinstance(law, Certain) else law.rate * rounds for law in known)
    return expected / (rounds * asked)


def _names(declarations: Declarations, facts: PublicFacts) -> list[str]:
    """Names of all releases of a run, in the order of their first use."""
    one = facts.only(facts.cohort[:1])
    return list(dict.fromkeys(r.name for declared in declarations.over_rounds(one) for r in declared.releases))
