"""The delta where nothing is said: the same in estimators, in new studies and in audits."""

from __future__ import annotations

LARGEST_DELTA = 1e-5  # and at most a tenth of one record's share


def default_delta(records: int) -> float:
    """min(1e-5, 0.1 / records): no single record is at risk of being published with a probability that matters.

    Where no number of records is public, delta may not depend on it, and is 1e-5.
    """
    return min(LARGEST_DELTA, 0.1 / records)
