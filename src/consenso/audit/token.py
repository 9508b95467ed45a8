"""What a party on a walk learns from the token alone, when parties keep states: exact for linear losses.

Algorithm 4 of Cyffers, Bellet and Basu stores at every visited party what the token carried, and gives it out again
later. With linear losses, no regularizer and a path that the observer can tell (the others' gradients lie on other
coordinates, far above the noise), the token is linear in the noise of the visits and in the attacked party's gradient:

    visit of l:   D = 2 relaxation (z - u_l - step g_l + noise),     u_l <- u_l + D,     z <- z + D / n

so what the observer receives is Gaussian, and the likelihood ratio is that of its mean against its covariance. The own
noise of the observer is known to it.
"""

from __future__ import annotations

import numpy as np

from consenso.algorithms.consensus import ConsensusADMM
from consenso.arrays import Array, IntArray
from consenso.audit.neighbours import Neighbours
from consenso.audit.trials import Scene, Trials
from consenso.errors import InputError
from consenso.privacy.run_spec import PrivacyQuery
from consenso.shards import Shards

RIDGE = 1e-9


class TokenScore:
    """The likelihood ratio of the token at an observer's own visits, along the coordinate of the attacked gradient."""

    def __init__(self, run: Trials, pair: Neighbours, query: PrivacyQuery, insiders: frozenset[int]) -> None:
        algorithm = run.plan.algorithm
        if not isinstance(algorithm, ConsensusADMM):
            raise InputError("audit(kind='token'): the token of ConsensusADMM on a walk is followed; use another kind.")
        self._run, self._pair, self._party, self._insiders = run, pair, query.party, insiders
        self._relaxation, self._rounds = algorithm.relaxation, run.plan.rounds
        # Coefficients of z and of each state in the noise of every round and, last, in the attacked gradient.
        self._z = np.zeros((run.count, self._rounds + 1))
        self._u = np.zeros((run.count, run.parties, self._rounds + 1))
        self._own = np.zeros((run.count, self._rounds))  # noise that the observer drew itself
        self._seen: list[tuple[IntArray, Array, Array]] = []  # trials, the token there, its coefficients
        self._scale = 1.0

    def see(self, scene: Scene) -> None:
        """A visit in every trial."""
        visited, round_ = self._run.party_of_row[scene.rows], scene.facts.round
        everyone = np.arange(self._run.count)
        inside = np.isin(visited, list(self._insiders))
        held = np.flatnonzero(inside)
        self._seen.append((held, scene.down.z[held, 0], self._z[held].copy()))
        (call,) = scene.calls
        assert call.answer is not None
        self._scale = float(call.scale[0])
        self._own[held, round_] = (call.answer - call.exact)[held, 0]
        moved = self._z - self._u[everyone, visited]
        moved[:, round_] += 1.0
        moved[visited == self._party, -1] -= 1.0
        moved *= 2 * self._relaxation
        self._u[everyone, visited] += moved
        self._z = self._z + moved / self._run.parties

    def finish(self, models: Array) -> Array:
        """Log likelihood ratio, (trials,)."""
        trials, rounds = self._run.count, self._rounds
        seen, signal = np.zeros((trials, rounds)), np.zeros((trials, rounds))
        noise = np.zeros((trials, rounds, rounds))
        for index, (held, token, coefficients) in enumerate(self._seen):
            known = np.einsum("ij,ij->i", coefficients[:, :-1], self._own[held])
            seen[held, index] = token - known
            signal[held, index] = coefficients[:, -1]
            # Own noise is not noise to whoever drew it.
            noise[held, index] = np.where(self._own[held] != 0, 0.0, coefficients[:, :-1]) * self._scale
        covariance = noise @ noise.transpose(0, 2, 1) + RIDGE * self._scale**2 * np.eye(rounds)
        weights = np.linalg.solve(covariance, signal[:, :, None])[:, :, 0]
        zero, one = (self._pull(world) for world in (self._pair.zero, self._pair.one))
        middle = seen - signal * (zero + one) / 2
        ratio: Array = (one - zero) * np.einsum("ij,ij->i", weights, middle)
        return ratio

    def _pull(self, world: Shards) -> float:
        """Step times the attacked party's gradient along the first coordinate."""
        plan = self._run.plan
        return float(plan.algorithm.step * world.cohort(self._pair.party).gradient(np.zeros(plan.problem.dim))[0, 0])
