"""The best bound that is proved for given facts."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from consenso.errors import PreconditionError
from consenso.privacy.theorems.theorem import Theorem


def strongest(
    candidates: Sequence[Callable[[], Theorem]], floor: Theorem, delta: float
) -> tuple[Theorem, tuple[str, ...]]:
    """The theorem of smallest epsilon at `delta`, and why the other candidates were refused.

    A candidate is a function that constructs a theorem, so that its preconditions are checked here. The floor always
    holds, and is returned when no candidate is better. Bounds for another adjacency or unit than the floor's are never
    compared with it: they are refused.
    """
    from consenso.privacy.accountants import epsilon

    best, cost = floor, epsilon(floor.event(), delta)
    refusals: list[str] = []
    for candidate in candidates:
        try:
            theorem = candidate()
        except PreconditionError as refusal:
            refusals.append(str(refusal))
            continue
        if (theorem.adjacency, theorem.unit) != (floor.adjacency, floor.unit):
            refusals.append(
                f"{type(theorem).__name__}(adjacency={theorem.adjacency!r}, unit={theorem.unit!r}): the guarantee "
                f"asked for is for {floor.adjacency!r} and {floor.unit!r}; state the bound for these."
            )
            continue
        own = epsilon(theorem.event(), delta)
        if own < cost:
            best, cost = theorem, own
    return best, tuple(refusals)
