# %% [markdown]
# # One table
#
# A data frame of patients, one private model, what it cost and what it says.
#
# Every notebook of this gallery fixes its seeds, so that you see the numbers that are printed here. A fixed seed
# makes a fit a simulation, and its card says so: leave `random_state` out for the real thing.

# %%
import numpy as np
import pandas as pd

rng = np.random.default_rng(0)
people = 6000
patients = pd.DataFrame(
    {
        "age": rng.uniform(18, 98, people),
        "stays": rng.integers(0, 7, people),
        "smoker": rng.random(people) < 0.3,
        "pressure": rng.normal(130, 15, people).clip(80, 200),
    }
)
risk = 0.06 * (patients["age"] - 60) + 0.5 * patients["stays"] + 0.9 * patients["smoker"] - 1.8
readmitted = np.where(rng.random(people) < 1 / (1 + np.exp(-risk)), "yes", "no")
patients.head(3)

# %% [markdown]
# What is public about the columns is their range, which everybody knows without looking. With it every column lies
# between 0 and 1, and no row is longer than 2.

# %%
low = pd.Series({"age": 18, "stays": 0, "smoker": 0, "pressure": 80})
high = pd.Series({"age": 98, "stays": 6, "smoker": 1, "pressure": 200})
X = (patients - low) / (high - low)
train, test = slice(0, 5000), slice(5000, None)

# %%
from consenso import PrivateLogisticRegression

model = PrivateLogisticRegression(epsilon=1.0, row_bound=2.0, classes=["no", "yes"], random_state=0)
model.fit(X[train], readmitted[train])
exact = PrivateLogisticRegression(epsilon=float("inf")).fit(X[train], readmitted[train])
print(f"private {model.score(X[test], readmitted[test]):.3f}, exact {exact.score(X[test], readmitted[test]):.3f}")
print(model.card_.sentence())
assert model.score(X[test], readmitted[test]) > exact.score(X[test], readmitted[test]) - 0.03

# %% [markdown]
# The coefficients, beside those of the fit without privacy:

# %%
from matplotlib import pyplot as plt

places = np.arange(len(X.columns))
plt.figure(figsize=(6, 2.6))
plt.barh(places + 0.2, exact.coef_[0], 0.36, label="exact", color="0.7")
plt.barh(places - 0.2, model.coef_[0], 0.36, label="private, epsilon 1", color="tab:blue")
plt.yticks(places, X.columns)
plt.xlabel("log-odds from one end of the range to the other")
_ = plt.legend()

# %% [markdown]
# What more privacy would cost, for these records:

# %%
epsilons, runs = [0.01, 0.03, 0.1, 0.3, 1, 3], 3
scores = np.array(
    [
        [
            PrivateLogisticRegression(
                epsilon=epsilon, row_bound=2.0, classes=["no", "yes"], bounds="public", random_state=run
            )
            .fit(X[train], readmitted[train])
            .score(X[test], readmitted[test])
            for run in range(runs)
        ]
        for epsilon in epsilons
    ]
)
plt.figure(figsize=(6, 2.8))
plt.fill_between(epsilons, scores.min(axis=1), scores.max(axis=1), alpha=0.2)
plt.plot(epsilons, scores.mean(axis=1), "o-", label="private")
plt.axhline(exact.score(X[test], readmitted[test]), color="0.5", linestyle="--", label="exact")
plt.xscale("log")
plt.xlabel("epsilon")
plt.ylabel("accuracy")
_ = plt.legend()

# %% [markdown]
# Comparing budgets on your own records would spend all of them together. `consenso forecast` draws this picture from
# made-up or public records instead. The card says who learns how much:

# %%
model.card_
