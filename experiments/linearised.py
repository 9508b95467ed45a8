"""How close first-order ADMM with noisy gradients comes, for convex losses: one bound for five papers' algorithms.

Party i steps l times a round, from its last iterate, with the gradient of f_i at w plus noise xi of mean zero:

    w <- argmin over v in W of  <grad f_i(w) + xi, v> + (what ADMM adds: dual and penalty) + |v - w|^2 / (2 step)

*Theorem.* F = the mean of the f_i over P parties, x the minimiser of F over W, |grad f_i| <= G, E|xi|^2 <= V, all start
within D of x. The average of all iterates at which gradients were taken, each party's own, satisfies after T rounds

    E mean_i f_i(average_i) - F(x) + E <dual, disagreement>  <=  (D^2 / (2 step l) + C) / T + step (G^2 + V) / 2
    the same, gradients L-Lipschitz, step < 1/L:              <=  (D^2 / (2 step l) + C) / T + V / (2 (1/step - L))

where C is what the penalty costs, over P: rho D^2 / 2 a party with a server, rho degree D^2 at most on a graph, rho
|B (y - y*)|^2 / 2 under a constraint A x + B y = c, whose g(average y) is added on the left, and |dual|^2 / (2 rho P)
for a disagreement that is weighed. (The second line is about the iterates one step later.) Parties may do better than
x on their own losses as long as they disagree: weigh the disagreement to bound a common model.

*Proof.* Optimality of the step, for any v in W, gives

    <g, w+ - v> <= -<what ADMM adds, w+ - v> + (|w - v|^2 - |w+ - v|^2 - |w+ - w|^2) / (2 step).

By convexity f(w) - f(v) <= <g, w+ - v> + <g, w - w+> - <xi, w - v>, and <g, w - w+> - |w+ - w|^2 / (2 step) <= step
|g|^2 / 2. The expectation of <xi, w - v> is 0, that of |g|^2 at most G^2 + V. For Lipschitz gradients f(w+) - f(v) <=
<g, w+ - v> - <xi, w - v> - <xi, w+ - w> + (L/2) |w+ - w|^2 instead, whose last two terms and -|w+ - w|^2 / (2 step)
are at most |xi|^2 / (2 (1/step - L)). Over the inner steps ADMM adds the gradient of a quadratic h, and the mean of
-<grad h(w+), w+ - v> is at most -<grad h(s), s - v> at the average s of the round, by Jensen; the distances telescope
over inner steps and rounds. With v = x for all parties the rest is that of ADMM on the averages: -(1/rho) <dual+ -
dual_0, dual+ - dual> telescopes to |dual_0|^2 / (2 rho), and the penalty's cross term to the weighted distance of the
start. Divide by P l T; Jensen again. QED

With steps step_k = step k^-fall and a W of diameter D the first term is D^2 / (2 step_T l), the second the mean of its
values over the rounds.

Planning. A run of T rounds that costs rho-zCDP in all makes T l releases of a mean gradient over n records, each of
which moves it by at most S / n: V = price T l / rho with price = p (S/n)^2 / 2 (Gaussian noise in p coordinates;
Laplace noise of the 1-norm S_1 has p (S_1/n)^2, since epsilon-DP is epsilon^2/2-zCDP). `at_budget` finds the rounds and
the step of the least bound: what is left for many rounds is D sqrt(price / rho), whatever l is.

What this replaces. 002, Theorem 7: with l steps a round the distance counts l times less, the noise l times more, and
with the step that balances them the excess is of the order D sqrt(p) / (n epsilon), as for any private empirical risk
minimisation. 003, Theorem 2: fall = 1/2 gives 1/sqrt(T). 004, Theorems II to IV and (22) to (24): Assumptions 3 and 4
exclude each other, so what remains is this bound with falling steps, `noise` the largest variance of the rounds; (24)
has a spurious 1/K. 001: `under_constraint` with the noise that is added to x. The papers' own constants are not used.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from consenso.errors import InputError


@dataclass(frozen=True, kw_only=True)
class LinearisedADMM:
    """The bound on E mean_i f_i(average_i) - min F; make it with `with_server`, `on_graph` or `under_constraint`."""

    step: float
    distance: float  # D: of every start to the minimiser, or the diameter of W if steps fall
    noise: float  # V: expected squared length of the noise in a party's gradient, of all coordinates together
    gradient: float = 0.0  # G: largest length of a gradient, where the loss need not be smooth
    smoothness: float | None = None  # L: then the gradient's length does not matter
    inner_steps: int = 1
    coupling: float = 0.0  # C
    fall: float = 0.0  # of the steps, as k^-fall

    def __post_init__(self) -> None:
        if not (0 < self.step < math.inf and 0 < self.distance < math.inf):
            raise InputError(
                f"LinearisedADMM(step={self.step}, distance={self.distance}): both are positive and finite numbers."
            )
        for name in ("noise", "gradient", "coupling"):
            value = getattr(self, name)
            if not 0 <= value < math.inf:
                raise InputError(f"LinearisedADMM({name}={value}): it is a finite number of at least 0.")
        if self.inner_steps < 1 or not 0 <= self.fall < 1:
            raise InputError(
                f"LinearisedADMM(inner_steps={self.inner_steps}, fall={self.fall}): at least one inner step, and a "
                "fall in [0, 1), are needed."
            )
        if self.smoothness is not None and not 0 < self.smoothness < 1 / self.step:
            raise InputError(
                f"LinearisedADMM(step={self.step}, smoothness={self.smoothness}): the step must be below 1/smoothness; "
                "shorten it, or leave the smoothness out and give `gradient`."
            )

    @classmethod
    def with_server(
        cls, *, penalty: float, dual: float = 0.0, parties: int = 1, **options: float | None
    ) -> LinearisedADMM:
        """A server averages: InexactADMM (003) and DPADMM. `dual` weighs the disagreement."""
        return cls._couple(penalty, options, pull=penalty / 2, dual=dual, parties=parties)

    @classmethod
    def on_graph(
        cls, *, penalty: float, largest_degree: int, dual: float = 0.0, parties: int = 1, **options: float | None
    ) -> LinearisedADMM:
        """Neighbours agree: IPADMM (002), NetworkedADMM (004). The signless Laplacian is at most twice the degree."""
        return cls._couple(penalty, options, pull=penalty * largest_degree, dual=dual, parties=parties)

    @classmethod
    def under_constraint(
        cls, *, penalty: float, std: float, dim: int, matrix_norm: float, far: float, **options: float | None
    ) -> LinearisedADMM:
        """GradientADMM (001): noise of deviation `std` on x in `dim` coordinates; `far` bounds |B (y - y*)| at first.

        Noise on x is noise (I / step + penalty A'A) times as long in the gradient.
        """
        step = options["step"]
        if step is None or not step > 0:
            raise InputError(f"LinearisedADMM(step={step}): it is a positive number.")
        longer = std * (1 / step + penalty * matrix_norm**2)
        return cls(**{**options, "noise": dim * longer**2, "coupling": penalty * far**2 / 2})  # type: ignore[arg-type]

    @classmethod
    def _couple(
        cls, penalty: float, options: dict[str, float | None], *, pull: float, dual: float, parties: int
    ) -> LinearisedADMM:
        if not 0 < penalty < math.inf:
            raise InputError(f"LinearisedADMM(penalty={penalty}): a penalty is positive and finite.")
        made = cls(**options)  # type: ignore[arg-type]
        return replace(made, coupling=pull * made.distance**2 + dual**2 / (2 * penalty * parties))

    def bound(self, rounds: int) -> float:
        """What is proved after this number of rounds."""
        if rounds < 1:
            raise InputError(f"LinearisedADMM.bound(rounds={rounds}): at least one round is needed.")
        steps = self.step * np.arange(1.0, rounds + 1) ** -self.fall
        travelled = self.distance**2 / (2 * steps[-1] * self.inner_steps)
        return float((travelled + self.coupling) / rounds + np.mean(self._floor(steps)))

    def with_best_step(self, rounds: int) -> LinearisedADMM:
        """With the step that balances distance and noise after this number of rounds."""
        falls = float(np.mean(np.arange(1.0, rounds + 1) ** -self.fall))
        square = self.gradient**2 + self.noise
        if self.smoothness is None and square > 0:
            far = self.inner_steps * rounds ** (1 - self.fall)
            return replace(self, step=self.distance / math.sqrt(far * falls * square))
        if self.smoothness is None or self.fall > 0:
            raise InputError(
                f"LinearisedADMM.with_best_step(): with gradient={self.gradient}, noise={self.noise}, smoothness="
                f"{self.smoothness} and fall={self.fall} there is no formula; choose a step."
            )
        balanced = math.sqrt(self.noise * self.inner_steps * rounds) / self.distance
        return replace(self, step=1 / (self.smoothness + max(balanced, 1e-9 * self.smoothness)))

    def at_budget(self, rho: float, *, price: float, most: int = 1_000_000) -> tuple[LinearisedADMM, int]:
        """The step and the number of rounds with the least bound of all runs that cost rho-zCDP, and that number."""
        if not (0 < rho < math.inf and 0 < price < math.inf):
            raise InputError(f"LinearisedADMM.at_budget(rho={rho}, price={price}): both are positive and finite.")
        tried = np.unique(np.geomspace(1, most, 200).round().astype(int)).tolist()
        made = {t: replace(self, noise=price * t * self.inner_steps / rho).with_best_step(t) for t in tried}
        best = min(made, key=lambda t: made[t].bound(t))
        return made[best], best

    def _floor(self, steps: np.ndarray) -> np.ndarray:
        if self.smoothness is None:
            return steps * (self.gradient**2 + self.noise) / 2
        return self.noise / (2 * (1 / steps - self.smoothness))
