"""Ryu and Kim 2022: DP-IADMM on MNIST and FEMNIST."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from experiments.definition import Cell, Choice, Flaw, Paper, Parameter
from experiments.paper003 import corrected, published, reported, spending, worlds
from experiments.paper003.gathering import gather


@dataclass(frozen=True, kw_only=True)
class Grid:
    """What is run. Published runs cost a pass over all images an iteration.

    `methods` have "Trust" and "Trust, shrinking" among them. Every writer of FEMNIST has a model of its own, so its
    iterations are long: it has its own numbers of everything.
    """

    sets: tuple[str, ...] = worlds.SETS
    methods: tuple[str, ...] = published.METHODS
    epsilons: tuple[float, ...] = reported.EPSILONS
    images: int = 60_000
    exact_images: int = 60_000
    iterations: int = published.ITERATIONS
    seeds: int = 10
    femnist_methods: tuple[str, ...] = published.METHODS
    femnist_iterations: int = published.ITERATIONS
    femnist_seeds: int = 1
    scalings: tuple[float, ...] = (1.0, 100.0, 1000.0)
    total_epsilons: tuple[float, ...] = (0.5, 1.0, 3.0, 8.0)
    femnist_total_epsilons: tuple[float, ...] = (0.5, 1.0, 3.0, 8.0)
    total_images: int = 60_000
    total_seeds: int = 5
    carded: float = 1.0  # the total epsilon at which cards are made


QUICK = Grid(
    sets=("MNIST",),
    epsilons=(0.05, 1.0, 5.0),
    images=10_000,
    iterations=600,
    seeds=3,
    total_epsilons=(1.0, 8.0),
    total_images=10_000,
    total_seeds=3,
)
# The errors that the paper's text states, with its iterations and all images, in a quarter of an hour on two cores.
TABLE = Grid(
    methods=("Trust", "Trust, shrinking"),
    epsilons=(0.05, 5.0),
    seeds=1,
    femnist_methods=("Trust",),
    femnist_iterations=500,
    femnist_total_epsilons=(),
    scalings=(),
    total_images=10_000,
    total_seeds=1,
)
# A radius of 1/t^2 moves no coordinate by more than 1/STOPPED after so many iterations.
STOPPED = 2000
TOGETHER = {"MNIST": 3, "FEMNIST": 1}  # runs that go side by side: about as many as two or four vector registers hold


def cells(grid: Grid) -> tuple[Cell, ...]:
    """Published and corrected runs, what published runs cost, and what their noise scale tells."""
    made: list[Cell] = []
    for data in grid.sets:
        images = _images(data, grid.images)
        made += [
            *(
                Cell.of("exact", corrected.exact, data=data, images=count, seconds=4e-4 * count or 60.0)
                for count in dict.fromkeys(
                    _images(data, asked) for asked in (grid.images, grid.total_images, grid.exact_images)
                )
            ),
            Cell.of("leak", spending.scale_leak, data=data, images=images, seconds=1.0),
            *(
                cell
                for method in (grid.methods if data == "MNIST" else grid.femnist_methods)
                for cell in _published(data, method, grid)
            ),
            *(
                _corrected(data, method, grid, epsilon, seed)
                for method in _methods(data)
                for epsilon in (grid.total_epsilons if data == "MNIST" else grid.femnist_total_epsilons)
                for seed in range(grid.total_seeds)
            ),
        ]
    made += _scalings(grid)
    counts = {dict(cell.settings)["iterations"] for cell in made if cell.group == "published"}
    made += [
        Cell.of("totals", spending.totals, epsilon=epsilon, iterations=iterations, seconds=1.0)
        for epsilon in grid.epsilons
        for iterations in sorted(counts)
    ]
    return tuple(made)


def _images(data: str, images: int) -> int:
    return images if data == "MNIST" else 0  # FEMNIST is always whole


def _published(data: str, method: str, grid: Grid) -> list[Cell]:
    """Runs of a method, so many in a cell as go side by side; the stated numbers and the run without noise first."""
    seeds, iterations = grid.seeds, grid.iterations
    if data == "FEMNIST":
        seeds, iterations = grid.femnist_seeds, grid.femnist_iterations
    if method == "Trust, shrinking":
        seeds, iterations = 1, min(iterations, STOPPED)
    first = [(epsilon, 0) for epsilon in (grid.epsilons[0], grid.epsilons[-1], math.inf)]
    rest = [(epsilon, seed) for seed in range(seeds) for epsilon in grid.epsilons if (epsilon, seed) not in first]
    runs, together = [*first, *rest], TOGETHER[data]
    return [
        _run("published", data, method, tuple(runs[start : start + together]), grid.images, iterations)
        for start in range(0, len(runs), together)
    ]


def _scalings(grid: Grid) -> list[Cell]:
    run = (grid.epsilons[len(grid.epsilons) // 2], 0)
    return [
        _run("scaling", "MNIST", "Prox", (run,), grid.images, grid.iterations, scaling=scaling)
        for scaling in grid.scalings
    ]


def _run(group: str, data: str, method: str, runs: Any, images: int, iterations: int, **more: float) -> Cell:
    # A pass over the images for all runs, or over all writers' images and models for one; measured.
    pass_ = (0.2e-6 + 0.23e-6 * len(runs)) * images if data == "MNIST" else 0.11
    return Cell.of(
        group,
        published.train,
        seconds=3.0 + pass_ * iterations,
        data=data,
        method=method,
        runs=runs,
        images=_images(data, images),
        iterations=iterations,
        **more,
    )


def _methods(data: str) -> tuple[str, ...]:
    """The second moment of FEMNIST's 62 classes would be noise; its writers keep their own methods."""
    return corrected.METHODS if data == "MNIST" else corrected.METHODS[:-1]


def _corrected(data: str, method: str, grid: Grid, epsilon: float, seed: int) -> Cell:
    images = grid.total_images if data == "MNIST" else 0
    return Cell.of(
        "corrected",
        corrected.train,
        data=data,
        method=method,
        epsilon=epsilon,
        images=images,
        seed=seed,
        carded=seed == 0 and epsilon == grid.carded,
        seconds=6e-4 * images if data == "MNIST" else 60.0,
    )


PARAMETERS = tuple(
    Parameter(name=name, value=value, source=source)
    for name, value, source in (
        ("agents of MNIST", worlds.AGENTS, "paper"),
        ("classes", worlds.CLASSES, "paper"),
        ("beta", published.BETA, "paper"),
        ("penalty c1, c2, Tc", published.PENALTY, "paper"),
        ("iterations", published.ITERATIONS, "paper; the code makes one more"),
        ("epsilons of one iteration", reported.EPSILONS, "paper"),
        ("delta of OutP and of totals", published.DELTA, "paper, for OutP"),
        ("corrected: step", corrected.STEP, "chosen"),
        (
            "corrected: images divided by, bound of their 1-norm",
            (corrected.LENGTH, corrected.ROW_BOUND_1),
            "chosen, public",
        ),
        (
            "corrected: fewest and most rounds, reach of the noise",
            (corrected.FEWEST, corrected.MOST, corrected.REACH),
            "chosen",
        ),
    )
)
CHOICES = (
    Choice(
        what="Which images an agent of MNIST holds, and where the iteration starts",
        chosen="Images are dealt in turn, equal shares; all models and duals start at zero",
        why="Not stated. The noise scale of an agent is that of its largest record, so shares matter little.",
    ),
    Choice(
        what="OutP of the published runs",
        chosen="Huang et al. with the classical Gaussian mechanism and the longest gradient in the data",
        why="The constants of the public baseline are inconsistent (a variance as a deviation, a bound of "
        "num_data) and not "
        "stated in the paper.",
    ),
    Choice(
        what="Number of iterations of corrected runs",
        chosen="As many as it takes Gaussian noise within the budget to walk two units of score",
        why="A public rule; 20,000 iterations leave each of them nothing of a total epsilon.",
    ),
    Choice(
        what="Images of quick runs",
        chosen="A first part of MNIST and fewer iterations; FEMNIST in full runs only",
        why="An iteration is a pass over all images. The grid 'table' has all images and 20,000 iterations of MNIST "
        "for the errors that the paper states, and 500 of FEMNIST.",
    ),
    Choice(
        what="FEMNIST",
        chosen="The 15,440 training images of 114 writers that could be obtained",
        why="The paper's 36,708 of 195 writers are not all public in the form it used.",
    ),
)
FLAWS = (
    Flaw(
        what="The noise scale is measured on the agent's own records",
        consequence="The scale tells records apart; no finite epsilon holds.",
    ),
    Flaw(
        what="Epsilon is that of one iteration",
        consequence="20,000 iterations at 0.05 are about 60 in all, at 5 they are about 81,000.",
    ),
    Flaw(
        what="The bound is that of a record that is added, not replaced, and lacks an absolute value",
        consequence="Half of what replace-one needs; nothing at all for features of both signs.",
    ),
    Flaw(
        what="The public code's trust region never shrinks (operator precedence)",
        consequence="The reported errors are those of an iteration without a trust region; as stated, it stops moving.",
    ),
    Flaw(
        what="The training cost on private images is printed and written without noise",
        consequence="A release that nothing accounts for.",
    ),
)
PAPER = Paper(
    number="003",
    title="Differentially private federated learning via inexact ADMM with multiple local updates",
    authors="Minseok Ryu, Kibaek Kim",
    reference="arXiv:2202.09409, 2022",
    about="Consensus ADMM with linearised subproblems whose objective is perturbed by Laplace noise, in a "
    "proximal and a "
    "trust-region form, against output perturbation, for softmax regression on handwritten digits and characters.",
    parameters=PARAMETERS,
    choices=CHOICES,
    flaws=FLAWS,
    reported=reported.ALL,
    grids={"quick": QUICK, "full": Grid(), "table": TABLE},
    cells=cells,
    gather=gather,
)
