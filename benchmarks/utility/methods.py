"""Every method of the comparison: what it is called, where it applies, and how it is tuned.

A method with several settings is shown at the best of them, chosen on the test part with the first seed. That favours
it, since nobody who keeps a budget can choose so; ours have no settings.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from typing import Any

from benchmarks.utility import classical, diffprivlib_rival, opacus_rival, ours, recent
from benchmarks.utility.tasks import Task
from consenso.errors import ConsensoError

Fit = Callable[[Task, Any, float, float, int], Any]


@dataclass(frozen=True, kw_only=True)
class Method:
    """A private fit with the settings that it may be given; one setting means that nothing is tuned."""

    name: str
    fit: Fit
    settings: tuple[Any, ...] = (None,)
    kinds: tuple[str, ...] = ("binary", "multiclass", "regression")
    largest: int = 100_000_000  # rows times columns times outputs beyond which it takes too long

    def applies(self, task: Task) -> bool:
        """Whether the method can be run on a task."""
        return (
            task.kind in self.kinds and task.X.size * (task.classes if task.kind == "multiclass" else 1) <= self.largest
        )


def _own(name: str) -> Method:
    # No table of this comparison is too large for ours.
    return Method(
        name=f"consenso, {name}", fit=lambda task, _, *budget: ours.fit(task, name, *budget), largest=1_000_000_000
    )


def methods() -> list[Method]:
    """What can be run in this environment."""
    found = [
        *(_own(name) for name in ours.NAMES),
        Method(
            name="output perturbation, best of 3",
            fit=classical.output_perturbation,
            settings=(1e-3, 1e-2, 1e-1),
            kinds=("binary", "multiclass"),
        ),
        Method(name="AdaSSP", fit=lambda task, _, *budget: classical.adassp(task, *budget), kinds=("regression",)),
        Method(
            name="double-noise Newton, best of 4",
            fit=recent.newton,
            settings=tuple(product((0.5, 2.0), (8, 20))),
            kinds=("binary",),
        ),
        Method(
            name="boosted AdaSSP, corrected, best of 6",
            fit=recent.boosted_adassp,
            settings=tuple(product((5, 20, 60), (0.3, 1.0))),
            kinds=("regression",),
        ),
        Method(
            name="iterative Hessian mixing, best of 4",
            fit=recent.hessian_mixing,
            settings=tuple(product((3, 10), (0.3, 1.0))),
            kinds=("regression",),
        ),
        Method(
            name="Frank-Wolfe, best of 6",
            fit=recent.frank_wolfe,
            settings=tuple(product((3.0, 10.0, 30.0), (10, 40))),
            kinds=("binary", "regression"),
        ),
    ]
    if importlib.util.find_spec("opacus") is not None:
        name = f"Opacus DP-SGD, best of {len(opacus_rival.GRID)}"
        found.append(Method(name=name, fit=opacus_rival.fit, settings=opacus_rival.GRID, largest=500_000_000))
        found.append(
            Method(
                name="Opacus DP-SGD, its example's settings",
                fit=opacus_rival.fit,
                settings=(opacus_rival.DEFAULTS,),
                largest=500_000_000,
            )
        )
    if diffprivlib_rival.python() is not None:
        found.append(
            Method(
                name="diffprivlib (pure epsilon), best of 2",
                fit=lambda task, strength, epsilon, _, seed: diffprivlib_rival.fit(task, strength, epsilon, seed),
                settings=(1e-4, 1e-2),
                kinds=("binary", "regression"),
            )
        )
    return found


def attempt(method: Method, task: Task, setting: Any, epsilon: float, delta: float, seed: int) -> Any:
    """The coefficients, or None where a solver of ours refuses the task."""
    try:
        return method.fit(task, setting, epsilon, delta, seed)
    except ConsensoError:
        return None
