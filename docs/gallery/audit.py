# %% [markdown]
# # Attack it yourself
#
# A guarantee holds for all data, and an attacker may choose the worst. The audit does: it runs an algorithm thousands
# of times with the data of one party and with others in their place, learns to tell the two apart, and computes the
# epsilon that its success proves. If that is above the epsilon that was promised, the promise is false.

# %%
from consenso import EpsilonDelta, Server, plan
from consenso.algorithms import find
from consenso.audit import linear

DELTA = 1e-3
example = find("ConsensusADMM").example()
problem = linear(example.problem)  # a loss with which the bounds are nearly attained
settings = {"rounds": 5, "observer": Server(), "trust": "local"}
made = plan(problem, example.algorithm, target=EpsilonDelta(epsilon=2.0, delta=DELTA), **settings)
print(made.card(DELTA).sentence())

# %%
from consenso.audit import Effort, audit

effort = Effort(trials=2000)
(finding,) = audit(made, effort, observers=[Server()], delta=DELTA)
print(f"promised: epsilon {finding.claimed:.2f}; the attack proves at least {finding.lower:.2f}")
assert not finding.refuted

# %% [markdown]
# Now somebody makes a mistake: the run has the noise of epsilon 4, and the card still says 2.

# %%
careless = plan(problem, example.algorithm, target=EpsilonDelta(epsilon=4.0, delta=DELTA), **settings)


def promised(query):
    """What the card says of a query."""
    return made.prove(query.observer, query.party, DELTA).event


(caught,) = audit(careless, effort, observers=[Server()], delta=DELTA, claim=promised)
print(f"promised: epsilon {caught.claimed:.2f}; the attack proves at least {caught.lower:.2f}")
assert caught.refuted

# %% [markdown]
# The trade-off between the two errors that an attacker makes. No attack on a true promise gets into the red region;
# this one is well inside:

# %%
import numpy as np
from matplotlib import pyplot as plt

alarms = np.linspace(0, 1, 200)
allowed = made.prove(Server(), 0, DELTA).tradeoff(alarms)
plt.figure(figsize=(4.6, 3.8))
plt.fill_between(alarms, 0, allowed, color="tab:red", alpha=0.15, label="impossible if the promise holds")
plt.plot(finding.evidence.fpr, finding.evidence.fnr, label="attack on the true promise")
plt.plot(caught.evidence.fpr, caught.evidence.fnr, label="attack on the false one")
plt.plot([0, 1], [1, 0], ":", color="0.6", label="guessing")
plt.xlabel("false alarms")
plt.ylabel("cases that are missed")
_ = plt.legend()

# %% [markdown]
# `consenso audit study.toml` does this for every observer of a study, `make audit` for every algorithm of the
# library: [how we attack ourselves](../attacks.md).
