"""Sums over records, as the gradient methods release them: bounds, hidden coins, samples of parties that forget."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from consenso.arrays import Array
from consenso.errors import InputError, PreconditionError
from consenso.privacy.composition import sight
from consenso.privacy.noise import Constant, PerRound, Polynomial
from consenso.privacy.release import Bounds, Release, sum_rounding
from consenso.privacy.releaser import Releaser
from consenso.privacy.run_spec import PrivacyQuery, RunSpec, gaussian_draws, insiders
from consenso.privacy.theorems import Theorem
from consenso.privacy.theorems.sampling import FixedSizeWithoutMemory
from consenso.public_facts import PublicFacts
from consenso.schedules import FixedSubset
from consenso.shards import Cohort


@dataclass(frozen=True)
class Forgetful:
    """The state of a party that keeps nothing: it is asked, and forgets."""


def check_rate(owner: object, rate: float) -> None:
    """Records are sampled with a rate in (0, 1]."""
    if not 0 < rate <= 1:
        raise InputError(f"{type(owner).__name__}(rate={rate}): a rate lies in (0, 1]; 1 takes every record.")


def value_at(sequence: float | Constant | Polynomial | PerRound, round_: int) -> float:
    """The number of a round, of a number or a public sequence of them."""
    return float(sequence) if isinstance(sequence, float | int) else sequence.at(round_)


def sum_bounds(facts: PublicFacts, contribution: float) -> Bounds:
    """Bounds of a sum over records, each weighted with its party's public weight and at most `contribution` long.

    The sums of parties may be added up before noise is added, so that the rows of all of them are rounded.
    """
    problem = facts.problem
    contribution = contribution * problem.weight_bound
    one, total = contribution * facts.scales, contribution * float(problem.scales @ problem.unit_caps)
    rounding = sum_rounding(problem.row_cap, total)
    return Bounds.of_contributions(record=one, party=one * facts.most, rounding=rounding)


def sample_records(coefficients: Array, f: Cohort, release: Releaser, name: str, rate: float) -> Array:
    """The coefficients of the records whose hidden coins came up, zeros for the others."""
    if rate == 1:
        return coefficients
    chosen = release.coins(name, f.sizes)
    kept: Array = np.where(chosen if coefficients.ndim == 1 else chosen[:, None], coefficients, 0.0)
    return kept


def without_memory(
    spec: RunSpec, query: PrivacyQuery, declaration: Callable[[PublicFacts], tuple[Release, ...]]
) -> Iterable[Callable[[], Theorem]]:
    """The guarantee of fixed-size samples of parties that keep no state, for whoever does not know the sample."""
    schedule = spec.schedule
    if not isinstance(schedule, FixedSubset) or query.unit != "party" or query.adjacency != "replace-one":
        return
    everyone, declaration = spec.representatives(), spec.remember(declaration)
    rounds = [(round_, declared) for round_ in range(spec.rounds) if (declared := declaration(everyone.at(round_)))]
    releases = [release for _, declared in rounds for release in declared]
    if not spec.mode.noise_at_hub or not releases:
        return
    if any((r.rate, r.at, sight(spec, query, r)) != (1, "sum", "sum") for r in releases):
        return

    def fixed_size() -> Theorem:
        for name in {release.name for release in releases}:
            drawn = gaussian_draws(spec, declaration, name)
            if drawn.excess > 0 or drawn.rounding > 0:
                raise PreconditionError(
                    "FixedSizeWithoutMemory: the theorem is about continuous noise and has no room for the excess of a "
                    "discrete sampler; sample parties with PoissonSubset(rate)."
                )
        ratios = tuple(_ratio(spec, declared, round_) for round_, declared in rounds)
        return FixedSizeWithoutMemory(
            size=schedule.size,
            population=spec.parties,
            contribution=ratios[0] if len(set(ratios)) == 1 else ratios,
            std=1.0,
            rounds=len(rounds),
            insiders=insiders(spec, query),
        )

    yield fixed_size


def _ratio(spec: RunSpec, releases: tuple[Release, ...], round_: int) -> float:
    """SumTerm over noise of everything that a party adds to the sums of a round; its releases share one draw.

    Whoever is drawn takes the place of another, so the longest contribution of anybody counts.
    """
    problem, total = spec.facts.problem, 0.0
    for release in releases:
        noise = spec.noise_for(release.name)
        std = float(noise.scale(float(np.max(release.bounds.at(problem.unit, problem.adjacency))), round_))
        total += release.times * (float(np.max(release.bounds.at("party", "add-remove"))) / std) ** 2
    return math.sqrt(total)
