"""The laws, each a function of an algorithm's `example()` that raises AssertionError where it is broken.

1. Engines agree. 2. The ledger of a run is its plan. 3. Non-interference. 4. Measured sensitivity is within the
declared one. 5. Without noise the optimum is reached. 7. Undeclared, extra and missing releases raise: the releaser
enforces it on every run. 8. What is drawn has the law that the event states. 9. No attack beats what is reported to any
observer. 10. For linear losses no reported value is below the exact one; 1 and 10 hold without a server, too. 11.
Whatever a hub or a neighbour sends, law 4 holds, and rows do not decide what is refused. 12. Compiled rounds give the
iterates of plain ones. 13. A row of zeros is no row. Law 6 belongs to operators.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from consenso.algorithms.shape import Example
from consenso.planning.plan import plan
from consenso.privacy.noise import NoNoise
from consenso.privacy.run_spec import largest_bounds
from consenso.privacy.samplers import Seeded
from consenso.shards import Shards
from consenso.testing.attacks import attacks_stay_below
from consenso.testing.compiled import compiled_rounds_agree
from consenso.testing.draws import noise_has_its_law
from consenso.testing.exact_values import no_value_below_exact
from consenso.testing.graph_sums import sums_need_no_server
from consenso.testing.interference import messages_are_releases, non_interference, transcript
from consenso.testing.lying_hub import lies_gain_nothing
from consenso.testing.optimum import approach_optimum
from consenso.testing.plans import (
    ADJACENCIES,
    UNITS,
    execute,
    plan_example,
    plan_with_noise_scaled,
    settings_of,
    shards_of,
)
from consenso.testing.sensitivity import check_sensitivity
from consenso.testing.worlds import draw
from consenso.testing.zero_rows import zero_rows_are_no_rows

__all__ = [
    "ADJACENCIES",
    "EVERY",
    "OF_VARIANTS",
    "UNITS",
    "Law",
    "attacks_stay_below",
    "check_sensitivity",
    "compiled_rounds_agree",
    "engines_agree",
    "execute",
    "ledger_equals_plan",
    "lies_gain_nothing",
    "messages_are_releases",
    "no_value_below_exact",
    "noise_has_its_law",
    "non_interference",
    "plan_example",
    "plan_with_noise_scaled",
    "reaches_optimum",
    "settings_of",
    "sums_need_no_server",
    "transcript",
    "zero_rows_are_no_rows",
]

Law = Callable[[Example], None]


def engines_agree(example: Example) -> None:
    """Law 1, in process: one cohort and one party at a time give the same model."""
    shards = shards_of(example)
    for made in settings_of(example):
        together, _ = execute(made, shards)
        apart, _ = execute(made, shards, one_by_one=True)
        again, _ = execute(made, shards, one_by_one=True)
        assert np.array_equal(apart, again), "two runs of one seed differ"
        np.testing.assert_allclose(together, apart, rtol=1e-9, atol=1e-10)


def ledger_equals_plan(example: Example) -> None:
    """Law 2: every use of the releaser was declared for its round, as often as declared, with the planned noise
    scale.
    """
    shards = shards_of(example)
    for made in settings_of(example):
        _, progress = execute(made, shards)
        everyone = made.facts
        done = dict.fromkeys(range(progress.round), 0)
        for entry in progress.entries:
            facts = everyone.only(entry.cohort).at(entry.round)
            (release,) = (r for r in made.algorithm.releases(facts) if r.name == entry.name)
            largest = largest_bounds(made, made.algorithm.releases, entry.round)[entry.name]
            sensitivity = made.sensitivity(release, facts, largest) * entry.bound / np.sqrt(entry.share)
            scale = made.noise_for(entry.name).scale(sensitivity, entry.round)
            np.testing.assert_array_equal(
                np.asarray(entry.scale), np.asarray(scale), err_msg=f"scale of {entry.name!r}"
            )
            done[entry.round] += 1
        for round_, count in done.items():
            releases = made.algorithm.releases(everyone.at(round_))
            expected = sum(release.times for release in releases)
            skipped = not any(entry.round == round_ for entry in progress.entries)
            if not skipped and not any(release.parts for release in releases):
                assert count == expected, f"round {round_}: {count} uses of the releaser, {expected} declared"


def reaches_optimum(example: Example) -> None:
    """Law 5: without noise the method solves its problem, with every regularizer it is made for."""
    for regularizer in example.regularizers or (example.problem.regularizer,):
        problem = replace(example.problem, regularizer=regularizer)
        shards = Shards.from_parties(problem, draw(problem, np.random.default_rng(3)))
        made = plan(
            problem,
            example.exact or example.algorithm,
            rounds=example.exact_rounds,
            noise=NoNoise(),
            schedule=example.schedules[0],
            trust=example.trusts[0],
            topology=example.topology,
            sampler=Seeded(7),
        )
        reached, best = approach_optimum(made, shards, example.exact_tolerance, watch=lambda *seen: None)
        assert reached - best <= example.exact_tolerance * max(1e-3, abs(best)), (
            f"{type(regularizer).__name__}: objective {reached:.12g}, optimum {best:.12g}"
        )


EVERY: tuple[Law, ...] = (
    engines_agree,
    ledger_equals_plan,
    non_interference,
    messages_are_releases,
    check_sensitivity,
    reaches_optimum,
    noise_has_its_law,
    attacks_stay_below,
    no_value_below_exact,
    sums_need_no_server,
    lies_gain_nothing,
    compiled_rounds_agree,
    zero_rows_are_no_rows,
)
# Laws that are run on the variants of an example as well, and law 4 in turn; law 10 looks at variants itself.
OF_VARIANTS: tuple[Law, ...] = (ledger_equals_plan, messages_are_releases, zero_rows_are_no_rows)
