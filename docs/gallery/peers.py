# %% [markdown]
# # Peers without a server
#
# Twelve clinics, each linked to four others, want one model, and none of them is to be the centre. Three ways, at the
# same epsilon against every peer.

# %%
from consenso import Study

TEXT = """
title = "Twelve clinics"
[data]
dataset = "digits"
positive = ["0", "2", "4", "6", "8"]
holdout = 357
[model]
loss = "logistic"
regularizer = { kind = "l2", strength = 1e-3 }
intercept = true
[privacy]
epsilon = 3.0
delta = 1e-5
seed = 0
[setting]
kind = "decentralized"
trust = "masked-sum"
topology = { kind = "random-regular", degree = 4, seed = 0 }
[setting.split]
kind = "equal"
parties = 12
"""
ways = {
    "masked-sum": "sums along a tree, under masks that cancel in the total",
    "tree": "sums along a tree, in the clear, each clinic with its own noise",
    "local": "gossip: noisy models to all neighbours, as in the papers",
}
studies = {trust: Study.parse(TEXT.replace("masked-sum", trust)) for trust in ways}

# %%
from pathlib import Path

from consenso.study.training import train

trained = {trust: train(study, Path(trust)) for trust, study in studies.items()}
for trust, done in trained.items():
    print(f"{trust:12} accuracy {done.metrics['accuracy']:.3f}   {ways[trust]} ({done.card.algorithm})")
assert trained["masked-sum"].metrics["accuracy"] > trained["local"].metrics["accuracy"]

# %% [markdown]
# Under masks nobody learns more than the total, and all pairs are alike. Along a plain tree a clinic is hidden from
# another one among its branch: there is an epsilon for every ordered pair.

# %%
from consenso.planning.pairs import pair_costs

costs = {trust: pair_costs(study.plan(), 1e-5) for trust, study in studies.items()}
for trust, cost in costs.items():
    label, pairs, (least, *_, most) = cost.quantiles()[-1]
    print(f"{trust:12} epsilon from {least:.2f} to {most:.2f} over {pairs} ordered pairs")

# %%
import networkx as nx
from matplotlib import pyplot as plt

plan = studies["tree"].plan()
graph = nx.Graph(list(map(tuple, plan.topology.edges)))
places = nx.circular_layout(graph)
figure, panels = plt.subplots(1, 2, figsize=(8, 3.6))
for panel, node in zip(panels, (0, 5), strict=True):
    others = [other for other in graph if other != node]
    shown = nx.draw_networkx_nodes(
        graph, places, others, ax=panel, node_color=costs["tree"].epsilons[node][others], cmap="viridis_r"
    )
    nx.draw_networkx_nodes(graph, places, [node], ax=panel, node_color="white", edgecolors="black")
    nx.draw_networkx_edges(graph, places, ax=panel, alpha=0.3)
    nx.draw_networkx_labels(graph, places, ax=panel, font_size=8)
    figure.colorbar(shown, ax=panel, label="epsilon")
    panel.set_title(f"what clinic {node} learns, plain tree")
    panel.axis("off")

# %%
trained["masked-sum"].card
