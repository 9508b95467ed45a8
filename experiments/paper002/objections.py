"""Objections to paper 002, each with the reading that is kindest to it."""

from __future__ import annotations

from experiments.definition import Case
from experiments.outcome import Objection
from experiments.results import Results
from experiments.writing import shown

PROOF = "valid with the proof's"
LARGEST = 5.0  # epsilon of the paper's figures


def composition(results: Results) -> Objection:
    """Theorem 4."""
    (asked, values), *_ = results.rows("theorem composition")
    (_, found), *_ = results.rows("theorem constant")
    return Objection(
        claim="t steps that are each (eps, delta)-differentially private compose to about sqrt(t) eps with the same "
        "delta",
        place="Theorem 4",
        argument=(
            "Let a step tell the record with probability delta and nothing otherwise: it is (0, delta)-private.",
            "After t steps it has been told with probability 1 - (1 - delta)^t, which no epsilon mends.",
        ),
        shown=f"{asked['steps']} steps at delta {asked['delta']:g}: delta is {shown(values['exact'])}, claimed "
        f"{shown(values['printed'])}",
        stands=values["exact"] > values["printed"] * (1 + 1e-9),
        reading="The steps are the Gaussian ones of Algorithm 1, for which Theorem 6 states the total: with c_0 = 1 "
        "that is "
        f"valid up to epsilon {shown(found['valid with 1'])}, and the paper's figures end at {LARGEST:g}.",
        survives=found["valid with 1"] < LARGEST,
        correction="Gaussian steps compose exactly to mu-GDP with mu = sqrt(t l)/sigma; no constant is needed.",
    )


def constant(results: Results) -> Objection:
    """Theorem 6."""
    (asked, values), *_ = results.rows("theorem constant")
    return Objection(
        claim="(eps, delta) of a run: eps = c_0 sqrt(2 t l ln(1.25/delta))/sigma, with the c_0 that the proof "
        "arrives at",
        place="Theorem 6, proof",
        argument=(
            "The run is exactly mu-GDP with mu = sqrt(t l)/sigma, whatever t and l.",
            "So eps(mu, delta) over mu sqrt(2 ln(1.25/delta)) is the c_0 that is needed; it grows with epsilon.",
            f"The proof's value, sqrt(ln(1/delta)/ln(1.25/delta)) = {shown(values['proof'])}, is below it for large "
            f"epsilons.",
        ),
        shown=f"delta {asked['delta']:g}: the proof's constant is valid up to epsilon "
        f"{shown(values[PROOF])}, c_0 = 1 up to {shown(values['valid with 1'])}",
        stands=values["proof"] < 1,
        reading=f"c_0 is any constant that is large enough at the epsilons of the figures, which end at {LARGEST:g}.",
        survives=values[PROOF] < LARGEST,
        correction="Convert mu-GDP exactly.",
    )


def minibatch(results: Results) -> Objection:
    """Note 1."""
    (asked, values), *_ = results.rows("theorem minibatch")
    return Objection(
        claim="Minibatches drawn with replacement have the sensitivity of one record in b",
        place="Note 1",
        argument=(
            "A record may be drawn several times; the mean gradient then moves that many times as far.",
            "The sensitivity, which is a worst case, is b times the one that is used.",
        ),
        shown=f"{asked['records']} records, batches of {asked['batch']}: a record is in a batch twice or more with "
        f"probability {shown(values['twice'])} a step, and {values['at a millionth']} times with a probability of a "
        f"millionth",
        stands=values["exact"] > values["printed"],
        reading="Batches without replacement, or the full gradient, as in the algorithm itself.",
        survives=values["without replacement"] > values["printed"],
        correction="Poisson samples, divided by the fixed number q m_i, hidden: sensitivity 2 c_1/((2 rho |N_i| + "
        "eta) q m_i).",
    )


CASES = (
    Case(name="theorem-4", groups=("theorem composition", "theorem constant"), object_to=composition),
    Case(name="theorem-6", groups=("theorem constant",), object_to=constant),
    Case(name="note-1", groups=("theorem minibatch",), object_to=minibatch),
)
