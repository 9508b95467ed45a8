"""What Theorems 4 and 6 and Note 1 say, against what is exact."""

from __future__ import annotations

import math
from typing import Any

from scipy.stats import binom, hypergeom

from experiments.paper002 import claims


def composition(*, steps: int, delta: float) -> dict[str, float]:
    """Theorem 4: a mechanism that tells the record with probability delta, and nothing otherwise, so many times."""
    return {"printed": delta, "exact": -math.expm1(steps * math.log1p(-delta))}


def constant(*, delta: float) -> dict[str, float]:
    """Theorem 6: up to which epsilon the value of c_0 in the proof, and 1, bound the exact cost."""
    proof = claims.printed_proof_constant(delta)
    return {
        "proof": proof,
        "valid with the proof's": claims.largest_valid_epsilon(delta=delta, constant=proof),
        "valid with 1": claims.largest_valid_epsilon(delta=delta),
    }


def minibatch(*, records: int, batch: int) -> dict[str, Any]:
    """Note 1: how often the replaced record is in a batch that is drawn with replacement."""
    twice = float(binom.sf(1, batch, 1 / records))
    most = int(binom.isf(1e-6, batch, 1 / records))
    return {
        "printed": 1,
        "exact": batch,
        "without replacement": int(hypergeom(records, 1, batch).support()[1]),
        "twice": twice,
        "at a millionth": most,
    }
