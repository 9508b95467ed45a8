"""What is refused before a run is planned."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from consenso.algorithms.shape import HubAlgorithm, PeerAlgorithm
from consenso.conventions import ADJACENCIES, UNITS
from consenso.errors import InputError, PreconditionError
from consenso.privacy.calibrate import Mu, Target
from consenso.privacy.count import Count
from consenso.privacy.noise import NoNoise
from consenso.privacy.run_spec import RunSpec
from consenso.problem import Problem


def require_shape(algorithm: Any) -> Literal["hub", "peer"]:
    if isinstance(algorithm, HubAlgorithm):
        return "hub"
    if isinstance(algorithm, PeerAlgorithm):
        return "peer"
    raise InputError(
        f"plan(algorithm={type(algorithm).__name__}): an algorithm has local and combine, or local and absorb; see "
        "consenso.algorithms.shape."
    )


def check_count(problem: Problem, target: Target | None, count: Count | None) -> None:
    if count is None:
        return
    if target is not None and target != Mu(mu=count.rest):
        raise InputError(
            f"plan(target={target}, count=...): what is left for the run is one mu, whatever the count is; give "
            "Mu(mu=count.rest)."
        )
    if problem.capped or problem.records != count.low:
        raise InputError(
            f"plan(count=...): the number of records that a noisy count stands for is {count.low}, which bounds "
            f"nothing, and the problem has {problem.records}; use Problem(sizes=[{count.low}], capped=False)."
        )


def check_bounded(algorithm: Any, spec: RunSpec) -> None:
    """Noise is scaled with the bound of the problem's own unit and adjacency, so there must be one."""
    problem, everyone = spec.facts.problem, spec.representatives()
    for round_ in {0, spec.rounds - 1}:
        for release in spec.remember(algorithm.releases)(everyone.at(round_)):
            if release.perturbs_objective or np.isfinite(release.bounds.at(problem.unit, problem.adjacency)).all():
                continue
            if isinstance(spec.noise_for(release.name), NoNoise):
                continue  # nothing is scaled, and nothing is promised
            known = [
                f"unit={unit!r} with adjacency={adjacency!r}"
                for unit in UNITS
                for adjacency in ADJACENCIES
                if np.isfinite(release.bounds.at(unit, adjacency)).all()
            ]
            raise PreconditionError(
                f"plan({type(algorithm).__name__}): no bound on {release.name!r} is known for unit={problem.unit!r} "
                f"with adjacency={problem.adjacency!r}; there is one for "
                f"{' or '.join(known) or 'no unit: clip the value'}."
            )
