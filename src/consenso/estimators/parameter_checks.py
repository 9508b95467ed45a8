"""What the parameters of private linear models must be; errors name them and say what to do."""

from __future__ import annotations

import difflib
import math
from typing import TYPE_CHECKING, Any

from consenso.errors import InputError
from consenso.estimators.privacy_params import is_number
from consenso.problem import LEAST_ROW_BOUND, MOST_ROW_BOUND

if TYPE_CHECKING:
    from consenso.estimators.linear import PrivateLinearModel

PUBLIC, PRIVATE = "public", "private"


def check_linear(model: PrivateLinearModel) -> None:
    """Refuse bounds, penalties and solvers that cannot be."""
    owner = type(model).__name__
    private = math.isfinite(model.epsilon)
    if model.bounds not in (PUBLIC, PRIVATE):
        raise InputError(
            f"{owner}(bounds={model.bounds!r}): bounds that are not given are found within the budget ('private'), "
            "or have to be given ('public')."
        )
    if private and model.bounds == PUBLIC and model.row_bound is None:
        raise InputError(
            f"{owner}(row_bound=None, bounds='public'): with a finite epsilon the 2-norm of every row needs a "
            "public bound, to which longer rows are shortened; choose it from public knowledge (sqrt(features) for "
            "columns in [-1, 1]), or leave bounds out to have it found within the budget."
        )
    check_row_bound(owner, model.row_bound)
    if model.alpha is not None and not is_strength(model.alpha):
        raise InputError(
            f"{owner}(alpha={model.alpha!r}): a penalty is a finite number of at least 0; leave it out for the default."
        )
    l1_ratio = getattr(model, "l1_ratio", 0.0)
    if not is_strength(l1_ratio) or l1_ratio > 1:
        raise InputError(f"{owner}(l1_ratio={l1_ratio!r}): the share of the 1-norm lies in [0, 1].")
    check_solver(owner, model.solver)


def check_solver(owner: str, solver: str) -> None:
    """Refuse the name of a solver that there is not."""
    from consenso.solvers import names

    if solver == "auto" or solver in names():
        return
    near = difflib.get_close_matches(str(solver), ("auto", *names()), n=1)
    hint = f"did you mean {near[0]!r}?" if near else f"use 'auto' or one of {', '.join(map(repr, names()))}."
    raise InputError(f"{owner}(solver={solver!r}): there is no such solver; {hint}")


def check_size(owner: str, name: str, value: Any, meaning: str) -> None:
    """A bound is a positive finite number, or None."""
    if value is None:
        return
    if not (is_number(value) and 0 < value < math.inf):
        raise InputError(f"{owner}({name}={value!r}): {name} is {meaning}, a positive finite number.")


def check_row_bound(owner: str, value: Any) -> None:
    """A bound on rows is a number within which rows can be shortened exactly, or None."""
    check_size(owner, "row_bound", value, "a bound on the 2-norm of rows")
    if value is not None and not LEAST_ROW_BOUND <= value <= MOST_ROW_BOUND:
        raise InputError(
            f"{owner}(row_bound={value!r}): a bound on the 2-norm of rows lies between {LEAST_ROW_BOUND:g} and "
            f"{MOST_ROW_BOUND:g}; change the units of the columns."
        )


def is_strength(value: Any) -> bool:
    return is_number(value) and 0 <= value < math.inf
