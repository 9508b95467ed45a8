"""What each peer of a graph learns of each other one, as a table and as pictures of the graph."""

from __future__ import annotations

from consenso.pages import table
from consenso.planning.pairs import QUANTILES, PairCosts, pair_costs
from consenso.planning.plan import Plan
from consenso.report.charts import graph_chart
from consenso.report.reading import RunFiles
from consenso.report.words import show_epsilon

DRAWN = 12  # graphs of up to so many nodes are drawn for each of them
LARGEST = 300  # nodes of a graph that is drawn at all


def pairs_section(run: RunFiles) -> str:
    """Quantiles of epsilon over ordered pairs, and the graph as chosen nodes see it; empty where there is no graph."""
    plan = run.plan
    if not is_on_graph(plan):
        return ""
    costs = pair_costs(plan, run.card.delta)
    chosen = _choose_observers(plan, costs) if plan.parties <= LARGEST else []
    drawn = "".join(
        f"<details><summary>as peer {costs.observers[index]} sees it</summary>"
        f"{pair_picture(plan, costs, index)}</details>"
        for index in chosen
    )
    return (
        "<h2>Who learns how much of whom</h2><p>Epsilon for the data of one peer against another, by the distance "
        f"between them: quantiles over ordered pairs. {reason_of(plan)}</p>{pairs_table(costs)}{drawn}"
    )


def is_on_graph(plan: Plan) -> bool:
    """Whether parties see each other's messages, so that pairs of them matter."""
    return plan.topology is not None and (plan.shape == "peer" or plan.mode.on_graph)


def reason_of(plan: Plan) -> str:
    """What the guarantee of a pair rests on."""
    return plan.mode.pairs


def pairs_table(costs: PairCosts) -> str:
    """Quantiles of epsilon over ordered pairs, by distance."""
    head = ["pairs", "how many", *(f"{share:.0%}" for share in QUANTILES)]
    rows = [[label, f"{many:,}", *map(show_epsilon, found)] for label, many, found in costs.quantiles()]
    return table(head, rows, numbers=frozenset(range(1, len(head))))


def pair_picture(plan: Plan, costs: PairCosts, index: int) -> str:
    """The graph, coloured by what one of the observers learns of each node."""
    assert plan.topology is not None
    looks = costs.observers[index]
    return graph_chart(
        plan.topology.edges,
        costs.epsilons[index],
        title=f"Epsilon of every peer's data against peer {looks}",
        unit="epsilon",
        looks=looks,
    )


def nearest_observer(costs: PairCosts, node: int) -> int:
    """The place of a node among the observers, or of one beside it where not all of them look."""
    return min(range(len(costs.observers)), key=lambda index: abs(costs.observers[index] - node))


def _choose_observers(plan: Plan, costs: PairCosts) -> list[int]:
    """Whose view is drawn: everybody's, where views differ and nodes are few; else that of some."""
    if not plan.mode.has_open_tree:
        return [0]
    if len(costs.observers) <= DRAWN:
        return list(range(len(costs.observers)))
    tree = plan.tree(0)
    some = (tree.root, tree.upwards[0], tree.children[tree.root][0])
    return sorted({nearest_observer(costs, node) for node in some})
