# %% [markdown]
# # People with several rows
#
# A patient with five stays has five rows. A guarantee for one row is little comfort to her: `users` protects all rows
# of a person at once.

# %%
import numpy as np
import pandas as pd

rng = np.random.default_rng(0)
people = 3000
stays = rng.geometric(0.4, people)
patient = np.repeat([f"patient {number}" for number in range(people)], stays)
habit = np.repeat(rng.uniform(-1, 1, (people, 3)), stays, axis=0)
visits = pd.DataFrame(
    np.clip(habit + 0.3 * rng.normal(size=habit.shape), -1, 1), columns=["pressure", "sugar", "weight"]
)
ill = visits.to_numpy() @ [2.0, -1.0, 1.0] + 0.4 * rng.normal(size=len(visits)) > 0
print(f"{people} people, {len(visits)} rows, up to {stays.max()} rows of one person")

# %%
from consenso import PrivateLogisticRegression

terms = {"epsilon": 1.0, "row_bound": 3**0.5, "classes": [False, True], "random_state": 0}
by_row = PrivateLogisticRegression(**terms).fit(visits, ill)
by_person = PrivateLogisticRegression(**terms).fit(visits, ill, users=patient)
for name, model in (("rows", by_row), ("people", by_person)):
    print(f"{name}: accuracy {model.score(visits, ill):.3f}. {model.card_.sentence()}")
assert by_person.guarantee_.unit == "person"
assert by_person.score(visits, ill) > 0.85

# %% [markdown]
# The first model's guarantee is for a row. Of somebody with k rows it says k times as much: a fit that is mu-GDP for
# one row is (k mu)-GDP for k of them.

# %%
from consenso.privacy.accountants.gaussian import epsilon

most = int(stays.max())
of_all = epsilon(most * by_row.guarantee_.gdp(), 1e-5)
print(f"of the person with {most} rows the first one tells up to epsilon {of_all:.1f}")
print(f"of every person the second one tells at most epsilon {by_person.guarantee_.epsilon(1e-5):.2f}")

# %% [markdown]
# Each person counts the same, however many rows she has. `rows_per_person=3` lets those with more rows count up to
# three times as much, for more noise:

# %%
from matplotlib import pyplot as plt

counts = [1, 2, 3, 5]
scores = [
    PrivateLogisticRegression(**terms).fit(visits, ill, users=patient, rows_per_person=count).score(visits, ill)
    for count in counts
]
plt.figure(figsize=(5, 2.6))
plt.plot(counts, scores, "o-")
plt.xlabel("rows_per_person")
_ = plt.ylabel("accuracy")

# %%
by_person.card_
