"""Second moments of shortened rows."""

from __future__ import annotations

import numpy as np

from consenso.arrays import Array
from consenso.rows import BLOCK_NUMBERS
from consenso.shards import Cohort


def shortened_moments(f: Cohort, factors: Array) -> Array:
    """Sum over each party's rows of factor^2 times row times its transpose, (parties, features, features).

    The only place where an algorithm looks at rows: no primitive of a cohort weighs the rows of a second moment. They
    are taken a block at a time, so that no second table is made.
    """
    rows = f._rows
    length = max(1, BLOCK_NUMBERS // rows.features)
    out = np.zeros((rows.parties, rows.features, rows.features))
    for party, (start, stop) in enumerate(zip(rows.layout.offsets[:-1], rows.layout.offsets[1:], strict=True)):
        for here in range(int(start), int(stop), length):
            block = slice(here, min(here + length, int(stop)))
            part = rows.matrix[block]
            part = (part.toarray() if rows.is_sparse else part) * factors[block, None]
            out[party] += part.T @ part
    return out
