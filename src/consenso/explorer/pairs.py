"""What one peer learns of every other, for a position of the sliders: the graph coloured by epsilon."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from consenso.errors import InputError
from consenso.planning.pairs import pair_costs
from consenso.report.pairs import LARGEST, is_on_graph, nearest_observer, pair_picture, pairs_table, reason_of
from consenso.study import Study


def node_of(asked: Mapping[str, Any]) -> int:
    """The node that a request chooses, 0 where it names none."""
    node = asked.get("node", 0)
    if isinstance(node, bool) or not isinstance(node, int) or node < 0:
        raise InputError(f"node = {node!r}: a node is a number of the graph, from 0 on.")
    return node


def view_of(study: Study, node: int) -> dict[str, Any]:
    """Who can look, who does, and what is seen; no nodes where parties see nothing of each other."""
    plan = study.plan()
    if not is_on_graph(plan):
        return {"nodes": []}
    costs = pair_costs(plan, study.privacy.delta)
    index = nearest_observer(costs, node)
    small = plan.parties <= LARGEST
    return {
        "nodes": [{"node": each, "name": study.parties[each]} for each in costs.observers],
        "node": costs.observers[index],
        "epsilons": [None if value != value else value for value in costs.epsilons[index].tolist()],
        "svg": pair_picture(plan, costs, index) if small else "",
        "table": pairs_table(costs),
        "why": reason_of(plan),
    }
