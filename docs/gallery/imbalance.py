# %% [markdown]
# # Rare classes
#
# One patient in thirty has the disease. A model that says "healthy" to everybody is right 97 times in 100, and
# useless. `class_weight` makes the rare ones count.

# %%
import numpy as np

rng = np.random.default_rng(0)
records = 30_000
X = rng.uniform(-1, 1, (records, 4))
score = X @ [3.0, -2.0, 1.5, 0.0] - 5.3
ill = np.where(rng.random(records) < 1 / (1 + np.exp(-score)), "ill", "well")
print(f"{np.mean(ill == 'ill'):.1%} are ill")

# %%
from sklearn.metrics import balanced_accuracy_score, recall_score

from consenso import PrivateLogisticRegression

train, test = slice(0, 20_000), slice(20_000, None)
models = {}
for weights in (None, {"ill": 20, "well": 1}, "balanced"):
    model = PrivateLogisticRegression(
        epsilon=1.0, row_bound=2.0, classes=["ill", "well"], class_weight=weights, random_state=0
    )
    models[str(weights)] = model.fit(X[train], ill[train])
    said = model.predict(X[test])
    print(
        f"{weights!s:24} accuracy {np.mean(said == ill[test]):.3f}  found of the ill "
        f"{recall_score(ill[test], said, pos_label='ill'):.2f}  balanced {balanced_accuracy_score(ill[test], said):.2f}"
    )

# %% [markdown]
# How many records a class has is private. Weights that are public knowledge cost nothing; `"balanced"` releases noisy
# numbers of records for one percent of the squared budget, and says so:

# %%
print(models["balanced"].notes_[-1])
assert models["balanced"].guarantee_.epsilon(1e-5) <= 1.0

# %% [markdown]
# Either way a record of a rare class counts for many, so the noise is as many times as loud. The ranking of records
# hardly changes; it is the decision that does:

# %%
from matplotlib import pyplot as plt
from sklearn.metrics import roc_curve

plt.figure(figsize=(4.2, 3.6))
for name, model in models.items():
    false, true, _ = roc_curve(ill[test] == "ill", -model.decision_function(X[test]))
    said = model.predict(X[test]) == "ill"
    (line,) = plt.plot(false, true, label=name)
    plt.plot(said[ill[test] == "well"].mean(), said[ill[test] == "ill"].mean(), "o", color=line.get_color())
plt.xlabel("healthy people who are called ill")
plt.ylabel("ill people who are found")
_ = plt.legend(title="class_weight")
