"""Steps on one function, or on a smooth one and a proximable one.

    GradientStep        u - step grad f(u)                        step <= 2/smoothness
    BlockGradientStep   u - step grad f(u) / weights              in the norm sqrt(sum weights u^2)
    ProximalPoint       prox_{step f}(u)
    ReflectedProx       2 prox_{step f}(u) - u
    ProximalGradient    prox_{step r}(u - step grad f(u))         step <= 2/smoothness of f

`gradient_gap` bounds |grad f - grad f'| between neighbouring data sets. The sensitivity of a prox follows from the two
optimality conditions: d = x - x' satisfies |d|^2 + step m |d|^2 <= step gap |d| for an m-strongly convex f.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from consenso.arrays import Array
from consenso.errors import InputError
from consenso.operators.contract import Proximable, Smooth, check_gap, check_step


@dataclass(frozen=True, kw_only=True, eq=False)
class GradientStep:
    """u - step grad f(u)."""

    function: Smooth
    step: float
    gradient_gap: float = 0.0

    def __post_init__(self) -> None:
        check_step(self, self.step, largest=largest_step(self.function.smoothness))
        check_gap(self, self.gradient_gap)

    @property
    def lipschitz(self) -> float:
        """Attained by quadratics, at one end of the spectrum."""
        return gradient_contraction(self.step, self.function.smoothness, self.function.strong_convexity)

    @property
    def averagedness(self) -> float:
        """The longest step that is still non-expansive has 1."""
        return self.step * self.function.smoothness / 2

    @property
    def sensitivity(self) -> float:
        """The step times the gap."""
        return self.step * self.gradient_gap

    def __call__(self, u: Array) -> Array:
        """One step."""
        moved: Array = u - self.step * self.function.gradient(u)
        return moved

    def norm(self, u: Array) -> float:
        """The 2-norm."""
        return float(np.linalg.norm(u))


@dataclass(frozen=True, kw_only=True, eq=False)
class BlockGradientStep:
    """u - step grad f(u) / weights, every coordinate with its own weight, as coordinate descent takes them.

    The constants of `function` are those of the norm sqrt(sum weights u^2): its Hessian lies between strong_convexity
    and smoothness times diag(weights). `gradient_gaps` are the gaps of the coordinates. The whole step is averaged; a
    step on some coordinates alone need not be non-expansive (coupled quadratics expand by up to sqrt 2 and more).
    """

    function: Smooth
    weights: Array
    step: float = 1.0
    gradient_gaps: Array | float = 0.0

    def __post_init__(self) -> None:
        check_step(self, self.step, largest=largest_step(self.function.smoothness))
        check_gap(self, float(np.min(self.gradient_gaps)))
        if not (np.isfinite(self.weights).all() and (np.asarray(self.weights) > 0).all()):
            raise InputError("BlockGradientStep(weights=...): every weight is positive and finite; bound every column.")

    @property
    def lipschitz(self) -> float:
        """As for a gradient step, in coordinates scaled by the square roots of the weights."""
        return gradient_contraction(self.step, self.function.smoothness, self.function.strong_convexity)

    @property
    def averagedness(self) -> float:
        """As for a gradient step."""
        return self.step * self.function.smoothness / 2

    @property
    def sensitivity(self) -> float:
        """In the weighted norm, when all coordinates move."""
        return self.step * float(np.sqrt(np.sum(np.square(self.gradient_gaps) / self.weights)))

    def __call__(self, u: Array) -> Array:
        """One step on every coordinate."""
        moved: Array = u - self.step * self.function.gradient(u) / self.weights
        return moved

    def on(self, u: Array, coordinates: Array) -> Array:
        """One step on some coordinates only (a mask or indices)."""
        moved = np.array(u)
        moved[coordinates] = self(u)[coordinates]
        return moved

    def norm(self, u: Array) -> float:
        """The weighted norm."""
        return float(np.sqrt(np.sum(self.weights * np.square(u))))


@dataclass(frozen=True, kw_only=True, eq=False)
class ProximalPoint:
    """prox_{step f}(u)."""

    function: Proximable
    step: float
    gradient_gap: float = 0.0

    def __post_init__(self) -> None:
        check_step(self, self.step)
        check_gap(self, self.gradient_gap)

    @property
    def lipschitz(self) -> float:
        """Attained by quadratics."""
        return 1 / (1 + self.step * self.function.strong_convexity)

    @property
    def averagedness(self) -> float:
        """Proxes are firmly non-expansive."""
        return 0.5

    @property
    def sensitivity(self) -> float:
        """Attained by linear functions."""
        return prox_sensitivity(self.step, self.gradient_gap, self.function.strong_convexity)

    def __call__(self, u: Array) -> Array:
        """One prox."""
        return self.function.prox(u, self.step)

    def norm(self, u: Array) -> float:
        """The 2-norm."""
        return float(np.linalg.norm(u))


@dataclass(frozen=True, kw_only=True, eq=False)
class ReflectedProx:
    """2 prox_{step f}(u) - u. `smoothness` is that of f, where it has one."""

    function: Proximable
    step: float
    smoothness: float = np.inf
    gradient_gap: float = 0.0

    def __post_init__(self) -> None:
        check_step(self, self.step)
        check_gap(self, self.gradient_gap)

    @property
    def lipschitz(self) -> float:
        """A contraction for functions that are smooth and strongly convex (Giselsson and Boyd 2017)."""
        return contraction_of_reflection(self.step, self.smoothness, self.function.strong_convexity)

    @property
    def averagedness(self) -> float:
        """Non-expansive and no more: reflections are the N of every averaged operator made of them."""
        return 1.0

    @property
    def sensitivity(self) -> float:
        """Twice that of the prox."""
        return 2 * prox_sensitivity(self.step, self.gradient_gap, self.function.strong_convexity)

    def __call__(self, u: Array) -> Array:
        """One reflection."""
        reflected: Array = 2 * self.function.prox(u, self.step) - u
        return reflected

    def norm(self, u: Array) -> float:
        """The 2-norm."""
        return float(np.linalg.norm(u))


@dataclass(frozen=True, kw_only=True, eq=False)
class ProximalGradient:
    """prox_{step r}(u - step grad f(u)); only f sees data."""

    function: Smooth
    regularizer: Proximable
    step: float
    gradient_gap: float = 0.0

    def __post_init__(self) -> None:
        check_step(self, self.step, largest=largest_step(self.function.smoothness))
        check_gap(self, self.gradient_gap)

    @property
    def lipschitz(self) -> float:
        """The product of both contractions."""
        forward = gradient_contraction(self.step, self.function.smoothness, self.function.strong_convexity)
        return forward / (1 + self.step * self.regularizer.strong_convexity)

    @property
    def averagedness(self) -> float:
        """A 1/2-averaged operator after a (step smoothness / 2)-averaged one (Combettes and Yamada 2015)."""
        return min(1.0, 2 / (4 - self.step * self.function.smoothness))

    @property
    def sensitivity(self) -> float:
        """That of the gradient step: the prox does not expand."""
        return self.step * self.gradient_gap / (1 + self.step * self.regularizer.strong_convexity)

    def __call__(self, u: Array) -> Array:
        """A gradient step, then a prox."""
        return self.regularizer.prox(u - self.step * self.function.gradient(u), self.step)

    def norm(self, u: Array) -> float:
        """The 2-norm."""
        return float(np.linalg.norm(u))


def largest_step(smoothness: float) -> float:
    """The longest gradient step that does not expand."""
    return 2 / smoothness if smoothness > 0 else np.inf


def gradient_contraction(step: float, smoothness: float, strong_convexity: float) -> float:
    """Lipschitz constant of u - step grad f(u)."""
    return max(abs(1 - step * strong_convexity), abs(1 - step * smoothness))


def contraction_of_reflection(step: float, smoothness: float, strong_convexity: float) -> float:
    """Lipschitz constant of 2 prox_{step f} - I."""
    stiff = 1.0 if np.isinf(smoothness) else (step * smoothness - 1) / (step * smoothness + 1)
    return max(stiff, (1 - step * strong_convexity) / (1 + step * strong_convexity), 0.0)


def prox_sensitivity(step: float, gap: float, strong_convexity: float) -> float:
    """How far prox_{step f} moves when the gradient of f changes by at most `gap`."""
    return step * gap / (1 + step * strong_convexity)
