"""Law 10, and what it looks at."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from consenso.algorithms.shape import Example
from consenso.arrays import Array
from consenso.errors import ConsensoError
from consenso.planning.plan import Plan
from consenso.schedules import Cyclic, Everyone, is_fair
from consenso.testing.exact_values.cases import Cases, Row, cases_of, parameters_of, plan_of
from consenso.testing.exact_values.compare import (
    Comparison,
    NotAffineError,
    UnstatedError,
    claims_of,
    compare,
)
from consenso.testing.exact_values.scripted import OtherNoiseError

# Findings that an error shows.
SHOWN = 10


@dataclass
class Examined:
    """What looking at the plans of an example gave."""

    algorithm: str
    findings: list[Comparison] = field(default_factory=list)
    left_out: Counter[str] = field(default_factory=Counter)  # plans that were not examined, by the reason
    not_affine: dict[str, str] = field(default_factory=dict)  # parameters, and what showed it
    unstated: list[str] = field(default_factory=list)  # plans without a guarantee that should have been refused
    plans: int = 0

    @property
    def below(self) -> list[Comparison]:
        """Findings that must not be."""
        return [finding for finding in self.findings if finding.below]


def no_value_below_exact(example: Example, *, once: bool = False) -> None:
    """Law 10: for linear losses no reported epsilon, delta, mu or Renyi divergence is below the exact one.

    Looks at every schedule under every trust and at every other choice at least once; `examine` has them all in pairs.
    once: at every choice, schedules and trusts as well, in few plans of few rounds.
    """
    examined = examine(example, pairs=False, core=not once)
    worst = sorted(examined.below, key=lambda finding: finding.ratio)
    said = [finding.sentence() for finding in worst] + examined.unstated
    assert not said, f"{len(worst)} of {len(examined.findings)} guarantees are false:\n" + "\n".join(said[:SHOWN])


def examine(example: Example, *, pairs: bool = True, core: bool = True, changes: int | None = None) -> Examined:
    """Compare the guarantees of a covering set of plans with the exact values, or of all plans with `changes`.

    The set has every two choices together that can be, or without `pairs` every choice once; and, with `core`, what
    decides which theorem is the strongest: schedules with trusts, and long runs.
    """
    cases = cases_of(example, few=changes is None)
    examined = Examined(algorithm=type(example.algorithm).__name__)
    for row, plan in rows_of(cases, pairs=pairs, core=core, changes=changes, left_out=examined.left_out):
        examined.plans += 1
        _examine_plan(cases, row, plan, examined, thorough=changes is not None)
    return examined


def rows_of(
    cases: Cases,
    *,
    pairs: bool = True,
    core: bool = True,
    changes: int | None = None,
    left_out: Counter[str] | None = None,
) -> Iterator[tuple[Row, Plan]]:
    """The rows that can be planned, with their plans."""
    plans: dict[Row, Plan] = {}
    left_out = Counter() if left_out is None else left_out
    first, long = (set(cases.core()), list(cases.long())) if core else (set(), [])
    special = first.union(long)

    def accepts(row: Row) -> bool:
        try:
            plans[row] = plan = plan_of(cases, row)
        except ConsensoError:
            return False
        tossed, sampled = not isinstance(plan.schedule, Everyone | Cyclic), _samples_records(plan)
        # Among quadratic losses noise is small, and what a mixture of narrow Gaussians costs is no news.
        if dict(row)["others"] == "quadratic" and (tossed or sampled):
            return False
        return changes is not None or not (tossed and sampled)  # which takes time

    seen: set[str] = set()
    covering = itertools.chain(cases.cover_choices(accepts, pairs=pairs, core=core), long)
    for row in covering if changes is None else cases.change_rows(changes):
        if row not in plans and not accepts(row):
            left_out["refused before anything ran"] += 1
            continue
        plan = plans.pop(row)
        if changes is None and row in special:
            strongest = strongest_theorems(plan)
            if row not in first and strongest <= seen:
                continue  # a long run is worth its time where it is the first to show a theorem
            seen |= strongest
        yield row, plan


def strongest_theorems(plan: Plan) -> set[str]:
    """Names of the theorems that are the strongest for somebody; none if the plan cannot state its guarantee."""
    try:
        return {name for party in attacked_parties(plan) for _, (_, name) in claims_of(plan, party)}
    except ConsensoError:
        return set()


def _samples_records(plan: Plan) -> bool:
    return any(release.rate < 1 for release in plan.algorithm.releases(plan.facts))


def _examine_plan(cases: Cases, row: Row, plan: Plan, examined: Examined, *, thorough: bool) -> None:
    quadratic = cases.choices["others"][dict(row)["others"]]
    matrices: dict[int, Array] | None = None if quadratic else {}
    for attacked in attacked_parties(plan):
        try:
            examined.findings += compare(
                plan, attacked, case=cases.text(row), quadratic=quadratic, thorough=thorough, matrices=matrices
            )
        except NotAffineError as error:
            how = parameters_of(plan.algorithm, cases.example.algorithm)
            examined.left_out[f"not affine{', among quadratic losses' if quadratic else ''}"] += 1
            if not quadratic:
                examined.not_affine.setdefault(how or "its usual parameters", str(error))
        except OtherNoiseError:
            examined.left_out["draws noise that is not Gaussian"] += 1
        except UnstatedError as error:
            said = f"{examined.algorithm} ({cases.text(row)}) was planned and cannot state its guarantee: {error}"
            examined.unstated.append(said)
        except ConsensoError as error:
            examined.left_out[f"a run failed: {error}"] += 1


def attacked_parties(plan: Plan) -> list[int]:
    """The last party, and the first where the two are not alike."""
    last = plan.parties - 1
    alike = is_fair(plan.schedule) and plan.topology is None and len(plan.facts.classes()) == 1
    return [last] if alike or last == 0 else [last, 0]
