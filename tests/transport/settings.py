"""Which engine runs a plan, read from the plan: what engines say themselves takes a schemas, which tests compare."""

from __future__ import annotations

from consenso.planning.plan import Plan
from consenso.schedules import FixedSubset, RandomWalk


def nobody_runs(made: Plan) -> bool:
    """A curator alone has nobody to send to, a walk has no curator and no sum, a masked sum must hide its sample."""
    trust, schedule = made.trust, made.schedule
    if isinstance(schedule, RandomWalk):
        return trust != "local"
    return (trust == "curator" and made.parties == 1) or (trust == "secure-sum" and isinstance(schedule, FixedSubset))


def star_runs(made: Plan) -> bool:
    """Whether a server and its parties run it, over Zenoh or Flower."""
    alone = isinstance(made.schedule, RandomWalk) or made.mode.on_graph
    return made.shape == "hub" and not alone and not nobody_runs(made)


def graph_runs(made: Plan) -> bool:
    """Whether peers run it."""
    return not star_runs(made) and not nobody_runs(made)
