"""Law 13: a row of zeros is no row, in everything that an algorithm adds up over its rows.

Guarantees of parties that may be gone, steps after a failure and attacks all take rows of zeros for no rows
(`engine.step.make_zero_rows`, `audit.neighbours`). A count that such a row is in breaks them, and so does a padded
batch. With an intercept no record is a row of zeros: it has the constant column.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from consenso.algorithms.shape import Example
from consenso.audit.neighbours import extremes
from consenso.shards import Shards
from consenso.testing.plans import plan_example, plan_with_noise_scaled
from consenso.testing.sensitivity import probe_releases
from consenso.testing.worlds import draw

SIZES_OF_NOISE = (1.0, 0.1, 10.0)


def zero_rows_are_no_rows(example: Example) -> None:
    """Law 13: with the same past, every release is the same whether a record is a row of zeros or not there.

    To the last bit where sums are whole numbers. Nothing is said where all parties have one record: no party is empty.
    """
    if not (example.problem.sizes > 1).any():
        return
    worlds = list(_worlds(example))
    for place, schedule in enumerate(example.schedules):
        made = plan_example(example, schedule=schedule)
        # Answers of different sizes drive the iterates to different places.
        made = plan_with_noise_scaled(made, SIZES_OF_NOISE[place % len(SIZES_OF_NOISE)])
        exact = getattr(example.algorithm, "adds_up_only", False)
        gone, *padded = (probe_releases(made, shards) for shards in worlds)
        for seen in padded:
            assert len(seen) == len(gone), "a row of zeros changes how often something is released"
            for (release, round_, one, _), (_, _, other, _) in zip(seen, gone, strict=True):
                same = np.array_equal(one, other) if exact else np.allclose(one, other, rtol=1e-9, atol=1e-10)
                assert same, (
                    f"{release.name!r} differs by {np.max(np.abs(one - other)):.6g} in round {round_} where a row of "
                    "zeros is there"
                )


def _worlds(example: Example) -> Iterator[Shards]:
    """A party without its last record, then with zeros for it and each extreme target."""
    problem = replace(example.problem, unit="record", adjacency="add-remove")
    data = draw(problem, np.random.default_rng(5))
    party = int(np.flatnonzero(problem.sizes > 1)[0])
    rows, targets = data[party]
    data[party] = rows[:-1], targets[:-1]
    yield Shards.from_parties(problem, data)
    for target in extremes(problem):
        last = np.array([target], dtype=targets.dtype)
        data[party] = np.vstack([rows[:-1], np.zeros((1, problem.features))]), np.concatenate([targets[:-1], last])
        yield Shards.from_parties(problem, data)
