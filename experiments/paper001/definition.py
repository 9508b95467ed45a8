"""Chan, Xie and Zhao 2024: non-expansiveness, bounds against exact costs, objectives, and the privacy of every user."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from experiments.definition import Cell, Choice, Flaw, Paper, Parameter
from experiments.paper001 import divergence, expansion, training, users, world
from experiments.paper001.gathering import gather

CURVATURES = {"convex": (0.0, 1.0), "strongly convex": (0.1, 1.9)}  # least and most, of every user's loss
LATER = tuple(range(2, 401, 2))
USERS = 200  # of the lasso on which distances are followed


@dataclass(frozen=True, kw_only=True)
class Grid:
    """What is run."""

    later: tuple[int, ...] = LATER
    pairs: int = 5000
    pair_seeds: int = 4
    coupled: int = 400
    compared: tuple[float, ...] = (0.0, 0.1)  # strong convexities of which distances are followed
    convexities: tuple[float, ...] = (0.0, 0.02, 0.1, 0.5)
    stds: tuple[float, ...] = (0.0, 0.003, 0.01, 0.03)
    seeds: int = 10
    members: int = 10_000  # users of the lasso
    positions: int = 1000  # users whose positions are compared
    epsilons: tuple[float, ...] = (1.0, 3.0, 10.0, 30.0)
    guaranteed: int = 4000
    guaranteed_seeds: int = 5


QUICK = Grid(
    pairs=2000,
    pair_seeds=1,
    seeds=4,
    members=4000,
    positions=100,
    epsilons=(1.0, 3.0, 10.0),
    guaranteed=1000,
    guaranteed_seeds=2,
)


def cells(grid: Grid) -> tuple[Cell, ...]:
    """The four experiments, and runs with a guarantee."""
    middle = grid.epsilons[len(grid.epsilons) // 2]
    return (
        *_bounds(grid),
        *_distances(grid),
        *_paths(grid),
        *(_guaranteed(grid, "fixed order", a, epsilon) for a in ("printed", "sharpened") for epsilon in grid.epsilons),
        *(_guaranteed(grid, schedule, "sharpened", middle) for schedule in ("random order", "random stopping")),
    )


def _bounds(grid: Grid) -> Iterator[Cell]:
    unit: dict[str, Any] = {"step": 1.0, "penalty": 1.0, "std": 1.0, "gap": 1.0, "singular": (1.0,), "kernel": True}
    seconds = 0.4 * (grid.positions / 100) ** 1.1
    for kind, (least, most) in CURVATURES.items():
        curvature: dict[str, Any] = {"convexity": least, "smoothness": most}
        yield Cell.of(f"divergence {kind}", divergence.costs, later=grid.later, **unit, **curvature)
        asked = {"users": grid.positions, "std": 1.0, "delta": world.DELTA}
        yield Cell.of(f"users {kind}", users.positions, seconds=seconds, **asked, **curvature)


def _distances(grid: Grid) -> Iterator[Cell]:
    for convexity in grid.compared:
        asked = {"convexity": convexity, "users": USERS}
        yield Cell.of("coupled", expansion.coupled, seconds=0.3, iterations=grid.coupled, seed=0, **asked)
        for seed in range(grid.pair_seeds):
            yield Cell.of("pairs", expansion.pairs, seconds=grid.pairs / 4000, pairs=grid.pairs, seed=seed, **asked)


def _paths(grid: Grid) -> Iterator[Cell]:
    """Every noise for one contraction, every contraction for the least noise."""
    quiet = next(std for std in grid.stds if std > 0)
    one = grid.convexities[len(grid.convexities) // 2]
    for convexity, std in dict.fromkeys([(one, s) for s in grid.stds] + [(c, quiet) for c in grid.convexities]):
        for seed in range(grid.seeds):
            asked = {"convexity": convexity, "std": std, "users": grid.members, "seed": seed}
            yield Cell.of("path", training.path, seconds=0.1 + grid.members / 40_000, **asked)


def _guaranteed(grid: Grid, schedule: str, accounting: str, epsilon: float) -> Cell:
    return Cell.of(
        "guaranteed",
        training.guaranteed,
        seconds=(3.0 + grid.guaranteed_seeds) * grid.guaranteed / 1000,
        users=grid.guaranteed,
        convexity=0.0,
        epsilon=epsilon,
        accounting=accounting,
        seeds=grid.guaranteed_seeds,
        schedule=schedule,
    )


PARAMETERS = tuple(
    Parameter(name=name, value=value, source="chosen")
    for name, value in (
        ("bounds: step, penalty, noise, change of gradient, singular values", 1.0),
        ("bounds: least and most curvature, convex", CURVATURES["convex"]),
        ("bounds: least and most curvature, strongly convex", CURVATURES["strongly convex"]),
        ("iterations after the user", (LATER[0], LATER[-1])),
        ("lasso: features, pieces", (world.FEATURES, world.PIECES)),
        ("lasso: standard deviation of label noise", world.LABEL_NOISE),
        ("lasso: strength of |D x|_1", world.STRENGTH),
        ("lasso: Huber threshold", world.THRESHOLD),
        ("lasso: step, penalty", (world.STEP, world.PENALTY)),
        ("lasso: seed of the data", world.DATA_SEED),
        ("delta", world.DELTA),
    )
)
CHOICES = (
    Choice(
        what="Data and D",
        chosen="A step function seen through random rows of norm 1; D takes first differences",
        why="The paper states a generalised lasso and no data; this is the fused lasso.",
    ),
    Choice(
        what="Loss",
        chosen="Huber's: the squared loss with each residual clipped",
        why="The bound needs a gradient that moves by a bounded amount, which the squared loss does not have.",
    ),
    Choice(
        what="Scale of the constraint",
        chosen="A = D over its smallest singular value, the penalty on y scaled back",
        why="The printed constant is for singular values of at least 1. The paper reaches them by elimination, which "
        "changes the algorithm; scaling does not.",
    ),
    Choice(
        what="Exact cost",
        chosen="The largest over quadratic losses and quadratic g, in closed form",
        why="Then everything is Gaussian; other losses may cost more, and never more than the bounds.",
    ),
    Choice(
        what="A guarantee to hold fixed",
        chosen="Epsilon of the first half of the users, fixed order, final model",
        why="The last users of a fixed order have their own noise only, whatever the bound.",
    ),
)
FLAWS = (
    Flaw(
        what="The printed constant is loose",
        consequence="Sound, and several times larger than the exact cost; for few iterations it says less than the "
        "user's own noise does.",
    ),
    Flaw(
        what="The amplification is stated for one user, the others by random order or stopping",
        consequence="Sound in the Renyi sense; in epsilon at a small delta little is gained.",
    ),
)
PAPER = Paper(
    number="001",
    title="Privacy amplification by iteration for ADMM with (strongly) convex objective functions",
    authors="T.-H. Hubert Chan, Hao Xie, Mengshi Zhao",
    reference="AAAI 2024, arXiv:2312.08685",
    about="Noisy gradient ADMM, one user an iteration. Whoever sees only the final iterate learns the less of a user, "
    "the more iterations follow. The paper reports no numbers: its lemma and its bounds are put to the test.",
    parameters=PARAMETERS,
    choices=CHOICES,
    flaws=FLAWS,
    reported=(),
    grids={"quick": QUICK, "full": Grid()},
    cells=cells,
    gather=gather,
)
