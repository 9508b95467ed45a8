# %% [markdown]
# # Reproduce a figure
#
# `consenso reproduce 001` runs all experiments of a paper and writes a page; this notebook draws one of its figures.
# Paper 001 proves that what the last iterate of a gradient ADMM tells of a user falls as the iterations after hers go
# on. The figure compares the bound that is printed there with a sharper one, and with the exact value for the worst
# quadratic.

# %%
from consenso.cli.reproduce import import_experiments

paper = import_experiments().papers()["001"]
print(paper.title, f"({paper.reference})")
found = {}
for cell in paper.cells_of("quick"):
    if cell.group.startswith("divergence"):
        asked = dict(cell.settings)
        asked["later"] = tuple(number for number in asked["later"] if number <= 100)  # the paper goes on to 400
        found[cell.group] = asked, cell.work(**asked)

# %%
from matplotlib import pyplot as plt

figure, panels = plt.subplots(1, len(found), figsize=(9, 3.4), sharey=True)
for panel, (group, (asked, costs)) in zip(panels, found.items(), strict=True):
    panel.loglog(asked["later"], costs["printed"], "--", label="printed bound")
    panel.loglog(asked["later"], costs["ours"], label="sharpened bound")
    panel.loglog(asked["later"], costs["exact"], ":", label="exact, worst quadratic")
    panel.axhline(costs["own"], color="0.6", label="every iterate seen")
    panel.set_title(group.removeprefix("divergence ") + " losses")
    panel.set_xlabel("iterations after the user")
    panel.set_ylim(1e-12, 10)
panels[0].set_ylabel("cost of the user's data (zCDP)")
_ = panels[1].legend()

# %% [markdown]
# Both bounds are sound, and neither is below the exact value. Where the printed one lies above the grey line it is no
# use yet: whoever sees every iterate learns less than it allows.

# %%
for _, costs in found.values():
    assert all(ours >= exact for ours, exact in zip(costs["ours"], costs["exact"], strict=True))
asked, costs = found["divergence convex"]
useful = next(later for later, cost in zip(asked["later"], costs["printed"], strict=True) if cost < costs["own"])
assert costs["ours"][0] < costs["own"]
print(f"convex losses: the printed bound begins to help after {useful} iterations, the sharpened one at once")

# %% [markdown]
# The papers' claims, and what we object to, are in the [page for authors](../papers.md); every objection is a
# function that can be run:

# %%
print({number: [case.name for case in each.cases] for number, each in import_experiments().papers().items()})
