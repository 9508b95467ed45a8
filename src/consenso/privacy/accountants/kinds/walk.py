"""The network cost of the stateless random walk of docs/privacy.md, in reversed time.

With n parties, c observers, r = 1 - (c + 1)/n, a visit that costs `visit` in (order - 1) RDP, and m steps left,

    w_m = sum_{g=1}^{m-1} r^(g-1) exp(visit/g) v_{m-g} / n + r^(m-1) exp(visit/m),    v_m = c u_{m-1} + w_m
    u_m = (1 - 1/n) u_{m-1} + w_m / n,    u_0 = 1,    RDP = log(u_steps) / (order - 1)

g counts the hops until the next visit of an observer or of the protected party; the last exponential is the final
model and is 1 when nobody sees it. The recursion runs on w - 1 and u - 1, whose terms are all positive, so that small
costs keep their digits.

Long walks would cost the square of their length. Gaps beyond `_EXACT` hops are therefore taken in blocks whose
exponentials are those of the block's first gap: an upper bound, and each block's sum follows from the one before.
"""

from __future__ import annotations

import numpy as np

from consenso.arrays import Array, IntArray
from consenso.errors import InputError
from consenso.privacy.accountants.costs import find_rdp, find_rho, finite, not_negative, simplify, whole
from consenso.privacy.events import Event, Nothing, TokenWalk

_EXACT_STEPS = 4096
_EXACT = 128
# Blocks grow by this factor, which bounds the overestimate of their exponents.
_GROWTH = 1 / 32


def walk_rdp(visit_rho: float, parties: int, steps: int, observers: int, final_model: bool, orders: Array) -> Array:
    """RDP of the walk at every order; never more than the cost for whoever sees every hop."""
    visits = (orders - 1) * orders * visit_rho
    # The local bound: each hop is a visit with probability 1/n, and the path is revealed.
    log_miss, log_hit = np.log1p(-1 / parties), -np.log(parties)
    local = np.where(
        visits < 1, np.log1p(np.expm1(np.minimum(visits, 1.0)) / parties), np.logaddexp(log_miss, log_hit + visits)
    )
    with np.errstate(over="ignore", invalid="ignore"):
        excess = _excess(visits, parties, steps, observers, final_model)
    network = np.where(np.isfinite(excess), np.log1p(np.where(np.isfinite(excess), excess, 0.0)), np.inf)
    return np.asarray(np.minimum(network, steps * local) / (orders - 1), dtype=np.float64)


def _excess(visits: Array, parties: int, steps: int, observers: int, final_model: bool) -> Array:
    """u_steps - 1 for every visit cost; infinite or NaN where it overflows."""
    stay = 1 - (observers + 1) / parties
    exact = steps if steps <= _EXACT_STEPS else _EXACT
    gaps = np.arange(1, exact + 1)
    # Newest first in time is last in the array, so the weights of the gaps are reversed once.
    weights = (stay ** (gaps - 1) * np.expm1(visits[:, None] / gaps))[:, ::-1]
    first, last = _blocks(exact + 1, steps)
    enter = np.asarray(stay ** (first - 1.0), dtype=np.float64)
    leave = np.asarray(stay ** (1.0 * last), dtype=np.float64)
    block_weights = np.expm1(visits[:, None] / first)
    ends = np.expm1(visits[:, None] / np.arange(1, steps + 1)) if final_model else np.zeros((visits.size, steps))

    v = np.zeros((visits.size, steps + 1))  # v_0 is never used: gaps end before the walk does
    plain = np.zeros(visits.size)  # sum over g of r^(g-1) (v_{m-g} - (c + 1))
    blocks = np.zeros((visits.size, first.size))
    u = np.zeros(visits.size)  # u_m - 1
    for m in range(1, steps + 1):
        window = v[:, max(1, m - exact) : m]
        w = np.einsum("og,og->o", window, weights[:, exact - window.shape[1] :])
        if first.size and m > first[0]:
            blocks *= stay
            blocks += _shift(v, m - first, enter) - _shift(v, m - 1 - last, leave)
            w += np.einsum("og,og->o", blocks, block_weights)
        w = (w + plain) / parties + stay ** (m - 1) * ends[:, m - 1]
        grown = observers * u + w
        v[:, m] = observers + 1 + grown
        plain = stay * plain + grown
        u = (1 - 1 / parties) * u + w / parties
    return u


def _blocks(start: int, steps: int) -> tuple[IntArray, IntArray]:
    """First and last gap of every block from `start` on."""
    first = []
    while start < steps:
        first.append(start)
        start += max(1, int(start * _GROWTH))
    edges = np.array([*first, max(start, steps)], dtype=np.int64)
    return edges[:-1], edges[1:] - 1


def _shift(v: Array, positions: IntArray, factors: Array) -> Array:
    inside = positions >= 1
    return np.asarray(v[:, np.where(inside, positions, 0)] * (factors * inside), dtype=np.float64)


@simplify.register
def _(event: TokenWalk) -> Event:
    rho = not_negative(event, "visit_rho")
    parties = whole(event, "parties", least=2)
    steps = whole(event, "steps", least=0)
    observers = whole(event, "observers", least=0)
    if observers >= parties:
        raise InputError(
            f"Walk(observers={observers}, parties={parties}): someone must be left to protect; name fewer observers."
        )
    if steps == 0 or (observers == 0 and not event.final_model):
        return Nothing()
    return finite(TokenWalk(rho, parties, steps, observers, bool(event.final_model)), rho)


@find_rdp.register
def _(part: TokenWalk, orders: Array) -> Array:
    return walk_rdp(part.visit_rho, part.parties, part.steps, part.observers, part.final_model, orders)


@find_rho.register
def _(part: TokenWalk) -> float | None:
    return part.steps * part.visit_rho
