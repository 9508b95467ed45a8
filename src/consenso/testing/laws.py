"""The laws, each a function of an algorithm's `example()` that raises AssertionError where it is broken.

1. Engines agree. 2. The ledger of a run is its plan. 3. Non-interference. 4. Measured sensitivity is within the
declared one. 5. Without noise the optimum is reached. 7. Undeclared, extra and missing releases raise: the door
enforces it on every run. 8. What is drawn has the law that the event states. Law 6 belongs to operators, law 9 to the
audit.
"""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from scipy import stats

from consenso.algorithms.shape import Example
from consenso.arrays import Array, IntArray
from consenso.privacy.noise import GammaNormNoise, GaussianNoise, LaplaceNoise, Noise, NoNoise
from consenso.privacy.release import Release, Sealed, Vault, open_door, open_sum
from consenso.privacy.samplers import Seeded
from consenso.privacy.setting import largest_bounds
from consenso.problem import Adjacency, Unit
from consenso.runtime.local import LocalEngine, Progress
from consenso.runtime.plan import Plan, plan
from consenso.runtime.run import coins_of, objective, released_model
from consenso.shards import Shards
from consenso.testing.optimum import optimum
from consenso.testing.worlds import Pair, draw, pairs

Law = Callable[[Example], None]
UNITS: tuple[Unit, ...] = ("record", "user")
ADJACENCIES: tuple[Adjacency, ...] = ("replace-one", "add-remove")


def planned(example: Example, **changes: Any) -> Plan:
    """The example's plan in its first schedule and under its first trust, unless said otherwise."""
    settings: dict[str, Any] = {
        "rounds": example.rounds,
        "noise": example.noise,
        "schedule": example.schedules[0],
        "trust": example.trusts[0],
        "topology": example.topology,
        "sampler": Seeded(7),
    }
    return plan(example.problem, example.algorithm, **(settings | changes))


def settings_of(example: Example) -> Iterator[Plan]:
    """The example's plan in every schedule and under every trust."""
    for schedule in example.schedules:
        for trust in example.trusts:
            yield planned(example, schedule=schedule, trust=trust)


def execute(
    made: Plan, shards: Shards, *, one_by_one: bool = False, watch: Callable[[int, Any, Any], None] | None = None
) -> tuple[Array, Progress]:
    """Run a plan to its end; the model and all that the run leaves behind."""
    engine = LocalEngine(one_by_one=one_by_one)
    progress = engine.start(made.algorithm, made.setting, shards)
    for _ in engine.rounds(
        made.algorithm, made.setting, shards, progress, coins_of(made, progress), watch or (lambda *seen: None)
    ):
        pass
    return released_model(made, progress), progress


def engines_agree(example: Example) -> None:
    """Law 1, in process: one cohort and one party at a time give the same model."""
    shards = _shards(example)
    for made in settings_of(example):
        together, _ = execute(made, shards)
        apart, _ = execute(made, shards, one_by_one=True)
        again, _ = execute(made, shards, one_by_one=True)
        assert np.array_equal(apart, again), "two runs of one seed differ"
        np.testing.assert_allclose(together, apart, rtol=1e-9, atol=1e-10)


def ledger_equals_plan(example: Example) -> None:
    """Law 2: every use of the door was declared for its round, as often as declared, with the planned noise scale."""
    shards = _shards(example)
    for made in settings_of(example):
        _, progress = execute(made, shards)
        setting, everyone = made.setting, made.setting.facts
        done = dict.fromkeys(range(progress.round), 0)
        for entry in progress.entries:
            facts = everyone.only(entry.cohort).at(entry.round)
            (release,) = (r for r in made.algorithm.releases(facts) if r.name == entry.name)
            largest = largest_bounds(setting, made.algorithm.releases, entry.round)[entry.name]
            sensitivity = setting.doorway.sensitivity(release, facts, largest) * entry.bound / np.sqrt(entry.share)
            scale = setting.doorway.noise_for(entry.name).scale(sensitivity, entry.round)
            np.testing.assert_array_equal(
                np.asarray(entry.scale), np.asarray(scale), err_msg=f"scale of {entry.name!r}"
            )
            done[entry.round] += 1
        for round_, count in done.items():
            releases = made.algorithm.releases(everyone.at(round_))
            expected = sum(release.times for release in releases)
            skipped = not any(entry.round == round_ for entry in progress.entries)
            if not skipped and not any(release.parts for release in releases):
                assert count == expected, f"round {round_}: {count} uses of the door, {expected} declared"


class _Listener(logging.Handler):
    def __init__(self) -> None:
        super().__init__(level=logging.DEBUG)
        self.heard: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.heard.append(record.getMessage())


def _nothing(round_: int, release: Release, cohort: IntArray, value: Array, bound: float) -> None:
    """A probe that only silences."""


def transcript(made: Plan, shards: Shards) -> list[bytes]:
    """Everything that leaves when every release is answered with noise alone: messages, hub, model, ledger, log."""
    seen: list[bytes] = []

    def watch(round_: int, message: Any, hub: Any) -> None:
        for record in (message, hub):
            if record is not None:
                seen.extend(np.asarray(getattr(record, each.name)).tobytes() for each in dataclasses.fields(record))

    blind = replace(made, setting=replace(made.setting, doorway=replace(made.setting.doorway, probe=_nothing)))
    listener, logger = _Listener(), logging.getLogger("consenso")
    level = logger.level
    logger.addHandler(listener)
    logger.setLevel(logging.DEBUG)
    try:
        model, progress = execute(blind, shards, watch=watch)
    finally:
        logger.removeHandler(listener)
        logger.setLevel(level)
    seen.append(model.tobytes())
    seen += [repr((e.round, e.name, np.asarray(e.scale).tolist(), e.bound, e.share)).encode() for e in progress.entries]
    return seen + [line.encode() for line in listener.heard]


def non_interference(example: Example, *, draws: int = 1) -> None:
    """Law 3: with every release answered by noise alone, nothing that leaves tells neighbouring data sets apart."""
    for made in settings_of(example):
        # A branch on a private value shows only where it goes both ways: answers of different sizes lead there.
        sizes = [plan_with_noise_scaled(made, factor) for factor in (1.0, 0.1, 0.01)]
        for number, pair in enumerate(_all_pairs(example, draws)):
            one, other = (transcript(sizes[number % len(sizes)], world) for world in (pair.one, pair.other))
            assert one == other, f"something besides the releases depends on the data ({pair.what})"


def messages_are_releases(example: Example) -> None:
    """Law 3, for sums: where all noise is on sums, nothing but sealed contributions is sent.

    A plain field would pass non-interference and still tell something, for instance how many were sampled.
    """
    for made in settings_of(example):
        setting, algorithm = made.setting, made.algorithm
        declared = [r for round_ in range(setting.rounds) for r in algorithm.releases(setting.facts.at(round_))]
        if setting.shape == "peer" or setting.doorway.trust == "local" or any(r.at == "party" for r in declared):
            continue
        execute(replace(made, algorithm=_spying(algorithm)), _shards(example))


def _spying(algorithm: Any) -> Any:
    """The same algorithm, whose messages are looked at."""
    kind = type(algorithm)

    def local(self: Any, *arguments: Any) -> Any:
        state, up = kind.local(self, *arguments)
        for each in dataclasses.fields(up):
            assert isinstance(getattr(up, each.name), Sealed), f"field {each.name!r} of a message is not a release"
        return state, up

    spy: Any = object.__new__(type(kind.__name__, (kind,), {"local": local}))
    spy.__dict__.update(algorithm.__dict__)
    return spy


def _shards(example: Example) -> Shards:
    return Shards.from_parties(example.problem, draw(example.problem, np.random.default_rng(0)))


def measured_sensitivity(example: Example, *, draws: int = 3) -> None:
    """Law 4: between neighbours, with the same past, no released value moves by more than declared."""
    for schedule in example.schedules:  # trust says who sees a value, not what it is
        made = planned(example, schedule=schedule)
        for unit in UNITS:
            for adjacency in ADJACENCIES:
                rng = np.random.default_rng(11)
                problem = replace(example.problem, unit=unit, adjacency=adjacency)
                for number in range(draws):
                    # Answers of different sizes drive the iterates to different places.
                    loud = plan_with_noise_scaled(made, 10.0 ** (number - draws / 2))
                    for pair in pairs(problem, unit, adjacency, rng):
                        _compare(loud, pair, unit, adjacency)


def plan_with_noise_scaled(made: Plan, factor: float) -> Plan:
    """The same plan with every noise multiplier scaled."""
    noise = {name: _scaled(each, factor) for name, each in made.setting.doorway.noise.items()}
    return replace(made, setting=replace(made.setting, doorway=replace(made.setting.doorway, noise=noise)))


def _scaled(noise: Noise, factor: float) -> Noise:
    if isinstance(noise, GaussianNoise | LaplaceNoise | GammaNormNoise):
        return type(noise)(multiplier=noise.scale(1.0, 0) * factor)
    return noise


def _compare(made: Plan, pair: Pair, unit: Unit, adjacency: Adjacency) -> None:
    values: list[list[tuple[Release, int, Array, float]]] = []
    for shards in (pair.one, pair.other):
        seen: list[tuple[Release, int, Array, float]] = []

        def probe(
            round_: int, release: Release, cohort: IntArray, value: Array, bound: float, seen: Any = seen
        ) -> None:
            seen.append((release, round_, value.copy(), bound))

        setting = replace(made.setting, doorway=replace(made.setting.doorway, probe=probe))
        execute(replace(made, setting=setting), shards)
        values.append(seen)
    for (release, round_, one, bound), (_, _, other, _) in zip(*values, strict=True):
        declared = release.bounds.at(unit, adjacency)
        gap = (one - other).sum(axis=0, keepdims=True) if release.at == "sum" else one - other
        moved = np.abs(gap).sum(axis=1) if release.norm == 1 else np.linalg.norm(gap, axis=1)
        allowed = np.max(declared) if release.at == "sum" else np.broadcast_to(declared, moved.shape)
        excess = moved - allowed * bound
        assert (excess <= 1e-9 + 1e-9 * np.abs(moved)).all(), (
            f"{release.name!r} moved by {moved.max():.6g} in round {round_}, declared {np.max(allowed) * bound:.6g} "
            f"({unit}, {adjacency}, {pair.what})"
        )


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
        model, _ = execute(made, shards)
        best = optimum(problem, shards)
        reached = objective(made, shards, model)
        assert reached - best <= example.exact_tolerance * max(1e-3, abs(best)), (
            f"{type(regularizer).__name__}: objective {reached:.12g}, optimum {best:.12g}"
        )


def noise_has_its_law(example: Example, *, runs: int = 40) -> None:
    """Law 8: answers to silenced releases, over their stated scales, follow the stated law (false alarms 1e-5)."""
    for trust in example.trusts:
        standard: dict[str, list[Array]] = {}
        laws: dict[str, Any] = {}
        for seed in range(runs):
            made = planned(example, trust=trust)
            made = replace(
                made,
                setting=replace(
                    made.setting, doorway=replace(made.setting.doorway, sampler=Seeded(seed), probe=_nothing)
                ),
            )
            for name, noise, drawn, scale in _answers(made, example):
                if isinstance(noise, NoNoise):
                    assert not drawn.any(), f"release {name!r} has no noise and was answered with some"
                    continue
                laws[name] = noise
                standard.setdefault(name, []).append((drawn / scale).ravel())
        for name, pieces in standard.items():
            law = "norm" if isinstance(laws[name], GaussianNoise) else "laplace"
            if isinstance(laws[name], GaussianNoise | LaplaceNoise):
                assert stats.kstest(np.concatenate(pieces), law).pvalue > 1e-5, f"noise of {name!r} under {trust}"


def _answers(made: Plan, example: Example) -> Iterator[tuple[str, Noise, Array, Array]]:
    """What the door answers to zeros in the first round, with the scale that the ledger recorded."""
    setting, facts = made.setting, made.setting.facts.at(0)
    largest = largest_bounds(setting, made.algorithm.releases, 0)
    entries: list[Any] = []
    vault = Vault()
    door, _ = open_door(
        setting.doorway, facts, made.algorithm.releases(facts), largest=largest, vault=vault, record=entries.append
    )
    for release in made.algorithm.releases(facts):
        if release.perturbs_objective:
            drawn: Any = door.perturb(release.name, lambda noise: noise)
        else:
            drawn = door(release.name, np.zeros((len(facts.cohort), release.size)))
        if isinstance(drawn, Sealed):
            shares = vault.take(drawn)
            drawn = open_sum(setting.doorway, facts, shares, largest=largest, record=entries.append)[None, :]
            if setting.doorway.trust == "secure-sum":
                # n shares of V/(n - c - 1) each make up a little more than the recorded V.
                drawn = drawn * np.sqrt(setting.doorway.shares / setting.parties)
        scale = np.broadcast_to(entries[-1].scale, (len(drawn),))[:, None]
        yield release.name, setting.doorway.noise_for(release.name), drawn, scale


def _all_pairs(example: Example, draws: int) -> Iterator[Pair]:
    for unit in UNITS:
        for adjacency in ADJACENCIES:
            problem = replace(example.problem, unit=unit, adjacency=adjacency)
            for seed in range(draws):
                yield from pairs(problem, unit, adjacency, np.random.default_rng(seed))


EVERY: tuple[Law, ...] = (
    engines_agree,
    ledger_equals_plan,
    non_interference,
    messages_are_releases,
    measured_sensitivity,
    reaches_optimum,
    noise_has_its_law,
)
