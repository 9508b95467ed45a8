"""Lengths that follow the data: symmetric matrices, read off noisy ones, and proxes in their metric.

Public computations on public matrices.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from consenso.arrays import Array
from consenso.regularizers import L1, L2, Box, ElasticNet, NoPenalty, Regularizer, Unpenalized
from consenso.regularizers.norms import Shrinkage

# Over-relaxation and the balance of the two residuals of ADMM, as Boyd et al. 2011 (3.4) advise.
RELAXATION, UNBALANCED, CORRECTION = 1.6, 10.0, 2.0
# Columns beyond which a system of equations takes longer than the steps that it saves.
MOST_POLISHED = 400


@dataclass(frozen=True, eq=False)
class Metric:
    """A symmetric positive definite matrix over features, V diag(values) V', shared by all outputs of a model.

    Without vectors, of shape (0, 0), it is a multiple of the identity and `values` has one entry.
    """

    vectors: Array  # (features, features)
    values: Array  # (features,)

    @classmethod
    def round(cls, value: float) -> Metric:
        """A multiple of the identity, whatever the number of features."""
        return cls(np.empty((0, 0)), np.array([value]))

    @classmethod
    def of(cls, matrix: Array) -> Metric:
        """A matrix by its eigenvectors."""
        values, vectors = np.linalg.eigh(matrix)
        return cls(vectors, values)

    @property
    def is_round(self) -> bool:
        """Whether all directions are alike."""
        return not self.vectors.size

    def plus(self, scale: float, shift: float) -> Metric:
        """Scale times the matrix plus shift times the identity."""
        return Metric(self.vectors, scale * self.values + shift)

    def power(self, exponent: float) -> Array:
        """The matrix to a power, (features, features); not for a round one, which has no size."""
        product: Array = (self.vectors * self.values**exponent) @ self.vectors.T
        return product

    def apply(self, x: Array, power: float) -> Array:
        """The matrix to a power, times flat models (..., features * outputs)."""
        if self.is_round:
            return x * float(self.values[0] ** power)
        tables = x.reshape(*x.shape[:-1], len(self.values), -1)
        product: Array = self.vectors @ (self.values[:, None] ** power * (self.vectors.T @ tables))
        return product.reshape(x.shape)

    def prox(self, regularizer: Regularizer, v: Array, step: float, *, tolerance: float = 1e-10) -> Array:
        """argmin_x r(x) + (x - v)' Q (x - v) / (2 step).

        Squares have a formula; the others take ADMM on the split x = y, with Q kept diagonal.
        """
        inner = regularizer.inner if isinstance(regularizer, Unpenalized) else regularizer
        if isinstance(inner, NoPenalty):
            return v
        if self.is_round:
            return regularizer.prox(v, step / float(self.values[0]))
        curvature = self.values / step
        outputs = v.size // len(self.values)
        target = curvature[:, None] * (self.vectors.T @ v.reshape(-1, outputs))
        free, rest = divmod(regularizer.last, outputs) if isinstance(regularizer, Unpenalized) else (0, 0)
        if isinstance(inner, L2) and not rest:
            return self._squares(inner.strength, free, curvature, target)
        return self._split(regularizer, v, curvature, target, tolerance)

    def prox_among(self, regularizer: Regularizer, v: Array, step: float, kept: Array) -> Array:
        """The prox among models of one output that are zero where they are not kept (features,)."""
        if kept.all():
            return self.prox(regularizer, v, step)
        free = regularizer.last if isinstance(regularizer, Unpenalized) else 0
        kept = np.append(kept[: len(kept) - free], np.ones(free, dtype=bool))
        x = np.zeros(len(v))
        if not kept.any():
            return x
        if self.is_round:  # coordinates do not meet
            x[kept] = self.prox(regularizer, v, step)[kept]
            return x
        matrix = self.power(1.0)
        among = Metric.of(matrix[np.ix_(kept, kept)])
        x[kept] = among.apply((matrix @ v)[kept], -1.0)
        if np.count_nonzero(kept) > free:
            x[kept] = among.prox(regularizer, x[kept], step)
        return x

    def _squares(self, strength: float, free: int, curvature: Array, target: Array) -> Array:
        """The prox of a square on all features but the last `free` ones, by the formula of Woodbury.

        The penalty is strength times (identity - E E') with E the unit vectors of the free features; what the formula
        inverts, E' (Q / (Q + strength)) E, is written so that a large strength cancels nothing.
        """
        bent = curvature[:, None] + strength
        x = target / bent
        if free:
            units = self.vectors[-free:].T
            inverted = np.linalg.solve(units.T @ (curvature[:, None] / bent * units), units.T @ x)
            x = x + strength / bent * (units @ inverted)
        return (self.vectors @ x).ravel()

    def _split(self, regularizer: Regularizer, v: Array, curvature: Array, target: Array, tolerance: float) -> Array:
        """ADMM; since Q is diagonal in its own basis, a new penalty costs nothing."""
        penalty = float(np.sqrt(curvature.min() * curvature.max()))
        shape, polish = target.shape, self._polisher(regularizer, curvature, target)
        y = regularizer.prox(v, 1.0 / penalty)
        dual = np.zeros_like(v)
        for count in range(2000):
            pull = target + penalty * (self.vectors.T @ (y - dual).reshape(shape))
            x = (self.vectors @ (pull / (curvature[:, None] + penalty))).ravel()
            relaxed = RELAXATION * x + (1 - RELAXATION) * y
            before, y = y, regularizer.prox(relaxed + dual, 1.0 / penalty)
            dual = dual + relaxed - y
            apart, moved = float(np.abs(x - y).max()), float(np.abs(y - before).max())
            if max(apart, moved) <= tolerance * (1.0 + float(np.abs(y).max())):
                break
            if count % 10 == 9 and not apart / UNBALANCED <= moved <= apart * UNBALANCED:
                factor = CORRECTION if apart > moved else 1 / CORRECTION
                penalty, dual = penalty * factor, dual / factor
            # Which coordinates are zero is often settled at once; otherwise it is asked now and then.
            if polish is not None and count % 10 in (0, 9) and (found := polish(y)) is not None:
                return found
        return y

    def _polisher(
        self, regularizer: Regularizer, curvature: Array, target: Array
    ) -> Callable[[Array], Array | None] | None:
        """Solves for the coordinates that are not zero, of which a step says which they are; the prox, or None.

        Coordinates that get the wrong sign become zero, those that are pulled from zero do not stay there, and that is
        solved again. Where none is left of either kind the conditions of the minimum hold, and it is the only one.

        None where there is no 1-norm, several outputs, or a matrix that takes longer than the steps it saves.
        """
        inner = regularizer.inner if isinstance(regularizer, Unpenalized) else regularizer
        p = len(curvature)
        if not isinstance(inner, L1 | ElasticNet) or target.shape[1] > 1 or p > MOST_POLISHED:
            return None
        penalized = np.ones(p)
        if isinstance(regularizer, Unpenalized):
            penalized[-regularizer.last :] = 0.0
        absolute, square = penalized * inner.absolute, penalized * inner.strong_convexity
        matrix = (self.vectors * curvature) @ self.vectors.T + np.diag(square)
        pulled = self.vectors @ target[:, 0]

        def polish(y: Array) -> Array | None:
            free, signs = (y != 0) | (absolute == 0), absolute * np.sign(y)
            errors = p + 1
            while True:
                x = np.zeros(p)
                x[free] = np.linalg.solve(matrix[np.ix_(free, free)], (pulled - signs)[free])
                rest = pulled - matrix @ x
                wrong, missing = x * signs < 0, ~free & (np.abs(rest) > absolute)
                before, errors = errors, int(np.count_nonzero(wrong | missing))
                if errors == 0:
                    return x
                if errors >= before:  # it might go round in circles
                    return None
                free = free & ~wrong | missing
                signs = np.where(missing, absolute * np.sign(rest), np.where(free, signs, 0.0))

        return polish


def prox_in_diagonal(regularizer: Regularizer, v: Array, steps: Array) -> Array:
    """argmin_x r(x) + sum of (x - v)^2 / (2 steps); a prox that couples coordinates takes the shortest step for all."""
    match regularizer:
        case NoPenalty() | Box():
            return regularizer.prox(v, 1.0)
        case Shrinkage(absolute=absolute, strong_convexity=square):
            return (v - np.clip(v, -steps * absolute, steps * absolute)) / (1.0 + steps * square)
        case Unpenalized(inner=inner, last=last):
            return np.append(prox_in_diagonal(inner, v[:-last], steps[:-last]), v[-last:])
    return regularizer.prox(v, float(steps.min()))


@dataclass(frozen=True, eq=False)
class NoisyMetric:
    """A metric as a noisy second moment shows it."""

    metric: Metric
    effective: float  # directions that stand out: the mean squared length of a row in the metric
    shares: Array  # of each value of the metric, the part that rows fill; the rest was lifted
    moment: Array  # the noisy matrix
    lift: float  # by how much eigenvalues were lifted

    @property
    def trace(self) -> float:
        """Of the noisy matrix."""
        return float(np.trace(self.moment))


def estimate_metric(
    moment: Array, noise: float, floor: float, least: float, *, keeps_trace: bool = False
) -> NoisyMetric:
    """The metric of a noisy mean second moment whose packed entries have noise of standard deviation `noise`.

    A symmetric Gaussian matrix of that noise has a spectral norm of about noise * sqrt(2 p). Eigenvalues are cleaned of
    noise (`denoise`) and lifted by a share `floor` of that norm, so that no direction that hides below the noise is
    taken for an empty one, and by `least`. The diagonal has the noise of single entries, sqrt(2 p) times less: what
    columns are seen to differ by, beyond what eigenvalues have told, is put back.

    keeps_trace: eigenvalues that noise made negative are not only set to 0, which would add them to what rows fill: all
    are lowered alike, down to 0, until they add up to the trace, whose noise is that of an entry times sqrt(p).
    """
    spectrum, vectors = np.linalg.eigh(moment)
    found = np.maximum(denoise(spectrum, noise), 0.0)
    if noise > 0:
        matrix = (vectors * found) @ vectors.T
        rest = np.diag(moment) - np.diag(matrix)
        known = measure_signal(rest, noise)
        if known > 0:
            found, vectors = np.linalg.eigh(matrix + np.diag(known * (rest - rest.mean())))
            found = np.maximum(found, 0.0)
    if keeps_trace:
        found = lower_to(found, max(float(np.trace(moment)), noise * math.sqrt(len(moment))))
    lift = float(max(floor * noise * np.sqrt(2.0 * len(moment)), least))
    values = found + lift
    shares = found / values
    effective = max(float(shares.sum()), 1.0)
    return NoisyMetric(metric=Metric(vectors, values), effective=effective, shares=shares, moment=moment, lift=lift)


def lower_to(values: Array, total: float) -> Array:
    """The nearest numbers to `values`, none of them negative, that add up to at most `total`."""
    if values.sum() <= total:
        return values
    descending = -np.sort(-values)
    # What the k largest would have to be lowered by, if they were all that is left: the most of these is right.
    by = float(np.max((np.cumsum(descending) - total) / np.arange(1, len(values) + 1)))
    lowered: Array = np.maximum(values - by, 0.0)
    return lowered


def measure_signal(numbers: Array, noise: float) -> float:
    """Of the variance of numbers around their mean, the part that noise of this standard deviation does not explain."""
    variance = float(np.var(numbers))
    return 1.0 - noise**2 / variance if variance > noise**2 else 0.0


def denoise(spectrum: Array, noise: float) -> Array:
    """How large a matrix is along the eigenvectors of itself plus symmetric Gaussian noise, from their eigenvalues.

    Noise of standard deviation `noise` on packed entries spreads eigenvalues over a semicircle of radius 2 s, s =
    noise * sqrt(p / 2). Along the j-th eigenvector the matrix is l_j - 2 s^2 times the mean of 1 / (l_j - l_i), the
    estimate of least squared error that keeps the eigenvectors (Bun, Allez, Bouchaud and Potters 2016); differences of
    eigenvalues are told apart as far as s / sqrt(p). Where there is nothing but noise all directions come out alike.
    """
    if noise == 0:
        return spectrum
    spread, p = noise * np.sqrt(len(spectrum) / 2), len(spectrum)
    apart = spectrum[:, None] - spectrum[None, :]
    pushed = np.mean(apart / (apart**2 + spread**2 / p), axis=1)
    cleaned: Array = spectrum - 2 * spread**2 * pushed
    return cleaned


def refine_metric(
    before: Metric, moment: Array, noise: float, floor: float, least: float, *, keeps_trace: bool = False
) -> NoisyMetric:
    """The metric of a second release: a noisy mean second moment of rows that were whitened by the metric before."""
    seen = estimate_metric(moment, noise, floor, least, keeps_trace=keeps_trace)
    root = before.power(0.5)
    matrix = root @ seen.metric.power(1.0) @ root
    metric = Metric.of((matrix + matrix.T) / 2)
    lifted = seen.lift * np.sum(metric.vectors * (before.power(1.0) @ metric.vectors), axis=0)
    return replace(seen, metric=metric, shares=np.clip(1 - lifted / metric.values, 0.0, 1.0))


def pack_symmetric(matrices: Array) -> Array:
    """Upper triangles (parties, p(p+1)/2), off-diagonals times sqrt 2: Euclidean norms are Frobenius norms."""
    p = matrices.shape[-1]
    rows, columns = np.triu_indices(p)
    weights = np.where(rows == columns, 1.0, np.sqrt(2.0))
    upper: Array = matrices[:, rows, columns] * weights
    return upper


def unpack_symmetric(upper: Array, p: int) -> Array:
    """The symmetric matrix of a packed one, or of each of several, (..., p, p)."""
    rows, columns = np.triu_indices(p)
    matrix = np.empty((*upper.shape[:-1], p, p))
    matrix[..., rows, columns] = matrix[..., columns, rows] = upper / np.where(rows == columns, 1.0, np.sqrt(2.0))
    return matrix
