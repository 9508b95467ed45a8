"""ADMM with general matrices, by a trusted curator (Cyffers, Bellet and Basu 2023, Algorithm 5).

    min f(x) + g(z)   subject to   A x + B z = c

    hub:       z  = argmin_z g(z) + |B z + u|^2 / (2 step),              v = c - 2 B z - u
    curator:   x  = argmin_x f(x) + |A x - v|^2 / (2 step),              y = A x + noise
    hub:       u <- u + 2 relaxation (y + B z - c)

    paper    code          what it is
    A, B, c  left, right,  public; dense, sparse or LinearOperator; without `right` B = -A and z is a copy of x
             constant
    f        the loss      the only function that sees data
    g        g             of z; by default the problem's regularizer, for which z must be a copy of x
    u        hub.u         the dual variable, the only state; it is public once y is
    gamma    step          parameter really used in both argmins
    lambda   relaxation
    eta      2 * noise     the paper adds lambda*eta to u, this file 2*relaxation*noise

It is the Douglas-Rachford operator of two infimal post-compositions. The model is
the x that A x = c - B z has, computed from the public z.

Remarks. A must be injective: otherwise one record moves A x without bound. The sensitivity of A x is 2 L step/(n w), w
the smallest singular value of A; the printed Theorem 7 multiplies by the norm of A, which is too small when that norm
is below 1; composing the releases is its corrected form, tolerance included. B must be injective as well, so that z is
determined. Everything is done for the mean over all records at once, so the data are one party's.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from consenso.algorithms.shape import PENALTIES, Example, Source, require_positive, small_problem
from consenso.arrays import Array
from consenso.errors import InputError
from consenso.losses import require_lipschitz, require_smooth
from consenso.operators import LinearMap, certify_argmin, require_injective
from consenso.privacy.release import Bounds, Release
from consenso.privacy.releaser import Released, Releaser
from consenso.privacy.run_spec import RunSpec
from consenso.public_facts import PublicFacts
from consenso.regularizers import L2, Ball, NoPenalty, Regularizer
from consenso.schedules import Everyone
from consenso.shards import Cohort


@dataclass(frozen=True)
class Hub:
    """The dual variable, and the z that follows from it."""

    u: Array
    z: Array


@dataclass(frozen=True)
class Down:
    """Where the curator fits A x."""

    point: Array


@dataclass(frozen=True)
class State:
    """The last x, from which the next one is found faster."""

    x: Array


@dataclass(frozen=True)
class Up:
    """A x."""

    image: Released


@dataclass(frozen=True, kw_only=True)
class GeneralADMM:
    """Private ADMM for min f(x) + g(z), A x + B z = c; `left`, `right`, `constant` are A, B, c."""

    sources: ClassVar[tuple[Source, ...]] = (
        Source(paper="000", algorithm="Algorithm 5", names=("000-5", "general private ADMM", "general ADMM")),
    )

    left: Any
    right: Any | None = None
    constant: tuple[float, ...] | None = None
    g: Regularizer | None = None
    step: float = 1.0
    relaxation: float = 0.5
    tolerance: float = 1e-9

    def __post_init__(self) -> None:
        require_positive(self, step=self.step, tolerance=self.tolerance)
        if not 0 < self.relaxation < 1:
            raise InputError(f"GeneralADMM(relaxation={self.relaxation}): the relaxation lies in (0, 1); try 0.5.")
        left = self.left if isinstance(self.left, LinearMap) else LinearMap(self.left)
        right = self.right
        if right is not None and not isinstance(right, LinearMap):
            right = LinearMap(right)
        constant = None if self.constant is None else tuple(float(entry) for entry in self.constant)
        for name, value in (("left", left), ("right", right), ("constant", constant)):
            object.__setattr__(self, name, value)
        rows = {left.rows, left.rows if right is None else right.rows, left.rows if constant is None else len(constant)}
        if len(rows) > 1:
            raise InputError(
                "GeneralADMM(left=..., right=..., constant=...): both matrices have as many rows as the constant has "
                f"entries, and {sorted(rows)} were given."
            )
        if right is None and self.g is not None:
            raise InputError(
                "GeneralADMM(g=..., right=None): without `right` z is a copy of x, and g is the problem's regularizer; "
                "leave g out, or give `right`."
            )
        if right is None and constant is not None and any(constant):
            raise InputError("GeneralADMM(constant=..., right=None): A x = A z has no constant; leave it out.")

    def check(self, spec: RunSpec) -> None:
        """One party, matrices that fit and are injective, a loss with the constants that the bound needs."""
        problem = spec.facts.problem
        if spec.parties > 1:
            raise InputError(
                f"GeneralADMM: the x-step is one minimisation over all data, and there are {spec.parties} parties; "
                "put their records into one, or use ConsensusADMM."
            )
        if not isinstance(spec.schedule, Everyone):
            raise InputError("GeneralADMM(schedule=...): the one party acts in every round; use Everyone().")
        if self.left.columns != problem.dim:
            raise InputError(
                f"GeneralADMM(left=... with {self.left.columns} columns): one for each of the {problem.dim} "
                "coefficients of the model is needed."
            )
        require_injective(self._right, "GeneralADMM(right=...)")
        require_lipschitz(problem.loss, problem.row_bound, "GeneralADMM")
        if self.left.squared_scale is None:
            require_smooth(problem.loss, problem.row_bound, "GeneralADMM with A'A no multiple of the identity")
        if self.right is not None and self.g is None and not isinstance(problem.regularizer, NoPenalty):
            raise InputError(
                "GeneralADMM(right=..., g=None): with a matrix of its own z is not the model; give its function as g "
                "and let the problem have NoPenalty()."
            )
        if self.g is not None and not isinstance(problem.regularizer, NoPenalty):
            raise InputError(
                f"GeneralADMM(g=...): g takes the place of the problem's regularizer {problem.regularizer!r}; let the "
                "problem have NoPenalty()."
            )

    def releases(self, facts: PublicFacts) -> tuple[Release, ...]:
        """A x."""
        return (
            Release(
                name="image",
                size=self.left.rows,
                at="sum",
                bounds=Bounds(
                    record_add_remove=self._bound_move(facts.record_prox_lipschitz),
                    record_replace_one=self._bound_move(2 * facts.record_prox_lipschitz),
                    party_add_remove=self._bound_move(facts.lipschitz),
                    party_replace_one=self._bound_move(2 * facts.lipschitz),
                ),
                why="A x moves by at most step * change of the gradient / smallest singular value "
                "(docs/privacy.md#general-splitting)",
            ),
        )

    def _bound_move(self, gap: Array) -> Array:
        """How far A x moves when the gradient of f does by `gap`; both worlds may be off by the tolerance."""
        moved: Array = self.step * gap / require_injective(self.left, "GeneralADMM(left=...)") + 2 * self.tolerance
        return moved

    def start(self, facts: PublicFacts) -> Hub:
        zero = np.zeros(self.left.rows)
        return Hub(u=zero, z=self._z(facts, zero))

    def enroll(self, facts: PublicFacts, f: Cohort) -> State:
        """Zero, from which the first search starts."""
        return State(x=np.zeros((len(facts.cohort), facts.dim)))

    def down(self, facts: PublicFacts, hub: Hub) -> Down:
        """The point c - 2 B z - u."""
        return Down(point=self._constant - 2 * self._right.apply(hub.z) - hub.u)

    def local(self, facts: PublicFacts, down: Down, state: State, f: Cohort, release: Releaser) -> tuple[State, Up]:
        x = certify_argmin(
            f,
            self.left,
            down.point,
            self.step,
            start=state.x[0],
            tolerance=self.tolerance,
            who="GeneralADMM",
        )
        return State(x=x[None]), Up(image=release("image", self.left.apply(x)[None]))

    def combine(self, facts: PublicFacts, hub: Hub, total: Up) -> Hub:
        """The dual step, then the next z."""
        residual = total.image + self._right.apply(hub.z) - self._constant
        u = hub.u + 2 * self.relaxation * residual
        return Hub(u=u, z=self._z(facts, u))

    def model(self, facts: PublicFacts, hub: Hub) -> Array:
        """The x with A x = c - B z: z itself where it is a copy of x."""
        if self.right is None:
            return hub.z
        x: Array = self.left.solve(self._constant - self._right.apply(hub.z))
        return x

    def _z(self, facts: PublicFacts, u: Array) -> Array:
        return self._right.argmin(self.g or facts.problem.regularizer, -u, self.step)

    @property
    def _right(self) -> LinearMap:
        right: LinearMap = self.left.opposite if self.right is None else self.right
        return right

    @property
    def _constant(self) -> Array:
        return np.zeros(self.left.rows) if self.constant is None else np.array(self.constant)

    @classmethod
    def example(cls) -> Example:
        """Thirty records of one curator, logistic loss, a copy of x seen through a matrix with four rows."""
        left = np.array([[0.5, 0.1, 0.0], [0.0, 0.4, -0.1], [0.1, 0.0, 0.6], [0.1, 0.1, 0.1]])
        return Example(
            algorithm=cls(left=left, step=0.2),
            problem=small_problem(sizes=np.array([30])),
            trusts=("curator", "local"),
            exact=cls(left=left, step=2.0),
            exact_rounds=150,
            regularizers=(*PENALTIES, Ball(radius=0.7)),
        ).vary(
            {"relaxation": 0.3, "step": 1.0, "tolerance": 1e-8},
            {
                "left": 2 * np.eye(3),
                "right": -np.eye(3),
                "constant": (0.1, 0.0, 0.0),
                "g": L2(strength=0.1),
                "regularizer": NoPenalty(),
            },
        )
