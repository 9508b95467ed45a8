"""What each peer of a graph learns of each other one, as a table and as pictures of the graph."""

from __future__ import annotations

from consenso.conventions import ON_GRAPH
from consenso.pages import table
from consenso.planning.pairs import QUANTILES, PairCosts, pair_costs
from consenso.report.charts import graph_chart
from consenso.report.reading import RunFiles
from consenso.report.words import show_epsilon

DRAWN = 12  # graphs of up to so many nodes are drawn for each of them
_WHY = {
    "tree": "A node is hidden among its branch of the tree: the guarantee for a pair is tight.",
    "masked-sum": "Masks hide everything but the total, so all pairs are alike.",
    "local": "No credit is proved for distance in gossip: a pair pays for every message of its node.",
}


def pairs_section(run: RunFiles) -> str:
    """Quantiles of epsilon over ordered pairs, and the graph as chosen nodes see it; empty where there is no graph."""
    plan = run.plan
    if plan.spec.topology is None or not (plan.spec.shape == "peer" or plan.spec.policy.trust in ON_GRAPH):
        return ""
    costs = pair_costs(plan, run.card.delta)
    head = ["pairs", "how many", *(f"{share:.0%}" for share in QUANTILES)]
    rows = [[label, f"{many:,}", *map(show_epsilon, found)] for label, many, found in costs.quantiles()]
    return (
        "<h2>Who learns how much of whom</h2><p>Epsilon for the data of one peer against another, by the distance "
        f"between them: quantiles over ordered pairs. {_WHY[plan.spec.policy.trust]}</p>"
        + table(head, rows, numbers=frozenset(range(1, len(head))))
        + (_pictures(run, costs) if plan.spec.policy.trust == "tree" else "")
    )


def _pictures(run: RunFiles, costs: PairCosts) -> str:
    plan = run.plan
    assert plan.spec.topology is not None
    chosen = list(range(len(costs.observers)))
    if len(chosen) > DRAWN:
        tree = plan.spec.tree(0)
        chosen = sorted({_nearest(costs, node) for node in (tree.root, tree.upwards[0], tree.children[tree.root][0])})
    drawn = [
        f"<details><summary>as peer {costs.observers[index]} sees it</summary>"
        + graph_chart(
            plan.spec.topology.edges,
            costs.epsilons[index],
            title=f"Epsilon of every peer's data against peer {costs.observers[index]}",
            unit="epsilon",
            looks=costs.observers[index],
        )
        + "</details>"
        for index in chosen
    ]
    return "".join(drawn)


def _nearest(costs: PairCosts, node: int) -> int:
    return min(range(len(costs.observers)), key=lambda index: abs(costs.observers[index] - node))
