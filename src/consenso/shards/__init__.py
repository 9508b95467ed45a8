"""The private rows of the parties, checked and bounded, and the cohorts that algorithms compute with.

Nothing here prints, logs or puts into a message a value of a record. What a cohort returns is private until it has gone
through the releaser.
"""

from __future__ import annotations

from consenso.shards.cohort import Cohort
from consenso.shards.shards import Shards
from consenso.subproblems import Prox

__all__ = ["Cohort", "Prox", "Shards"]
