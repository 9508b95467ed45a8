"""Softmax gradients and steps of several runs at once.

A model is (features, lanes): the numbers of all runs for a feature lie side by side, class after class, filled up with
zeros. Loops over lanes are vector instructions.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from experiments.paper003.blocks import HEIGHT, TILE, lanes_of, products, width_of
from experiments.paper003.floats import compile_, exponential, f32, gaussian_of, laplace_of, next_bits


@cache
def gradient_pass(runs: int, classes: int) -> Callable[..., None]:
    """The compiled add_gradient(starts, columns, values, rows, sums, labels, first, last, z, gradient, largest).

    It adds X'(softmax(X z) - Y) of the blocks first..last to `gradient`, and raises largest[run] to the largest
    |x|_1 |softmax(x z) - y|_1 of a row.
    """
    lanes, used = lanes_of(runs, classes), runs * classes
    width = width_of(lanes)
    score, transpose = products(lanes)

    @compile_  # type: ignore[untyped-decorator]
    def to_residual(scores: Any, label: int, size: Any, spread: Any, largest: Any) -> None:
        # `spread` has a number of each run on all its lanes, so that whole rows of lanes are computed at once.
        for r in range(runs):
            spread[r] = scores[r]
        for k in range(1, classes):
            for r in range(runs):
                spread[r] = max(spread[r], scores[k * runs + r])
        for lane in range(runs, used):
            spread[lane] = spread[lane - runs]
        for lane in range(lanes):
            scores[lane] = exponential(max(scores[lane] - spread[lane], f32(-87)))
        for r in range(runs):
            spread[r] = scores[r]
        for k in range(1, classes):
            for r in range(runs):
                spread[r] += scores[k * runs + r]
        for r in range(runs):
            spread[r] = f32(1) / spread[r]
        for lane in range(runs, used):
            spread[lane] = spread[lane - runs]
        for lane in range(lanes):
            scores[lane] *= spread[lane]
        for r in range(runs):
            scores[label * runs + r] -= f32(1)
            # The residuals of the other classes sum to minus that of the label.
            largest[r] = max(largest[r], f32(-2) * scores[label * runs + r] * size)

    @compile_  # type: ignore[untyped-decorator]
    def add_gradient(
        starts: Any,
        columns: Any,
        values: Any,
        rows: Any,
        sums: Any,
        labels: Any,
        first: int,
        last: int,
        z: Any,
        gradient: Any,
        largest: Any,
    ) -> None:
        scores = np.zeros((TILE * HEIGHT, lanes), dtype=np.float32)
        spread = np.zeros(lanes, dtype=np.float32)
        for tile in range(first, last, TILE):
            end = min(tile + TILE, last)
            for lane in range(0, lanes, width):
                for block in range(tile, end):
                    score(columns, values, starts[block], starts[block + 1], z, lane, scores, HEIGHT * (block - tile))
            for block in range(tile, end):
                for image in range(HEIGHT):
                    row, own = rows[block, image], scores[HEIGHT * (block - tile) + image]
                    if row < 0:
                        own[:] = f32(0)
                    else:
                        to_residual(own, labels[row], sums[row], spread, largest)
            for lane in range(0, lanes, width):
                for block in range(tile, end):
                    transpose(
                        columns,
                        values,
                        starts[block],
                        starts[block + 1],
                        gradient,
                        lane,
                        scores,
                        HEIGHT * (block - tile),
                    )

    compiled: Callable[..., None] = add_gradient
    return compiled


@cache
def agent_step(output: bool) -> Callable[..., None]:
    """The compiled step of an agent, after its gradient; lanes have their own numbers, which are rows of `numbers`.

        gradient = share gradient + shrink z + noise                     objective perturbed, Laplace
        z        = clip((rho w + dual + near z - gradient) / (rho + near), z -+ reach) + noise       output perturbed,
        dual    += answer (w - z),   summed += z - dual inverse                                      Gaussian

    The answer is rho where the hub speaks first. Where it speaks last, as in OutP, `before` times (w - z) is what the
    dual still lacks from the iteration before.
    """

    @compile_  # type: ignore[untyped-decorator]
    def step(gradient: Any, z: Any, dual: Any, w: Any, summed: Any, numbers: Any, states: Any) -> None:
        share, shrink, rho, near = numbers[0], numbers[1], numbers[2], numbers[3]
        reach, scale, answer, inverse, before = numbers[4], numbers[5], numbers[6], numbers[7], numbers[8]
        for j in range(z.shape[0]):
            for lane in range(z.shape[1]):
                old, hub = z[j, lane], w[j, lane]
                price = dual[j, lane] + before[lane] * (hub - old)
                slope = share[lane] * gradient[j, lane] + shrink[lane] * old
                if not output:
                    slope += scale[lane] * laplace_of(next_bits(states, lane))
                fresh = (rho[lane] * hub + price + near[lane] * old - slope) / (rho[lane] + near[lane])
                fresh = min(max(fresh, old - reach[lane]), old + reach[lane])
                if output:
                    fresh += scale[lane] * gaussian_of(next_bits(states, lane))
                price += answer[lane] * (hub - fresh)
                z[j, lane], dual[j, lane] = fresh, price
                summed[j, lane] += fresh - price * inverse[lane]
                gradient[j, lane] = f32(0)  # for the next agent

    compiled: Callable[..., None] = step
    return compiled


NUMBERS = ("share", "shrink", "rho", "near", "reach", "scale", "answer", "inverse", "before")


@compile_  # type: ignore[untyped-decorator]
def fill(drawn: Any, states: Any, output: bool) -> None:
    """Fill (features, lanes) with the noise that a step draws, before its scale; the states go on."""
    for j in range(drawn.shape[0]):
        for lane in range(drawn.shape[1]):
            bits = next_bits(states, lane)
            drawn[j, lane] = gaussian_of(bits) if output else laplace_of(bits)
