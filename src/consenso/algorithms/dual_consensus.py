"""Consensus ADMM with the noise on the sum and noiseless states (docs/privacy.md, "Clean variants", B and C).

    party i:   v_i  = 2 z - Z + p_i                       Z is common and public, u_i = Z - p_i is ADMM's variable
               g_i  = v_i - prox_{step f_i}(v_i)          clipped to C; it is step times a gradient of f_i
               p_i <- (1 - 2 relaxation) p_i + 2 relaxation g_i
    hub:       G    = noisy sum of g_i
               Z   <- (1 - 2 h) Z + 2 h z                 h = hub_relaxation
               P   <- (1 - 2 h) P + 2 h G / (rate * n)
               z    = prox_{step r}(Z - P)

With everyone in every round and h = relaxation this is ADMM exactly. What is released is the bounded quantity g_i, so
noise does not pile up in any state, and Poisson sampling amplifies although the parties remember (Theorem P).
`released="state"` releases the sum of the p_i instead (variant B, full participation only).

Two levels. `level="party"`: a party is one unit of consensus and solves its own prox. `level="record"`: every record
is; for losses of a margin p_i = (scalar) * row, so a record keeps one number (a vector of class scores for softmax),
the iteration costs one product with the rows and one with their transpose, and the model does not depend on how the
records are spread over parties.

    symbol   code             what it is
    p_i      state.dual       party level: a vector per party; record level: a coefficient per row
    <a_i,Z>  state.centre     record level only: the score of Z, kept so that one product per round is enough
    C        bound            step * Lipschitz constant, or `clip`
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from consenso.algorithms.record_sums import check_rate
from consenso.algorithms.shape import PENALTIES, Example, Source, per_row, require_positive
from consenso.arrays import Array
from consenso.errors import InputError
from consenso.losses import require_lipschitz, require_step
from consenso.privacy.release import Bounds, Release, sum_rounding
from consenso.privacy.releaser import Released, Releaser, clip
from consenso.privacy.run_spec import RunSpec
from consenso.public_facts import PublicFacts
from consenso.schedules import Everyone, FixedSubset, PoissonSubset
from consenso.shards import Cohort
from consenso.subproblems import certify


@dataclass(frozen=True)
class Hub:
    """Public averages and the model."""

    centre: Array  # Z
    dual: Array  # P
    z: Array


@dataclass(frozen=True)
class Down:
    """What every party of a round hears."""

    z: Array
    centre: Array


@dataclass(frozen=True)
class PartyState:
    """A party's own dual average."""

    dual: Array


@dataclass(frozen=True)
class RecordState:
    """A coefficient and a score per row."""

    dual: Array = per_row()
    centre: Array = per_row()


@dataclass(frozen=True)
class Up:
    """A party's share of the sum."""

    dual: Released


@dataclass(frozen=True, kw_only=True)
class DualConsensusADMM:
    """Consensus ADMM that releases sums of bounded dual contributions."""

    sources: ClassVar[tuple[Source, ...]] = (
        Source(paper="000", algorithm="Algorithm 2, sound", names=("variant C", "variant B", "dual consensus ADMM")),
        Source(paper="000", algorithm="Algorithm 3 with secure aggregation, sound"),
    )

    level: Literal["record", "party"] = "record"
    released: Literal["dual", "state"] = "dual"
    step: float = 1.0
    relaxation: float = 0.5
    hub_relaxation: float | None = None
    clip: float | None = None  # party level: shorter than step * Lipschitz constant, or where there is none
    rate: float = 1.0  # record level: Poisson sampling of records, hidden
    tolerance: float = 1e-10

    def __post_init__(self) -> None:
        require_positive(self, step=self.step, tolerance=self.tolerance, clip=self.clip)
        for name, value in (
            ("relaxation", self.relaxation),
            ("hub_relaxation", self.hub_relaxation or self.relaxation),
        ):
            if not 0 < value < 1:
                raise InputError(f"DualConsensusADMM({name}={value}): a relaxation lies in (0, 1); try 0.5.")
        check_rate(self, self.rate)
        if self.level == "record" and self.clip is not None:
            raise InputError(
                "DualConsensusADMM(level='record', clip=...): records are bounded by their loss; drop clip."
            )
        if self.level == "party" and self.rate != 1:
            raise InputError("DualConsensusADMM(level='party', rate=...): sample parties with PoissonSubset(rate).")
        if self.released == "state" and (self.level == "record" or self.clip is not None):
            raise InputError("DualConsensusADMM(released='state'): states are released by parties, unclipped.")

    def check(self, spec: RunSpec) -> None:
        """Refuse losses without a bound, and sampling that the variant does not survive."""
        problem = spec.facts.problem
        one = self.step * (1.0 if self.level == "record" else float(problem.scales.max()))
        require_step(one, problem.row_bound, f"DualConsensusADMM(step={self.step})")
        if self.clip is None:
            require_lipschitz(problem.loss, problem.row_bound, "DualConsensusADMM without clip")
        if self.level == "record" and not isinstance(spec.schedule, Everyone):
            raise InputError(
                "DualConsensusADMM(level='record'): every party takes part in every round; sample records with rate=."
            )
        if self.released == "state" and not isinstance(spec.schedule, Everyone):
            raise InputError("DualConsensusADMM(released='state'): stale states may not be sampled; use Everyone().")

    def releases(self, facts: PublicFacts) -> tuple[Release, ...]:
        """The sum of dual contributions, noise once on the sum."""
        return (
            Release(
                name="dual",
                size=facts.dim,
                at="sum",
                clip=self.clip if self.released == "dual" else None,
                rate=self.rate,
                bounds=self._record_bounds(facts) if self.level == "record" else self._user_bounds(facts),
                why="a contribution is step times a gradient of an L-Lipschitz loss (docs/privacy.md#clean-variants)",
            ),
        )

    def _record_bounds(self, facts: PublicFacts) -> Bounds:
        contribution = self.step * facts.problem.loss.lipschitz(facts.problem.row_bound)
        problem = facts.problem
        return Bounds.of_contributions(
            record=contribution,
            party=contribution * facts.most,
            rounding=sum_rounding(problem.row_cap, contribution * problem.row_cap),
        )

    def _user_bounds(self, facts: PublicFacts) -> Bounds:
        """Section 18 of docs/privacy.md: a private state makes one record count for more than its own part."""
        step, slack = self.step, 2 * self.tolerance
        reach = max(1.0, self.relaxation / (1 - self.relaxation)) if self.released == "state" else 1.0
        user = reach * (step * facts.lipschitz + self.tolerance)
        if self.clip is not None:
            user = np.minimum(user, self.clip)
        record = np.full(len(facts.cohort), np.inf)
        if self.relaxation <= 0.5 and (
            self.clip is None or (self.clip >= step * facts.lipschitz + self.tolerance).all()
        ):
            one = 2 * step * facts.record_prox_lipschitz + slack
            record = one * (1 + step * facts.smoothness)
            if self.released == "dual":
                record = np.minimum(record, one * (1 + 2 * self.relaxation * facts.round))
        return Bounds(
            party_add_remove=user, party_replace_one=2 * user, record_replace_one=np.minimum(record, 2 * user)
        )

    def start(self, facts: PublicFacts) -> Hub:
        zero = np.zeros(facts.dim)
        return Hub(centre=zero, dual=zero, z=facts.problem.regularizer.prox(zero, self.step))

    def enroll(self, facts: PublicFacts, f: Cohort) -> PartyState | RecordState:
        if self.level == "party":
            return PartyState(dual=np.zeros((len(facts.cohort), facts.dim)))
        rows, outputs = f.rows, facts.problem.outputs
        zero = np.zeros(rows) if outputs == 1 else np.zeros((rows, outputs))
        return RecordState(dual=zero, centre=zero)

    def down(self, facts: PublicFacts, hub: Hub) -> Down:
        """The model and the common centre."""
        return Down(z=hub.z, centre=hub.centre)

    def local(self, facts: PublicFacts, down: Down, state: Any, f: Cohort, release: Releaser) -> tuple[Any, Up]:
        """One prox per party, or one per record."""
        return (
            self._records(down, state, f, release) if self.level == "record" else self._party(down, state, f, release)
        )

    def _party(self, down: Down, state: PartyState, f: Cohort, release: Releaser) -> tuple[PartyState, Up]:
        v = 2 * down.z - down.centre
        # The dual is private, and no longer than this.
        reach = max(1.0, self.relaxation / (1 - self.relaxation))
        own = reach * (self.step * f.problem.lipschitz[f.parties] + self.tolerance)
        own = own if self.clip is None else np.minimum(own, reach * self.clip)
        f.check_points(v, self.step, self.tolerance, "DualConsensusADMM", beyond=own)
        v = v + state.dual
        dual = v - certify(f.prox(v, self.step, self.tolerance), self.tolerance, "DualConsensusADMM")
        if self.clip is not None:
            dual = clip(dual, self.clip, 2)
        kept = (1 - 2 * self.relaxation) * state.dual + 2 * self.relaxation * dual
        return PartyState(dual=kept), Up(dual=release("dual", kept if self.released == "state" else dual))

    def _records(self, down: Down, state: RecordState, f: Cohort, release: Releaser) -> tuple[RecordState, Up]:
        norms = f.squared_norms
        offsets = state.dual * (norms if state.dual.ndim == 1 else norms[:, None])
        offsets -= state.centre
        sampled = release.coins("dual", f.sizes) if self.rate < 1 else None
        scores, slopes, pulled = f.prox_pull(down.z, 2.0, offsets, self.step * norms, among=sampled)
        slopes *= self.step
        pulled *= self.step
        kept = _average(state.dual, slopes, self.relaxation)
        if sampled is not None:
            kept = np.where(sampled if kept.ndim == 1 else sampled[:, None], kept, state.dual)
        centre = _average(state.centre, scores, self._hub)
        return RecordState(dual=kept, centre=centre), Up(dual=release("dual", pulled))

    def combine(self, facts: PublicFacts, hub: Hub, total: Up) -> Hub:
        """Average the noisy sum in; divide by public numbers only."""
        h = self._hub
        centre = (1 - 2 * h) * hub.centre + 2 * h * hub.z
        mean = total.dual / self._expect_contributions(facts)
        dual = mean if self.released == "state" else (1 - 2 * h) * hub.dual + 2 * h * mean
        return Hub(centre=centre, dual=dual, z=facts.problem.regularizer.prox(centre - dual, self.step))

    def model(self, facts: PublicFacts, hub: Hub) -> Array:
        return hub.z

    @property
    def _hub(self) -> float:
        return self.relaxation if self.hub_relaxation is None else self.hub_relaxation

    def _expect_contributions(self, facts: PublicFacts) -> float:
        """How many contributions a sum is expected to have: a public number."""
        return self.rate * facts.problem.records if self.level == "record" else facts.expected_parties

    @classmethod
    def example(cls) -> Example:
        """Six parties of five records, logistic loss, records as units of consensus."""
        return Example(
            algorithm=cls(step=0.5),
            schedules=(Everyone(),),
            trusts=("curator", "secure-sum", "local"),
            exact=cls(step=8.0),
            exact_rounds=150,
            regularizers=PENALTIES,
        ).vary(
            {"level": "party"},
            {"level": "party", "released": "state"},
            {"relaxation": 0.3, "hub_relaxation": 0.2, "tolerance": 1e-9},
            {"level": "party", "clip": 0.3, "step": 1.0, "schedules": (Everyone(), PoissonSubset(0.5), FixedSubset(2))},
            {"rate": 0.5},
        )


def _average(before: Array, now: Array, relaxation: float) -> Array:
    """(1 - 2 relaxation) before + 2 relaxation now, in one array besides."""
    average = (1 - 2 * relaxation) * before
    average += now if relaxation == 0.5 else 2 * relaxation * now
    return average
