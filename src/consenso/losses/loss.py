"""What a loss is: a convex function of a margin, with its prox and the constants that privacy rests on.

A record (a, b) has the loss f(x) = phi(<a, x>, b), or phi(a W, b) for several outputs, with W = x as a matrix of shape
(features, outputs). Its gradient is the outer product of a and the slope phi', so that every constant of f is a
constant of phi times a power of the bound on |a|.

`Loss` is a protocol. A class that inherits from it gives the primitives and gets the derived methods, each of which
is stated once, here.
"""

from __future__ import annotations

from typing import Any, ClassVar, Literal, Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from consenso.arrays import Array, IntArray
from consenso.conventions import Adjacency as Adjacency
from consenso.errors import InputError, PreconditionError
from consenso.losses.checks import check_bound, check_reals, check_signs

Kind = Literal["sign", "class", "real"]
Targets: TypeAlias = Array | IntArray


@runtime_checkable
class Loss(Protocol):
    """A convex loss phi(score, target), batched over n records: scores (n,), or (n, outputs) for several outputs.

    `targets` says what targets (n,) are: "sign" -1.0 or +1.0, "class" int64 in 0..outputs-1, "real" finite floats.
    """

    name: ClassVar[str]
    targets: ClassVar[Kind]
    #: Whether the sigmoid or the softmax of scores are probabilities of classes.
    is_likelihood: ClassVar[bool] = False

    @property
    def outputs(self) -> int: ...

    @property
    def slope_bound(self) -> float:
        """The supremum of |phi'|_2 over scores and targets; infinite when there is none."""
        ...

    @property
    def slope_bound_1(self) -> float:
        """The supremum of |phi'|_1 over scores and targets."""
        ...

    @property
    def curvature_bound(self) -> float:
        """The Lipschitz constant of phi' in the 2-norm; infinite for a loss with a kink."""
        ...

    def value(self, scores: Array, targets: Targets) -> Array:
        """The losses (n,)."""
        ...

    def slope(self, scores: Array, targets: Targets) -> Array:
        """Gradients with respect to the scores, shaped like them; the smallest subgradient at a kink."""
        ...

    def curvature_product(self, scores: Array, targets: Targets, direction: Array) -> Array:
        """The second derivative with respect to the scores, times a direction shaped like them."""
        ...

    def prox_slope(self, points: Array, steps: float | Array, targets: Targets) -> Array:
        """The g in the subdifferential of phi at point - step * g, shaped like `points`.

        One step or one per record, in [0, 1e12]; step 0 gives a slope at the point. The point of the prox follows as
        point - step * g, while g could not be had from that point without cancellation.
        """
        ...

    def check_targets(self, targets: NDArray[Any]) -> None:
        """Raise InputError unless the targets are of this loss's kind."""
        ...

    def to_sklearn(self, *, fit_intercept: bool) -> Any:
        """An estimator of scikit-learn that predicts from scores as a model of this loss does; not fitted."""
        from sklearn import linear_model, svm

        if self.targets == "real":
            return linear_model.LinearRegression(fit_intercept=fit_intercept)
        if self.is_likelihood:
            return linear_model.LogisticRegression(fit_intercept=fit_intercept)
        return svm.LinearSVC(fit_intercept=fit_intercept)

    def prox(self, points: Array, steps: float | Array, targets: Targets) -> Array:
        """The minimisers s of step * phi(s, target) + |s - point|^2 / 2, shaped like `points`."""
        scale = np.asarray(steps)
        if scale.ndim and points.ndim > 1:
            scale = scale[:, None]
        moved: Array = points - scale * self.prox_slope(points, steps, targets)
        return moved

    def lipschitz(self, row_bound: float) -> float:
        """The Lipschitz constant of a record's loss as a function of the model, for rows with |a|_2 <= row_bound."""
        check_bound("row_bound", row_bound)
        return self.slope_bound * row_bound

    def smoothness(self, row_bound: float) -> float:
        """The Lipschitz constant of a record's gradient, for rows with |a|_2 <= row_bound."""
        check_bound("row_bound", row_bound)
        return self.curvature_bound * row_bound**2

    def gradient_gap(
        self, row_bound: float, norm: Literal[1, 2], adjacency: Adjacency, *, row_bound_1: float | None = None
    ) -> float:
        """The largest change of one record's gradient between two worlds, at the same model, in the given norm.

        Rows have |a|_2 <= row_bound; norm 1 needs row_bound_1 as well, with |a|_1 <= row_bound_1. Under add-remove
        the gradient is there or not; under replace-one there are two, and in two or more dimensions they can point
        in opposite directions at one model, so the bound doubles.
        """
        check_bound("row_bound", row_bound)
        if adjacency not in ("add-remove", "replace-one"):
            raise InputError(
                f"adjacency={adjacency!r}: an adjacency is 'add-remove' or 'replace-one'; pass one of them."
            )
        if norm == 2:
            largest = self.slope_bound * row_bound
        elif norm == 1:
            if row_bound_1 is None:
                raise InputError(
                    "gradient_gap(norm=1, row_bound_1=None): the 1-norm needs a bound on |a|_1; clip the rows to one, "
                    "or pass sqrt(features) * row_bound."
                )
            check_bound("row_bound_1", row_bound_1)
            largest = self.slope_bound_1 * row_bound_1
        else:
            raise InputError(f"gradient_gap(norm={norm!r}): gradients are measured in norm 1 or 2; pass one of them.")
        return largest if adjacency == "add-remove" else 2.0 * largest


@runtime_checkable
class ScalarLoss(Loss, Protocol):
    """A loss of one score: scores, slopes and curvatures are vectors (n,)."""

    @property
    def outputs(self) -> int:
        """One score per record."""
        return 1

    @property
    def slope_bound_1(self) -> float:
        """A number has one norm."""
        return self.slope_bound

    def curvature(self, scores: Array, targets: Targets) -> Array:
        """Second derivatives (n,), zero at and beside the kinks of a loss that is not smooth."""
        ...

    def curvature_product(self, scores: Array, targets: Targets, direction: Array) -> Array:
        """Second derivatives times a direction (n,)."""
        return self.curvature(scores, targets) * direction

    def check_targets(self, targets: NDArray[Any]) -> None:
        """Raise InputError unless the targets are of this loss's kind."""
        if self.targets == "sign":
            check_signs(repr(self), targets)
        else:
            check_reals(repr(self), targets)


class PiecewiseLinear(ScalarLoss):
    """A loss whose slope jumps between -1 and 1 and is constant elsewhere; `subproblems.pieces` knows its kinks."""

    slope_bound = 1.0
    curvature_bound = np.inf

    def curvature(self, scores: Array, targets: Targets) -> Array:
        return np.zeros(np.shape(scores))


def require_lipschitz(loss: Loss, row_bound: float, needed_by: str) -> float:
    """The Lipschitz constant of a record's loss, or a PreconditionError that says who needs it."""
    if loss.slope_bound == np.inf:
        raise PreconditionError(
            f"{needed_by} needs a Lipschitz loss, and the slope of {loss!r} is unbounded; use Huber(threshold=...), "
            "or an algorithm that clips the gradient of each record."
        )
    return loss.lipschitz(row_bound)


def require_smooth(loss: Loss, row_bound: float, needed_by: str) -> float:
    """The smoothness of a record's loss, or a PreconditionError that says who needs it."""
    if loss.curvature_bound == np.inf:
        raise PreconditionError(
            f"{needed_by} needs a smooth loss, and the slope of {loss!r} jumps; use SmoothedHinge(smoothing=...) for "
            "labels or Huber(threshold=...) for real targets."
        )
    return loss.smoothness(row_bound)
