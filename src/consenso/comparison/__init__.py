"""Methods beside each other at equal (epsilon, delta): ours, a rival's estimator, a researcher's own algorithm.

What is compared is quality on test records against epsilon. Runs are simulations: they are repeated many times, which
no private table could pay for.
"""

from __future__ import annotations

from consenso.comparison.methods import Data
from consenso.comparison.running import compare

__all__ = ["Data", "compare"]
