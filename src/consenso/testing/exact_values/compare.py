"""What a plan reports, beside what is true for linear losses."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from consenso.arrays import Array
from consenso.audit.mixtures import Branch
from consenso.audit.neighbours import Neighbours, extremes, neighbours, unkind
from consenso.conventions import LARGEST_DELTA, UNITS
from consenso.errors import ConsensoError
from consenso.planning.plan import Plan
from consenso.privacy import accountants, relations
from consenso.privacy.guarantee import Guarantee
from consenso.privacy.observers import Coalition, Observer, Peer
from consenso.problem import Adjacency, Problem, Unit
from consenso.shards import Shards
from consenso.testing.exact_values.divergences import DivergenceCurve, curve_of
from consenso.testing.exact_values.observed import (
    Active,
    Observed,
    known_coins,
    noise_owners_known,
    observe,
    record_runs,
)
from consenso.testing.exact_values.scripted import Coin, Script, Scripted, only_places_matter, scripts

# For whom, and what is protected.
Scope = tuple[Observer, Unit, Adjacency]

DELTA = LARGEST_DELTA
ORDERS = (1.5, 4.0, 16.0)
# In how many ways coins may fall, hidden ones of records included; units with more are left out.
MOST_BRANCHES = 256
# Relative difference between a run and mean + M n that is put down to solvers.
AFFINE = 1e-6
# Draws, in standard deviations, with which a run is compared to mean + M n; as long ones as the last never happen.
SIZES = (1.0, -2.0, 50.0)
SMALL_SIZES = (1.0, -2.0, 10.0)  # where losses are quadratic in a small region only
# Relative differences that are put down to solvers and to numerical integration.
SLACK = {"epsilon": 1e-5, "mu": 1e-5, "Renyi divergence": 1e-4, "delta": 1e-3}
# Pairs of neighbours with silent others in which one unit pulls as hard as it can, or is gone.
PAIRS = ("present or absent", "opposite gradients along one axis", "all features at once")


class NotAffineError(Exception):
    """A run is not mean + M n, or M is not the same in both worlds; says by how much."""


class UnstatedError(Exception):
    """A plan was made and cannot state what it costs."""


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """One guarantee beside its exact value (or a lower bound of it, where coins are hidden)."""

    algorithm: str
    case: str
    observer: str
    unit: Unit
    adjacency: Adjacency
    theorem: str
    pair: str
    reported: float  # epsilon at DELTA
    exact: float
    is_exact: bool
    below: tuple[str, ...]  # what is reported below the exact value, in words

    @property
    def ratio(self) -> float:
        """Reported over exact epsilon."""
        return self.reported / self.exact if self.exact else float("inf")

    def sentence(self) -> str:
        """The finding in words."""
        return (
            f"{self.algorithm} ({self.case}), {self.observer}, {self.unit}, {self.adjacency}, by {self.theorem}: "
            f"{'; '.join(self.below) or 'nothing is below the exact value'} ({self.pair})"
        )


def compare(
    plan: Plan,
    attacked: int,
    *,
    case: str = "",
    quadratic: bool = False,
    thorough: bool = False,
    matrices: dict[int, Array] | None = None,
) -> list[Comparison]:
    """Every guarantee for one party: all observers, units and adjacencies for which something is claimed.

    For each the pair of neighbours for which the report is least above the exact value. With `quadratic` the records
    that are not attacked have quadratic losses instead of none: the run is affine as long as the noise is small. If
    `thorough`, there are more pairs, and deltas are compared where they take time to compute, too. `matrices` keeps M
    of the runs of a plan, by the number of the script: where others are silent it is the same whoever is attacked.
    """
    try:
        claims = dict(claims_of(plan, attacked))
    except ConsensoError as error:
        raise UnstatedError(str(error)) from error
    pairs_of = _quadratic_pairs if quadratic else _linear_pairs
    scopes = dict.fromkeys((unit, adjacency) for _, unit, adjacency in claims)
    pairs = [
        pair
        for unit, adjacency in scopes
        for pair in pairs_of(plan.problem, unit, adjacency, attacked)
        if thorough or pair.what != PAIRS[-1]
    ]
    sizes = SMALL_SIZES if quadratic else SIZES
    curves = exact_curves(plan, attacked, pairs, list(claims), sizes=sizes, matrices=matrices)
    worst: dict[Scope, Comparison] = {}
    for (scope, index), curve in curves.items():
        finding = _compare_one(plan, case, *claims[scope], pairs[index], curve, thorough)
        before = worst.get(scope, finding)
        worst[scope] = max(before, finding, key=lambda each: (bool(each.below), -each.ratio))
    return list(worst.values())


def observers_of(plan: Plan, attacked: int) -> list[Observer]:
    """Those of the plan, with parties that are not attacked: one of them, and two together."""
    others = [party for party in range(plan.parties) if party != attacked]
    outside = [observer for observer in plan.observers() if not observer.insiders]
    if only_places_matter(plan.schedule, plan.parties):
        return outside
    on_graph = plan.mode.on_graph  # where every node is another observer
    inside: list[Observer] = [Peer(party=party) for party in (others if on_graph else others[:1])]
    if len(others) > 1:
        inside.append(Coalition(parties=tuple(others[:2])))
    return outside + inside


def claims_of(plan: Plan, attacked: int) -> Iterator[tuple[Scope, tuple[Guarantee, str]]]:
    """What is claimed for one party, with the name of the theorem; infinite claims are none."""
    for observer, unit in itertools.product(observers_of(plan, attacked), UNITS):
        for relation in relations.claims_of(plan.problem.adjacency, unit):
            promise = plan.prove(observer, attacked, DELTA, unit=unit, adjacency=relation)
            if np.isfinite(promise.epsilon(DELTA)):
                yield (
                    (observer, unit, relations.bounds_of(relation)),
                    (promise, promise.theorem),
                )


def _compare_one(
    plan: Plan, case: str, guarantee: Guarantee, theorem: str, pair: Neighbours, curve: DivergenceCurve, thorough: bool
) -> Comparison:
    reported, exact = guarantee.epsilon(DELTA), curve.epsilon(DELTA)
    checks = [("epsilon", f"at delta {DELTA:g}", reported, exact)]
    mu = guarantee.gdp()
    if 0 < exact < np.inf:
        # Elsewhere on the curves. An infinite epsilon is above every report already.
        half = reported / 2
        if mu is not None or thorough:  # deltas of sampled releases are computed numerically, which takes time
            checks.append(("delta", f"at epsilon {half:.4g}", guarantee.delta(half), curve.delta(half)))
        for order in ORDERS:
            claimed = accountants.rdp(guarantee.event, order)
            checks.append(("Renyi divergence", f"of order {order:g}", claimed, curve.renyi(order)))
    if mu is not None and curve.mu is not None:
        checks.append(("mu", "of GDP", mu, curve.mu))
    sign = "" if curve.is_exact else "at least "
    below = tuple(
        f"{name} {where} is reported as {claimed:.6g} and is {sign}{true:.6g}"
        for name, where, claimed, true in checks
        if claimed < true * (1 - SLACK[name]) or (np.isinf(true) and np.isfinite(claimed))
    )
    return Comparison(
        algorithm=type(plan.algorithm).__name__,
        case=case,
        observer=guarantee.observer,
        unit=pair.unit,
        adjacency=pair.adjacency,
        theorem=theorem,
        pair=pair.what,
        reported=reported,
        exact=exact,
        is_exact=curve.is_exact,
        below=below,
    )


# --- exact values ----------------------------------------------------------------------------------------------------


def exact_curves(
    plan: Plan,
    attacked: int,
    pairs: list[Neighbours],
    scopes: list[Scope],
    *,
    sizes: tuple[float, ...] = SIZES,
    ways: Sequence[tuple[float, Script]] | None = None,
    matrices: dict[int, Array] | None = None,
) -> dict[tuple[Scope, int], DivergenceCurve]:
    """What is learnt of each pair, by its index, in each scope of its unit and adjacency.

    Coins are enumerated, never drawn. What an observer knows of them is conditioned on. What it does not know makes its
    view a mixture of Gaussians. Pairs of units with too many coins are left out. ways: how the coins of the schedule
    can fall, with their probabilities, if not in all ways that differ. matrices: as in `compare`.
    """
    matrices = {} if matrices is None else matrices
    rate = min(r.rate for k in range(plan.rounds) for r in plan.algorithm.releases(plan.facts.at(k)))
    every = list(scripts(plan.schedule, plan.parties, plan.rounds) if ways is None else ways)
    last, recorded = len(every) - 1, record_runs(plan)
    groups: dict[tuple[Scope, int], dict[Any, list[Branch]]] = defaultdict(lambda: defaultdict(list))
    for number, (chance, script) in enumerate(every):
        run = _Run(recorded, attacked, script, sampled=rate < 1)
        for index, pair in enumerate(pairs):
            # All sizes once; for the other worlds the largest, which no clip lets pass.
            checked = sizes if number == index == 0 else sizes[-1:] if number in (0, last) else ()
            coins = run.prepare(pair, checked, matrices.get(number))
            matrices[number] = run.m
            if len(every) * 2 ** len(coins) > MOST_BRANCHES:
                continue
            zeros, ones = (run.means(world, coins) for world in (pair.zero, pair.one))
            for tails, zero, one in zip(_subsets(coins), zeros, ones, strict=True):
                likely = chance * rate ** (len(coins) - len(tails)) * (1 - rate) ** len(tails)
                for scope in scopes:
                    if scope[1:] == (pair.unit, pair.adjacency):
                        view, hidden = run.view(scope[0])
                        branch = Branch(likely, zero[view], one[view], run.m[np.ix_(view, hidden)])
                        groups[scope, index][known_coins(plan, scope[0], run.active)].append(branch)
    return {key: curve_of(group.values()) for key, group in groups.items()}


def _subsets(coins: list[Coin]) -> list[frozenset[Coin]]:
    return [frozenset(itertools.compress(coins, bits)) for bits in itertools.product((0, 1), repeat=len(coins))]


class _Run:
    """Runs of a plan with one script of the schedule's coins: its matrix M, and its means."""

    def __init__(self, plan: Plan, attacked: int, script: Script, *, sampled: bool) -> None:
        self.attacked, self.sampled = attacked, sampled
        self.sampler = Scripted(script, attacked)
        self.plan = replace(plan, sampler=self.sampler)
        self.m: Array = np.zeros((0, 0))  # one row for each number seen, one column for each number of noise
        self.active: Active = ()
        self._base: Observed | None = None
        self._views: dict[Observer, tuple[Array, Array]] = {}
        self._known: dict[Any, Array] = {}  # means that were computed
        self._checked: set[Any] = set()

    def prepare(self, pair: Neighbours, sizes: tuple[float, ...], known: Array | None = None) -> list[Coin]:
        """Find M unless it is known, check that it is the same in both worlds, and list the attacked unit's coins."""
        size = int(self.plan.problem.sizes[self.attacked])
        self.sampler.records = range(size) if pair.unit == "party" else range(size - 1, size)
        self.sampler.tossed.clear()
        if self._base is None:
            self._base = base = observe(self.plan, pair.zero)
            self.active = base.active
            self.m = self._find_matrix(pair.zero, len(base.flat)) if known is None else known
        elif self.sampled:
            observe(self.plan, pair.zero)
        for world in (pair.zero, pair.one):
            if _content(world) not in self._checked:
                self._checked.add(_content(world))
                self._check_affine(world, sizes)
        return list(self.sampler.tossed)

    def _find_matrix(self, world: Shards, seen: int) -> Array:
        """M, a column for each number of noise, from a run with that noise alone."""
        # Two runs show most of those that are not affine; M takes one for each number of noise.
        noise = np.random.default_rng(1).standard_normal(len(self.sampler.owners))
        _require_affine(self._move(world, -2 * noise), -2 * self._move(world, noise), "noise of twice the size")
        columns = [self._move(world, unit) for unit in np.eye(len(self.sampler.owners))]
        return np.array(columns).T.reshape(seen, -1)

    def means(self, world: Shards, coins: list[Coin]) -> list[Array]:
        """Everything that is seen without noise, for each subset of the coins that fall on tails.

        A record that stays out is noise that is not there, so each coin moves an affine run by an amount of its own.
        """
        start = self._mean(world)
        moves = {coin: self._mean(world, frozenset([coin])) - start for coin in coins}
        means = [start + sum((moves[coin] for coin in tails), np.zeros_like(start)) for tails in _subsets(coins)]
        if len(coins) > 1:
            moved, stated = self._mean(world, frozenset(coins)) - start, means[-1] - start
            _require_affine(moved, stated, "coins of records")
        return means

    def view(self, observer: Observer) -> tuple[Array, Array]:
        """Which numbers an observer sees, and which noise it does not know, as masks."""
        if observer not in self._views:
            assert self._base is not None
            knows = noise_owners_known(self.plan, observer, self.attacked)
            hidden = np.array([owner not in knows for owner in self.sampler.owners], dtype=bool)
            self._views[observer] = self._base.positions(self.plan, observer, self.attacked), hidden
        return self._views[observer]

    def _mean(self, world: Shards, tails: frozenset[Coin] = frozenset()) -> Array:
        key = (_content(world), tails)
        if key not in self._known:
            self.sampler.tails = tails
            self._known[key] = observe(self.plan, world).flat
            self.sampler.tails = frozenset()
        return self._known[key]

    def _move(self, world: Shards, noise: Array) -> Array:
        start = self._mean(world)
        self.sampler.noise[: len(noise)] = noise
        moved = observe(self.plan, world).flat
        self.sampler.noise[:] = 0.0
        if moved.shape != start.shape:
            raise NotAffineError("noise decides how many rounds a run takes")
        return moved - start

    def _check_affine(self, world: Shards, sizes: tuple[float, ...]) -> None:
        rng = np.random.default_rng(0)
        for size in sizes:
            noise = size * rng.standard_normal(len(self.sampler.owners))
            _require_affine(self._move(world, noise), self.m @ noise, f"noise of {abs(size):g} standard deviations")


def _content(world: Shards) -> tuple[bytes, ...]:
    """What tells data sets apart: neighbours of different adjacency have worlds in common."""
    cohort = world.cohort()
    return tuple(np.asarray(each).tobytes() for each in (cohort._rows.matrix, cohort._targets, world.offsets))


def _require_affine(moved: Array, stated: Array, what: str) -> None:
    longest = float(np.abs(stated).max(initial=0.0))
    missed = float(np.abs(moved - stated).max(initial=0.0) / longest) if longest else float(moved.any())
    if missed > AFFINE:
        raise NotAffineError(f"{what} moves a run by {missed:.0e} of its length otherwise than M says")


# --- neighbours ------------------------------------------------------------------------------------------------------


def _linear_pairs(problem: Problem, unit: Unit, adjacency: Adjacency, attacked: int) -> Iterator[Neighbours]:
    """One unit pulls as hard as it can one way or the other (or is gone), all other records are silent."""
    return (pair for pair in unkind(problem, unit, adjacency, attacked) if pair.what in PAIRS)


def _quadratic_pairs(problem: Problem, unit: Unit, adjacency: Adjacency, attacked: int) -> Iterator[Neighbours]:
    """The same unit among records that want zero, whose Huber losses are quadratic where small noise gets."""
    axis = np.zeros(problem.features)
    axis[0] = problem.row_bound
    others: list[Any] = [(np.tile(axis, (int(size), 1)), np.zeros(int(size))) for size in problem.sizes]
    high, low = extremes(problem)
    gone = None if adjacency == "add-remove" else (axis, low)
    what = "among quadratic losses"
    yield neighbours(problem, unit, adjacency, attacked, others=others, one=(axis, high), zero=gone, what=what)
