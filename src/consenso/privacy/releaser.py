"""The releaser through which a release leaves a party.

While an algorithm runs it is handed a `Releaser`, the only object that turns an exact value into one that may be sent,
kept by the hub or shown: the releaser clips the value, adds the noise and records the use, from the same declaration
that the plan was made of.

What leaves has a type of its own, `Released`: message fields that come from rows are annotated with it, and nothing but
this module makes it, so that mypy refuses a message with a value that no releaser has seen. Types do not follow a
computation: `postprocess` and `declare_public` take the author's word for where a value comes from, and so does an
operation in place.

An algorithm is trusted code. It is handed exact values beside the releaser, and Python lets it read what the releaser
was made with (its sampler, its declarations). The releaser keeps an honest definition from forgetting noise or a
charge; it stops nobody who means to send something else. Law 3 of `consenso.testing` finds a definition that does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NewType, Protocol

import numpy as np
from numpy.typing import NDArray

from consenso.arrays import Array, IntArray
from consenso.clipping import shorten
from consenso.errors import StepError, UndeclaredReleaseError, write_count
from consenso.privacy.noise import Noise
from consenso.privacy.release import COIN_STREAM, HUB, NOISE_STREAM, Amount, Release
from consenso.privacy.run_spec import RunSpec
from consenso.privacy.samplers import Key, Sampler
from consenso.public_facts import PublicFacts

# Values that may be sent: they went through a releaser, or depend on rows through such values only.
Released = NewType("Released", NDArray[np.float64])


def postprocess(value: Array, *sources: Released) -> Released:
    """State that a value was computed from `sources`, earlier messages and public facts alone: it may leave too.

    It costs nothing. That no row has entered it beside the sources is for the author to see, and for law 3 to test.
    """
    assert sources, "without a source a value is public: declare_public"
    return Released(value)


def declare_public(value: Array) -> Released:
    """State that a value was computed from earlier messages and public facts alone, without a release of this step."""
    return Released(value)


@dataclass(frozen=True)
class ReleaseRecord:
    """One use of the releaser, as the ledger of a run keeps it: public numbers only."""

    round: int
    name: str
    cohort: IntArray = field(compare=False)
    scale: Amount  # noise scale that was drawn
    bound: float  # 1, or the bound that an adaptive release named
    share: float  # 1, or the part of the cost that this use is
    in_parts: bool = field(default=False, compare=False)  # whether it is one of the parts of a cost


Record = Callable[[ReleaseRecord], None]  # who keeps the ledger of a run


class SumTerm:
    """What a cohort adds to a sum, (parties, size), on its way there in a message, with its declaration.

    It is exact, or has a share of the noise, until the engine opens the sum: nothing here prints or compares the value.
    """

    __slots__ = ("bound", "index", "release", "repetition", "share", "value")

    def __init__(self, release: Release, index: int, repetition: int, value: Array, bound: float, share: float) -> None:
        self.release, self.index, self.repetition = release, index, repetition
        self.value, self.bound, self.share = value, bound, share

    def __repr__(self) -> str:
        return f"SumTerm({self.release.name!r}, {' x '.join(map(str, self.value.shape))} values)"

    def change(self, value: Array, bound: float | None = None, share: float | None = None) -> SumTerm:
        """The same part of a sum with another value, bound and share."""
        bound, share = self.bound if bound is None else bound, self.share if share is None else share
        return SumTerm(self.release, self.index, self.repetition, value, bound, share)


class Releaser(Protocol):
    """The only way out of a party."""

    def __call__(self, name: str, value: Array, *, bound: float = 1.0, share: float = 1.0) -> Released:
        """Release `value` (parties, size): clipped, perturbed, recorded.

        A release whose noise belongs on the sum may come back as a `SumTerm`: put it into the message as it is.
        """
        ...

    def perturb(self, name: str, solve: Callable[[Array], Array]) -> Array:
        """Objective perturbation: `solve` gets the noise (parties, size) and returns the perturbed minimiser."""
        ...

    def coins(self, name: str, counts: IntArray) -> NDArray[np.bool_]:
        """Hidden coins of the records that enter release `name`: true with its rate, one per row of the cohort."""
        ...


def open_releaser(
    spec: RunSpec,
    facts: PublicFacts,
    releases: Sequence[Release],
    *,
    largest: Mapping[str, float],
    record: Record,
) -> tuple[Releaser, Callable[[], None]]:
    """A releaser for one step of one cohort, and the function that closes it and checks that nothing is missing."""
    declared = {release.name: (index, release) for index, release in enumerate(releases)}
    used = dict.fromkeys(declared, 0)

    def enter(name: str) -> tuple[int, Release, int]:
        if name not in declared:
            raise UndeclaredReleaseError(
                f"release({name!r}): this release is not declared for round {facts.round}; declared: "
                f"{sorted(declared)}."
            )
        index, release = declared[name]
        if used[name] == release.times:
            raise UndeclaredReleaseError(
                f"release({name!r}): declared {write_count(release.times, 'time')} per round, and this is one more; "
                "declare it or do not release it."
            )
        used[name] += 1
        return index, release, used[name] - 1

    def key(index: int, repetition: int, stream: int = NOISE_STREAM) -> Key:
        return Key(parties=facts.cohort, round=facts.round, release=index, repetition=repetition, stream=stream)

    def add_noise(release: Release, value: Array, bound: float, share: float, at: Key, *, split: int = 1) -> Array:
        noise = spec.noise_for(release.name)
        sensitivity, entry = _price(spec, facts, release, largest[release.name], bound, share)
        record(entry)
        return (noise if split == 1 else noise.split(split)).sample(value, sensitivity, facts.round, at, spec.sampler)

    class _StepReleaser:  # of closures, so that an algorithm can replace nothing of it
        __slots__ = ()

        def __call__(self, name: str, value: Array, *, bound: float = 1.0, share: float = 1.0) -> Released | SumTerm:
            index, release, repetition = enter(name)
            value = check_value(release, value, len(facts.cohort), bound, share)
            if spec.probe is not None:
                spec.probe(facts.round, release, facts.cohort, value, bound)
                value = np.zeros_like(value)
            if release.at == "party" or spec.mode.noise_on_messages:
                return Released(add_noise(release, value, bound, share, key(index, repetition)))
            if spec.mode.sums_in_steps:
                value = add_noise(release, value, bound, share, key(index, repetition), split=spec.shares)
            return SumTerm(release, index, repetition, value, bound, share)

        def perturb(self, name: str, solve: Callable[[Array], Array]) -> Array:
            index, release, repetition = enter(name)
            if not release.perturbs_objective:
                raise UndeclaredReleaseError(
                    f"release.perturb({name!r}): declared as an additive release; call releaser(...)."
                )
            zero = np.zeros((len(facts.cohort), release.size))
            noise = add_noise(release, zero, 1.0, 1.0, key(index, repetition))
            return solve(noise) if spec.probe is None else noise

        def coins(self, name: str, counts: IntArray) -> NDArray[np.bool_]:
            index, release = declared[name]
            uniform = spec.sampler.uniform(key(index, used[name], COIN_STREAM), int(counts.max(initial=0)))
            inside = np.arange(uniform.shape[1])[None, :] < counts[:, None]
            # Rounded down to the 53 bits of the coins: a theorem on sampling at a rate covers smaller rates only.
            heads: NDArray[np.bool_] = uniform[inside] < np.floor(release.rate * 2.0**53) * 2.0**-53
            return heads

    def close() -> None:
        for name, (_, release) in declared.items():
            if used[name] != release.times and not release.parts:
                raise UndeclaredReleaseError(
                    f"Release {name!r} was declared {write_count(release.times, 'time')} in round {facts.round} and "
                    f"made {write_count(used[name], 'time')}; a release must not depend on the data: make it or do not "
                    "declare it."
                )

    return _StepReleaser(), close  # type: ignore[return-value]


def release_alone(
    release: Release, value: Array, noise: Noise, bound: Amount, round_: int, sampler: Sampler, record: Record
) -> Released:
    """A release that is no part of a run, (1, size), by whoever holds all records; noise is scaled with the bound."""
    value, alone = check_value(release, value, 1, 1.0, 1.0), np.zeros(1, dtype=np.int64)
    record(ReleaseRecord(round_, release.name, alone, noise.scale(bound, round_), 1.0, 1.0))
    key = Key(parties=alone, round=round_, release=0, repetition=0, stream=NOISE_STREAM)
    return Released(noise.sample(value, bound, round_, key, sampler))


def _price(
    spec: RunSpec, facts: PublicFacts, release: Release, largest: float, bound: float, share: float
) -> tuple[Amount, ReleaseRecord]:
    """The sensitivity that the noise of a use of the releaser is scaled with, and the entry that says so."""
    sensitivity = spec.sensitivity(release, facts, largest) * bound / np.sqrt(share)
    scale = spec.noise_for(release.name).scale(sensitivity, facts.round)
    return sensitivity, ReleaseRecord(facts.round, release.name, facts.cohort, scale, bound, share, release.parts)


@dataclass(frozen=True, eq=False)
class CompiledRelease:
    """The only use of the releaser in a step that is compiled together with its noise, under local trust."""

    key: Key  # of the noise
    clip: float  # longest value in the 2-norm
    entry: ReleaseRecord  # its noise scales; for the ledger, once the step is done

    def sum(self, totals: Array) -> Released:
        """What the compiled step has drawn its noise for, summed over parties."""
        return Released(totals)


def prepare_compiled(
    spec: RunSpec, facts: PublicFacts, releases: Sequence[Release], *, largest: Mapping[str, float]
) -> CompiledRelease:
    """What the releaser would do in a step that makes one release of one vector; refuses what a compiled step cannot
    do.
    """
    release = releases[0]
    if (
        len(releases) != 1
        or (release.times, release.norm, release.at, release.rate) != (1, 2, "party", 1.0)
        or release.adaptive
        or release.parts
        or release.perturbs_objective
        or not spec.mode.noise_on_messages
        or spec.probe is not None
    ):
        raise UndeclaredReleaseError(
            f"Release {release.name!r}: a compiled step makes one plain release a round, under local trust; "
            "take the step through its releaser."
        )
    _, entry = _price(spec, facts, release, largest[release.name], 1.0, 1.0)
    key = Key(parties=facts.cohort, round=facts.round, release=0, repetition=0, stream=NOISE_STREAM)
    return CompiledRelease(key, np.inf if release.clip is None else float(release.clip), entry)


def check_value(release: Release, value: Array, parties: int, bound: float, share: float) -> Array:
    """The value as it may enter the noise: of the declared shape, finite, clipped."""
    if value.shape != (parties, release.size):
        raise UndeclaredReleaseError(
            f"release({release.name!r}): declared as {release.size} numbers for each of {parties} parties, "
            f"got shape {value.shape}."
        )
    if not release.adaptive and bound != 1.0:
        raise UndeclaredReleaseError(f"release({release.name!r}, bound=...): only an adaptive release names its bound.")
    if not release.parts and share != 1.0:
        raise UndeclaredReleaseError(f"release({release.name!r}, share=...): the release was not declared in parts.")
    if not (np.isfinite(bound) and bound > 0 and 0 < share <= 1):
        raise UndeclaredReleaseError(f"release({release.name!r}): a bound is positive and a share lies in (0, 1].")
    if not np.isfinite(value).all():
        raise StepError(f"release({release.name!r}): a value that is not finite cannot be released; check the step.")
    if release.clip is None:
        return value
    return clip(value, release.clip * bound, release.norm)


def clip(value: Array, bound: float, norm: int) -> Array:
    """Each row scaled down to the bound where it is longer."""
    lengths = np.abs(value).sum(axis=1) if norm == 1 else np.sqrt(np.einsum("ij,ij->i", value, value))
    factors = shorten(lengths, bound)
    return value if factors.min(initial=1.0) == 1.0 else value * factors[:, None]


def open_sum(
    spec: RunSpec,
    facts: PublicFacts,
    contribution: SumTerm,
    *,
    largest: Mapping[str, float],
    record: Record,
) -> Array:
    """The sum of all contributions, (size,). Under a trusted curator this is where its noise is added."""
    release, bound, share = contribution.release, contribution.bound, contribution.share
    total: Array = contribution.value.sum(axis=0)
    if not spec.mode.noise_at_hub:
        return total
    noise = spec.noise_for(release.name)
    sensitivity, entry = _price(spec, facts, release, largest[release.name], bound, share)
    record(entry)
    at = Key(
        parties=np.array([HUB], dtype=np.int64),
        round=facts.round,
        release=contribution.index,
        repetition=contribution.repetition,
    )
    heard: Array = noise.sample(total[None, :], sensitivity, facts.round, at, spec.sampler)[0]
    return heard


def silent_share(spec: RunSpec, facts: PublicFacts, like: SumTerm, largest: Mapping[str, float]) -> Array:
    """What parties that were not sampled add to a secure sum: zero plus their noise share, (parties, size).

    Without it the variance of the sum would tell how many were sampled.
    """
    sensitivity = spec.sensitivity(like.release, facts, largest[like.release.name])
    at = Key(parties=facts.cohort, round=facts.round, release=like.index, repetition=like.repetition)
    share = spec.noise_for(like.release.name).split(spec.shares)
    zero = np.zeros((len(facts.cohort), like.release.size))
    return share.sample(zero, sensitivity * like.bound / np.sqrt(like.share), facts.round, at, spec.sampler)
