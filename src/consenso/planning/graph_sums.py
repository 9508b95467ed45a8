"""Which plans can be run as sums on a graph, without a server."""

from __future__ import annotations

from typing import Any

from consenso.errors import InputError, PreconditionError
from consenso.graph_sum import is_connected_without
from consenso.privacy.run_spec import RunSpec
from consenso.schedules import Everyone, PoissonSubset
from consenso.trust import mode_of


def check_graph_sums(algorithm: Any, spec: RunSpec) -> None:
    """Refuse what cannot be summed along a tree with the guarantees of docs/privacy.md#sums-on-a-graph."""
    trust, name = spec.trust, type(algorithm).__name__
    if not mode_of(trust).on_graph:
        if spec.trees != "one" or spec.masks is not None:
            raise InputError(
                f"plan(trees=..., masks=...): they belong to sums on a graph, and the trust is {trust!r}; set trust to "
                "'tree' or 'masked-sum'."
            )
        return
    if spec.shape != "hub":
        raise InputError(
            f"plan(trust={trust!r}): {name} tells its neighbours single values, and only sums go along a tree; take an "
            "algorithm with a hub, or trust 'local'."
        )
    if spec.topology is None or spec.parties < 2:
        raise InputError(f"plan(trust={trust!r}): sums go along a graph of at least two peers; give its topology.")
    if not isinstance(spec.schedule, Everyone | PoissonSubset):
        raise InputError(
            f"plan(schedule={type(spec.schedule).__name__}): every node answers in every round of a sum on a graph, "
            "and can draw only its own coin; use Everyone() or PoissonSubset(rate)."
        )
    for round_ in {0, spec.rounds - 1}:
        for release in algorithm.releases(spec.representatives().at(round_)):
            if release.at != "sum":
                raise PreconditionError(
                    f"plan(trust={trust!r}): the noise of {release.name!r} stays in the states of the nodes, and "
                    "branches would show it again; take an algorithm whose noise is on the sum."
                )
    if mode_of(trust).has_masks:
        _check_masks(spec)


def _check_masks(spec: RunSpec) -> None:
    if not 1 <= spec.colluders <= spec.parties - 2:
        raise InputError(
            f"plan(colluders={spec.colluders}): in a masked sum a peer that looks is counted, so between 1 and "
            f"{spec.parties - 2} of {spec.parties} peers may pool what they know."
        )
    masks = spec.mask_graph
    if masks.parties != spec.parties:
        raise InputError(f"plan(masks=...): the mask graph has {masks.parties} nodes and the plan {spec.parties}.")
    if not is_connected_without(masks, spec.colluders):
        raise PreconditionError(
            f"plan(masks=...): {spec.colluders} peers can take the mask graph apart and read the sums of its parts; "
            "its node connectivity must be larger than colluders: leave masks out, and edges are added."
        )


def describe(spec: RunSpec) -> dict[str, Any]:
    """What a card says of the trees and masks of a plan; nothing where there are none."""
    if not spec.mode.on_graph:
        return {}
    told: dict[str, Any] = {"trees": spec.trees}
    if spec.mode.has_masks:
        told["masks"] = [list(edge) for edge in spec.mask_graph.edges]
    return told
