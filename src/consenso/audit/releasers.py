"""Releasers for the audit: one that notes what was released, and two that answer with what somebody has already heard.

The runs that are attacked use the library's own releaser with its own noise. Beside each of them the attacker follows
what a party would have computed had its data been those of world zero or of world one. There the releaser does not
draw: it answers with the value that was heard, and notes the exact value that this world would have put under the
noise.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from consenso.arrays import Array, IntArray
from consenso.audit.copies import Copied
from consenso.errors import PrivacyError
from consenso.privacy.release import Amount, Release
from consenso.privacy.releaser import Released, Releaser, SumTerm, check_value
from consenso.privacy.run_spec import RunSpec
from consenso.public_facts import PublicFacts


@dataclass(frozen=True, eq=False)
class ReleaseCall:
    """One use of the releaser by a cohort: what was exact, what came back, how loud the noise was."""

    release: Release
    repetition: int
    exact: Array  # (rows, size), clipped; for a perturbed objective the minimiser
    scale: Array  # (rows,)
    answer: Array | None  # (rows, size); None where the value is a term of a sum
    curvature: Array | None = None  # of a perturbed objective as a follower sees it, (rows,)

    def at(self, rows: IntArray | slice) -> ReleaseCall:
        """The same of some rows."""
        answer = None if self.answer is None else self.answer[rows]
        return replace(self, exact=self.exact[rows], scale=self.scale[rows], answer=answer)


class _Noting:
    """What the three releasers have in common: the declarations, and the list of calls."""

    def __init__(
        self, spec: RunSpec, facts: PublicFacts, releases: tuple[Release, ...], largest: dict[str, float]
    ) -> None:
        self.calls: list[ReleaseCall] = []
        self._spec, self._facts, self._largest = spec, facts, largest
        self._declared = {release.name: release for release in releases}

    def _enter(self, name: str) -> tuple[Release, int]:
        return self._declared[name], sum(call.release.name == name for call in self.calls)

    def _scale(self, release: Release, bound: float, share: float) -> Array:
        sensitivity: Amount = self._spec.sensitivity(release, self._facts, self._largest[release.name])
        scale = self._spec.noise_for(release.name).scale(sensitivity * bound / np.sqrt(share), self._facts.round)
        return np.array(np.broadcast_to(scale, (len(self._facts.cohort),)))


class RecordingReleaser(_Noting):
    """The library's releaser, with a note of every use."""

    def __init__(
        self,
        inner: Releaser,
        spec: RunSpec,
        facts: PublicFacts,
        releases: tuple[Release, ...],
        largest: dict[str, float],
    ) -> None:
        super().__init__(spec, facts, releases, largest)
        self.coins_drawn: dict[str, list[NDArray[np.bool_]]] = {}
        self._inner = inner

    def __call__(self, name: str, value: Array, *, bound: float = 1.0, share: float = 1.0) -> Released:
        if name not in self._declared:
            return self._inner(name, value, bound=bound, share=share)  # which refuses
        release, repetition = self._enter(name)
        exact = np.array(check_value(release, value, len(self._facts.cohort), bound, share))
        answer = self._inner(name, value, bound=bound, share=share)
        heard = None if isinstance(answer, SumTerm) else np.array(answer)
        self.calls.append(ReleaseCall(release, repetition, exact, self._scale(release, bound, share), heard))
        return answer

    def perturb(self, name: str, solve: Callable[[Array], Array]) -> Array:
        minimiser = self._inner.perturb(name, solve)
        release, repetition = self._enter(name)
        self.calls.append(
            ReleaseCall(release, repetition, np.array(minimiser), self._scale(release, 1.0, 1.0), np.array(minimiser))
        )
        return minimiser

    def coins(self, name: str, counts: IntArray) -> NDArray[np.bool_]:
        drawn = self._inner.coins(name, counts)
        self.coins_drawn.setdefault(name, []).append(drawn)
        return drawn


class Echo(_Noting):
    """Answers a party of some world with what was heard of it in the run.

    `rows` are its places in the run's cohort, -1 where it took no part. `coins` answers for hidden coins.
    """

    def __init__(
        self,
        heard: list[ReleaseCall],
        rows: IntArray,
        coins: Callable[[str, int, IntArray], NDArray[np.bool_]],
        spec: RunSpec,
        facts: PublicFacts,
        releases: tuple[Release, ...],
        largest: dict[str, float],
    ) -> None:
        super().__init__(spec, facts, releases, largest)
        self._heard, self._rows, self._coins = heard, rows, coins
        self._tosses = 0

    def __call__(self, name: str, value: Array, *, bound: float = 1.0, share: float = 1.0) -> Released:
        """What was heard; the value is noted."""
        release, repetition = self._enter(name)
        exact = np.array(check_value(release, value, len(self._facts.cohort), bound, share))
        answer = self._answer(name)
        self.calls.append(ReleaseCall(release, repetition, exact, self._scale(release, bound, share), answer))
        term = SumTerm(release, 0, repetition, exact, bound, share)
        return term if answer is None else answer.copy()  # type: ignore[return-value]

    def perturb(self, name: str, solve: Callable[[Array], Array]) -> Array:
        """The minimiser of the run; noted are the one without noise and how stiff the objective is around it."""
        release, repetition = self._enter(name)
        scale, size = self._scale(release, 1.0, 1.0), release.size
        # Solved in place of the party's rows only: every row has its own noise.
        centre = np.array(solve(np.zeros((len(scale), size))))
        push = np.zeros((len(scale), size))
        push[:, 0] = scale
        moved = np.array(solve(push)) - centre
        curvature = scale / np.maximum(np.linalg.norm(moved, axis=1), np.finfo(float).tiny)
        answer = self._answer(name)
        assert answer is not None
        self.calls.append(ReleaseCall(release, repetition, centre, scale, answer, curvature))
        return answer.copy()

    def coins(self, name: str, counts: IntArray) -> NDArray[np.bool_]:
        self._tosses += 1
        return self._coins(name, self._tosses - 1, counts)

    def _answer(self, name: str) -> Array | None:
        index = len(self.calls)
        if index >= len(self._heard) or self._heard[index].release.name != name:
            raise PrivacyError(
                f"release({name!r}): with other data the party releases other things in another order, which is a "
                "message."
            )
        heard = self._heard[index].answer
        if heard is None:
            return None
        return np.array(heard[self._rows])


class Guess(_Noting):
    """Answers all parties of some world when only sums were heard: the noise that the sum implies, spread evenly.

    Whoever knows some parties' noise (`known`, rows of the cohort) uses it for them. With `deviations` the attacker
    also knows by how much each party's noise differs from the mean, as the adversary of Theorem F's proof does.
    """

    def __init__(
        self,
        heard: list[ReleaseCall],
        copies: Copied,
        known: NDArray[np.bool_],
        deviations: bool,
        spec: RunSpec,
        facts: PublicFacts,
        releases: tuple[Release, ...],
        largest: dict[str, float],
    ) -> None:
        super().__init__(spec, facts, releases, largest)
        self.implied: list[tuple[Array, Array]] = []  # by call: the noise on the sum and its variance, (trials, ...)
        self._heard, self._copies, self._known, self._deviations = heard, copies, known, deviations

    def __call__(self, name: str, value: Array, *, bound: float = 1.0, share: float = 1.0) -> Array:
        """The value plus the noise that it must have had."""
        release, repetition = self._enter(name)
        exact = np.array(check_value(release, value, len(self._facts.cohort), bound, share))
        run = self._heard[len(self.calls)]
        assert run.answer is not None
        scale = self._scale(release, bound, share)
        drawn = run.answer - run.exact
        known = np.where(self._known[:, None], drawn, 0.0)
        weights = np.where(self._known, 0.0, scale**2)
        variance = self._copies.sums(weights[:, None])[:, 0]
        implied = self._copies.sums(run.answer) - self._copies.sums(exact + known)
        shares = weights / np.maximum(self._copies.repeat_per_row(variance[:, None])[:, 0], np.finfo(float).tiny)
        if self._deviations:
            mean = self._copies.sums(np.where(self._known[:, None], 0.0, drawn))
            known = known + np.where(
                self._known[:, None], 0.0, drawn - shares[:, None] * self._copies.repeat_per_row(mean)
            )
        self.implied.append((implied, variance))
        self.calls.append(ReleaseCall(release, repetition, exact, scale, run.answer))
        return exact + known + shares[:, None] * self._copies.repeat_per_row(implied)

    def perturb(self, name: str, solve: Callable[[Array], Array]) -> Array:
        """No sum tells what noise was inside a minimisation."""
        raise PrivacyError(f"release.perturb({name!r}): noise inside a minimisation cannot be guessed from a sum.")

    def coins(self, name: str, counts: IntArray) -> NDArray[np.bool_]:
        """All of them: hidden coins are treated where noise is on sums."""
        return np.ones(int(counts.sum()), dtype=np.bool_)
