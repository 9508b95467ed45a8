"""The objectives of some parties, evaluated for all of them at once."""

from __future__ import annotations

import hmac
from collections.abc import Callable, MutableMapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from consenso.arrays import Array, IntArray
from consenso.clipping import shorten
from consenso.errors import InputError, StepError
from consenso.losses import Squared, require_step
from consenso.losses.checks import LARGEST_STEP
from consenso.losses.formulas import CompiledLoss, compile_loss
from consenso.problem import Problem
from consenso.rows import NOT_FINITE, Rows
from consenso.subproblems import Prox, Worst, check_points, local_prox
from consenso.subproblems.batch import lengths

DIGEST_ROWS = 1 << 16  # rows hashed at once: a table is never copied as a whole


@dataclass(frozen=True, eq=False, repr=False)
class Cohort:
    """f_i(x) = scale_i * sum over the records of party i of phi(<row, x>, target), for the parties of a cohort.

    A model x is (dim,), shared by all, or (parties, dim). Everything that is returned depends on private records.
    """

    problem: Problem
    parties: IntArray  # indices of the parties in the whole federation
    squared_norms: Array  # of the rows, (rows,)
    _rows: Rows
    _targets: NDArray[Any]
    weights: Array | None = None  # of the rows, (rows,); private
    _remembered: MutableMapping[str, Array] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"Cohort({len(self.parties)} of {self.problem.parties} parties, {self.problem.features} features)"

    @cached_property
    def scales(self) -> Array:
        """Public weight of each record's loss in its party's objective, (parties,)."""
        return self.problem.scales[self.parties]

    @property
    def rows(self) -> int:
        """How many rows the cohort has; private under add-remove."""
        return self._rows.count

    @property
    def sizes(self) -> IntArray:
        """Rows of each party, (parties,); private under add-remove."""
        return self._rows.layout.sizes

    def keyed_digest(self, key: bytes) -> str:
        """A hash of the rows, their order and their targets that tells nothing without the key."""
        matrix = self._rows.matrix
        parts = [matrix.data, matrix.indices, matrix.indptr] if self._rows.is_sparse else [matrix]
        found = hmac.new(key, digestmod="sha256")
        weights = () if self.weights is None else (self.weights,)
        for each in (*parts, self._targets, self._rows.layout.offsets, *weights):
            found.update(f"{each.dtype.str}{each.shape};".encode())
            for start in range(0, max(len(each), 1), DIGEST_ROWS):
                found.update(np.ascontiguousarray(each[start : start + DIGEST_ROWS]).tobytes())
        return found.hexdigest()

    @cached_property
    def _norms(self) -> Array:
        return np.sqrt(self.squared_norms)

    @cached_property
    def norms_1(self) -> Array:
        """1-norms of the rows, (rows,)."""
        return self._rows.norms_1()

    def value(self, x: Array) -> Array:
        """f_i(x), (parties,)."""
        return self.scales * self.sums(self.weigh(self.problem.loss.value(self.linear_predictor(x), self._targets)))

    def gradient(self, x: Array) -> Array:
        """Gradients of the f_i, (parties, dim); subgradients where the loss has kinks."""
        return self._weight(self.slopes(self.linear_predictor(x)))

    def clipped_gradient(self, x: Array, clip: float) -> Array:
        """Gradients in which each record's, before weighting, is scaled to 2-norm `clip` if longer, (parties, dim).

        One record moves a party's row by at most scales[i] * clip, and a row is at most scales[i] * m_i * clip long.
        """
        if not clip > 0:
            raise InputError(f"clipped_gradient(clip={clip}): clip is a positive number.")
        slopes = self.slopes(self.linear_predictor(x))
        sizes = self._norms * (np.abs(slopes) if slopes.ndim == 1 else np.sqrt(np.einsum("ij,ij->i", slopes, slopes)))
        # A margin loss has the gradient slope times row, so that clipping it rescales the slope.
        if clip == np.inf:
            return self._weight(slopes)
        factors = shorten(sizes, clip * (1.0 - 4 * np.finfo(np.float64).eps))
        return self._weight(slopes * (factors if slopes.ndim == 1 else factors[:, None]))

    def hessian_product(self, x: Array, direction: Array) -> Array:
        """Hessians of the f_i at x times a direction shaped like a model, (parties, dim)."""
        along = self.linear_predictor(direction)
        return self._weight(self.problem.loss.curvature_product(self.linear_predictor(x), self._targets, along))

    def prox(self, v: Array, step: float | Array, tolerance: float = 1e-10) -> Prox:
        """Minimize f_i(x) + |x - v|^2 / (2 step), with a certified bound on the distance to it.

        One step, or one per party. Where rounding keeps the tolerance out of reach, `residual` says what was reached;
        `consenso.subproblems.certified` turns that into an error.
        """
        if self.weights is not None:
            raise InputError("prox(...): it is that of rows without weights; use gradients.")
        steps = np.asarray(step, dtype=np.float64)
        if steps.shape not in ((), (len(self.parties),)) or not np.all((steps > 0) & np.isfinite(steps)):
            raise InputError("prox(step=...): step is a positive finite number, or one for each party of the cohort.")
        require_step(float(np.max(steps * self.scales, initial=0.0)), self.problem.row_bound, "prox")
        v = self._check(v, "v")
        return local_prox(self._rows, self._targets, self._norms, self.problem.loss, steps * self.scales, v, tolerance)

    def check_points(
        self, v: Array, step: float | Array, tolerance: float, who: str, *, beyond: float | Array = 0.0
    ) -> None:
        """Refuse points at which rows could keep a prox from being certified; a rule of public facts alone.

        beyond: how much longer than v they may be, by what is private, (parties,).
        """
        problem = self.problem
        worst = Worst(
            length=lengths(np.atleast_2d(v)) + beyond,
            weights=np.asarray(step, dtype=np.float64) * self.scales,
            sizes=problem.sizes[self.parties],
            loss=problem.loss,
            row_bound=problem.row_bound,
            target_bound=problem.target_bound,
        )
        check_points(worst, tolerance, who)

    def linear_predictor(self, x: Array) -> Array:
        """<row, x> of every row, (rows,) or (rows, outputs)."""
        return self._rows.linear_predictor(self._check(x, "x"))

    def products(self, vectors: Array) -> Array:
        """<row, vector> of every row and every column of vectors (features, k), (rows, k)."""
        return self._rows.products(vectors)

    def slopes(self, scores: Array) -> Array:
        """Slopes of the loss at the scores, shaped like them."""
        return self.problem.loss.slope(scores, self._targets)

    def prox_slopes(self, points: Array, steps: float | Array) -> Array:
        """The g in the subdifferential of phi at point - step * g, per row; steps scalar or (rows,)."""
        return self.problem.loss.prox_slope(points, steps, self._targets)

    def prox_pull(
        self, x: Array, factor: float, offsets: Array, steps: Array, *, among: NDArray[np.bool_] | None = None
    ) -> tuple[Array, Array, Array]:
        """Scores at a shared x, the prox slopes at factor * scores + offsets, and the pull of the slopes.

        among: the rows whose slopes are pulled, (rows,); all of them if left out. Where it can be, one pass over the
        rows does what `scores`, `prox_slopes` and `pull` do one after the other.
        """
        if among is None and self._can_sweep(x, offsets, steps):
            loss = compile_loss(self.problem.loss)
            if loss is not None:
                return self._sweep(loss, x, factor, offsets, steps)
        scores = self.linear_predictor(x)
        slopes = self.prox_slopes(factor * scores + offsets, steps)
        if among is None:
            return scores, slopes, self.rmatvec(slopes)
        return scores, slopes, self.rmatvec(np.where(among if slopes.ndim == 1 else among[:, None], slopes, 0.0))

    def rmatvec(self, coefficients: Array) -> Array:
        """Sum over each party's rows of coefficient times row, unweighted, (parties, dim)."""
        return self._rows.rmatvec(coefficients)

    def total(self, coefficients: Array) -> Array:
        """Sum over all rows of coefficient times row, unweighted, (dim,): pull for all parties together."""
        return self._rows.total(coefficients)

    def add_up(self, term: Callable[..., IntArray], unit: float, *arguments: Any) -> Array:
        """What term(part, *arguments) gives for all rows, in units; `part` is a cohort of some of them.

        A term is a function of a module that returns whole numbers, such as `exact_sums` gives: they may be added in
        any order, so that rows can stay on disk or on the workers of a cluster.
        """
        total: Array = np.multiply(term(self, *arguments), unit, dtype=np.float64)
        return total

    def remember(self, key: str, compute: Callable[[Cohort], Array]) -> Array:
        """A number for each row, (rows,), computed once for a key. Only the last key is remembered, beside the rows."""
        if key not in self._remembered:
            self._remembered.clear()
            self._remembered[key] = compute(self)
        return self._remembered[key]

    def exact_sums(self, coefficients: Array, step: float) -> IntArray:
        """`rmatvec` in whole steps, which no order or batch of rows changes.

        coefficients: (rows,) or (rows, k), for sums (parties, features) or (parties, features * k).
        """
        if not np.isfinite(coefficients).all():
            raise StepError(NOT_FINITE)
        return self._rows.exact_sums(coefficients, step)

    def exact_residual_sums(self, x: Array, factors: Array, limit: float, step: float) -> IntArray | None:
        """`exact_sums` of residuals at a shared x, clipped and times factors (rows,), in one pass over the rows.

        None where it takes more than one: for compressed rows, and for losses whose slopes are no residuals.
        """
        if type(self.problem.loss) is not Squared or self._rows.is_sparse or x.shape != (self.problem.dim,):
            return None
        return self._rows.exact_residual_sums(self._check(x, "x"), self._targets, factors, limit, step)

    def exact_moments(self, step: float, whitening: tuple[Array, float] | None = None) -> IntArray:
        """Sums of weight times row times its transpose in whole squared steps, (parties, features, features).

        whitening: a matrix (features, features) that rows are multiplied with first, and the length to which they are
        then shortened.
        """
        return self._rows.exact_moments(step, None if self.weights is None else np.sqrt(self.weights), whitening)

    def exact_squares(self, step: float) -> IntArray:
        """Sums of squared entries of rows in whole steps, (parties, features); the cost is that of the non-zeros."""
        return self._rows.exact_squares(step)

    def whole_sums(self, per_row: IntArray) -> IntArray:
        """Sums over each party's rows of whole numbers (rows, k), (parties, k)."""
        return self._rows.layout.whole_sums(per_row)

    def weigh(self, per_row: Array) -> Array:
        """Numbers of each row, (rows,) or (rows, outputs), times its weight."""
        if self.weights is None:
            return per_row
        return per_row * (self.weights if per_row.ndim == 1 else self.weights[:, None])

    def scaled_squared_norms(self, scales: Array) -> Array:
        """Squared lengths of the rows after each column is multiplied by its scale, (rows,)."""
        return self._rows.scaled_squared_norms(scales)

    def transformed_squared_norms(self, transform: Array) -> Array:
        """Squared lengths of the rows times a (features, k) matrix, or times one for each party, (rows,)."""
        return self._rows.transformed_squared_norms(transform)

    def repeat_per_row(self, per_party: Array) -> Array:
        """A number of each party repeated for each of its rows, (rows,)."""
        return self._rows.layout.repeat_per_row(per_party)

    def sums(self, per_row: Array) -> Array:
        """Sums over the rows of each party, (parties,)."""
        return self._rows.layout.sums(per_row)

    def _can_sweep(self, x: Array, offsets: Array, steps: Array) -> bool:
        """Whether one pass will do: dense rows of one party, one output, and nothing to complain of."""
        return (
            self.problem.outputs == 1
            and not self._rows.is_sparse
            and len(self.parties) == 1
            and x.shape == (self.problem.dim,)
            and offsets.shape == steps.shape == (self.rows,)
            and bool(np.isfinite(x).all() and np.isfinite(offsets).all())
            and bool(((steps >= 0) & (steps <= LARGEST_STEP)).all())
        )

    def _sweep(
        self, loss: CompiledLoss, x: Array, factor: float, offsets: Array, steps: Array
    ) -> tuple[Array, Array, Array]:
        from consenso.kernels.compiled import run_pieces
        from consenso.kernels.sweep import PIECE, prox_sweep

        scores, slopes = np.empty(self.rows), np.empty(self.rows)
        totals = np.zeros((-(-self.rows // PIECE), self.problem.features))
        targets, offsets, steps = (np.ascontiguousarray(each, np.float64) for each in (self._targets, offsets, steps))
        at = loss.parameters, loss.prox_slopes, np.ascontiguousarray(x, dtype=np.float64), float(factor)
        given = self._rows.matrix, *at, offsets, steps, targets
        run_pieces(prox_sweep, self.rows, PIECE, *given, scores, slopes, totals)
        return scores, slopes, totals.sum(axis=0)[None]

    def _weight(self, coefficients: Array) -> Array:
        pulled = self.rmatvec(self.weigh(coefficients))
        pulled *= self.scales[:, None]
        return pulled

    def _check(self, x: Array, name: str) -> Array:
        dim, parties = self.problem.dim, len(self.parties)
        x = np.asarray(x, dtype=np.float64)
        if x.shape not in ((dim,), (parties, dim)):
            raise InputError(
                f"Cohort({name}=...): {name} has the shape ({dim},) or ({parties}, {dim}), but {x.shape} was given."
            )
        return x
