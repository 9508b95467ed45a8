"""What a loss brings for compiled loops says what its own methods say, and so does the prox of a regularizer."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from consenso.losses import Huber
from consenso.losses.formulas import HasFormulas, compile_loss
from consenso.regularizers import L1
from consenso.regularizers.formulas import compile_prox, find_formula
from consenso.testing.compiled import make_examples

SCORES = np.concatenate((np.linspace(-40, 40, 161) + 0.013, [-700.0, 700.0]))
STEPS = np.geomspace(1e-3, 1e3, len(SCORES))


@pytest.mark.parametrize("loss", [each for each in make_examples("losses") if isinstance(each, HasFormulas)], ids=repr)
@pytest.mark.parametrize("target", [-1.0, 1.0])
def test_the_formulas_of_a_loss_are_its_methods(loss, target: float) -> None:
    formulas, targets, count = loss.formulas(), np.full(SCORES.shape, target), len(SCORES)
    parameters = np.array(formulas.parameters)
    slopes, curvatures = np.empty(count), np.empty(count)
    formulas.prox_slopes(count, parameters, SCORES, STEPS, targets, slopes)
    np.testing.assert_allclose(slopes, loss.prox_slope(SCORES, STEPS, targets), rtol=1e-13, atol=1e-300)
    for place in (0, count - 1):  # a walk has blocks of one
        one = np.empty(1)
        given = (each[place : place + 1] for each in (SCORES, STEPS, targets))
        formulas.prox_slopes(1, parameters, *given, one)
        assert one[0] == slopes[place]
    if formulas.derivatives is not None:
        formulas.derivatives(count, parameters, SCORES, targets, slopes, curvatures)
        np.testing.assert_allclose(slopes, loss.slope(SCORES, targets), rtol=1e-14, atol=1e-300)
        np.testing.assert_allclose(curvatures, loss.curvature(SCORES, targets), rtol=1e-13, atol=1e-300)
    else:
        assert loss.curvature_bound == np.inf


@pytest.mark.parametrize("regularizer", list(make_examples("regularizers")), ids=repr)
def test_the_formula_of_a_regularizer_is_its_prox(regularizer) -> None:
    formula, v = find_formula(regularizer, 0.7), np.linspace(-2, 2, 9)
    if formula is None:
        return
    x, held = v.copy(), len(v) - formula.free
    formula.prox(held, np.array(formula.parameters), v[:held], x[:held])
    np.testing.assert_allclose(x, regularizer.prox(v, 0.7), rtol=1e-15)


@dataclass(frozen=True, kw_only=True)
class Steeper(Huber):
    """Inherits formulas that are not its own."""

    def prox_slope(self, points, steps, targets):
        return 2 * super().prox_slope(points, steps, targets)


@dataclass(frozen=True, kw_only=True)
class Stronger(L1):
    """The same for a regularizer."""

    def prox(self, v, step):
        return super().prox(v, 2 * step)


def test_formulas_of_a_parent_are_not_taken_for_those_of_a_subclass() -> None:
    assert compile_loss(Huber()) is not None
    assert compile_loss(Steeper()) is None
    assert compile_prox(L1(strength=1.0), 1.0) is not None
    assert compile_prox(Stronger(strength=1.0), 1.0) is None
