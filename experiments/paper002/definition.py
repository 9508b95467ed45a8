"""Huang and Gong 2020: IPADMM on Adult."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from experiments import adult_peers
from experiments.definition import Cell, Choice, Flaw, Paper, Parameter
from experiments.paper002 import corrected, published, theorems
from experiments.paper002.gathering import gather
from experiments.paper002.objections import CASES


@dataclass(frozen=True, kw_only=True)
class Grid:
    """What is run. `middle` is one of `epsilons` and of `compared`."""

    epsilons: tuple[float, ...] = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0)
    middle: float = 1.0
    inners: tuple[int, ...] = (1, 2, 5, 10, 15, 20, 25)
    compared: tuple[float, ...] = (0.5, 1.0)
    methods: tuple[str, ...] = tuple(corrected.FREE)
    seeds: int = 10


QUICK = Grid(epsilons=(0.1, 1.0, 5.0), inners=(1, 10, 25), seeds=3)
SECONDS = {"PVP": 7.0, "DVP": 3.0, "R-ADMM": 3.0}  # of a run; others take about two


def cells(grid: Grid) -> tuple[Cell, ...]:
    """Published and corrected runs of IPADMM, the methods that it is compared with in both forms, and theorems."""
    pairs = dict.fromkeys(
        [*((epsilon, corrected.INNER) for epsilon in grid.epsilons), *((grid.middle, inner) for inner in grid.inners)]
    )
    made = [Cell.of("reference", corrected.exact, seconds=5.0)]
    for epsilon, inner in pairs:
        for seed in range(grid.seeds):
            asked: dict[str, Any] = {"epsilon": epsilon, "inner": inner, "seed": seed}
            made += [
                Cell.of("published", published.train, seconds=0.3 + 0.27 * inner, **asked),
                Cell.of("corrected", corrected.inner_steps, carded=False, seconds=0.5 + 0.27 * inner, **asked),
            ]
    for method, form in [*((m, f) for m in grid.methods for f in ("own", "free")), (corrected.SERVER, "free")]:
        for epsilon in grid.compared:
            for seed in range(grid.seeds):
                asked = {"method": method, "form": form, "epsilon": epsilon, "seed": seed}
                carded, seconds = seed == 0 and epsilon == grid.middle, SECONDS.get(method, 2.0)
                made.append(Cell.of("baseline", corrected.baseline, seconds=seconds, carded=carded, **asked))
    made += [
        Cell.of("theorem composition", theorems.composition, steps=500, delta=published.DELTA, seconds=0.1),
        Cell.of("theorem constant", theorems.constant, delta=published.DELTA, seconds=0.1),
        Cell.of("theorem minibatch", theorems.minibatch, records=452, batch=32, seconds=0.1),
    ]
    return tuple(made)


PARAMETERS = tuple(
    Parameter(name=name, value=value, source=source)
    for name, value, source in (
        ("nodes, fully connected", published.NODES, "paper"),
        ("penalty", published.PENALTY, "paper"),
        ("regularization", published.REGULARIZATION, "paper; a node holds a share of it"),
        ("delta", published.DELTA, "paper"),
        ("rounds", published.ROUNDS, "chosen"),
        ("growth of the proximity", published.GROWTH, "chosen"),
        ("c_0", published.CONSTANT, "chosen"),
        ("own form: rounds of PVP, of DVP and R-ADMM", (adult_peers.EXACT, adult_peers.PURE), "chosen on Adult"),
        (
            "free options: clip, reach of the noise, of pure noise",
            (adult_peers.CLIP, adult_peers.REACH, adult_peers.SHORT),
            "chosen on Adult, see adult_peers",
        ),
        ("server: step, rounds", (corrected.SERVER_STEP, corrected.SERVER_ROUNDS), "chosen"),
    )
)
CHOICES = (
    Choice(
        what="Number of rounds",
        chosen=f"{published.ROUNDS} for IPADMM and DP-ADMM in their own form, {adult_peers.EXACT} for PVP, "
        f"{adult_peers.PURE} "
        "for DVP and R-ADMM; with free options, from the budget",
        why="The paper does not state it. Pure noise allows few rounds.",
    ),
    Choice(
        what="Constant of the proximity's growth",
        chosen=f"{published.GROWTH} sqrt(k r)",
        why="It depends on the diameter and other numbers that the paper leaves open; a faster growth stops the nodes "
        "before they have learnt much.",
    ),
    Choice(what="c_0 of Theorem 6", chosen="1", why="The paper leaves it open; 1 is valid for the epsilons shown."),
    Choice(
        what="PVP, DVP and R-ADMM",
        chosen="Local problems solved to a certified tolerance; DVP and R-ADMM with noise that is purely private",
        why="Only that noise has a proof under replace-one.",
    ),
    Choice(
        what="Preparation of Adult",
        chosen="Columns divided by their maxima, as in the paper",
        why="Not private, since one record can change every row: granted to all methods here alike.",
    ),
)
FLAWS = (
    Flaw(
        what="(11) and (12) print an ascent",
        consequence="The recursion diverges; the sign is corrected here in both versions.",
    ),
    Flaw(
        what="(18), inside a proof, prints the proximity of the step before in the denominator",
        consequence="A misprint: Algorithm 1 (13a) has the right one, and its runs keep their epsilon.",
    ),
    Flaw(
        what="Theorem 6 has an open constant, and the value in its proof fails for large epsilons",
        consequence="None for the figures, whose epsilons end at 5. Composition is exact as Gaussian differential "
        "privacy; no constant is needed.",
    ),
    Flaw(
        what="Minibatches are drawn with replacement",
        consequence="A record may occur several times in one, which the sensitivity does not count.",
    ),
    Flaw(
        what="Columns are divided by maxima of the data",
        consequence="A use of the data that no budget covers, granted here to all methods.",
    ),
)
PAPER = Paper(
    number="002",
    title="Differentially private ADMM for convex distributed learning: improved accuracy via multi-step approximation",
    authors="Zonghao Huang, Yanmin Gong",
    reference="arXiv:2005.07890, 2020",
    about="Decentralized ADMM with several noisy linearised steps in every round, on Adult spread over 100 "
    "nodes, against "
    "primal and dual variable perturbation, recycled ADMM and DP-ADMM.",
    parameters=PARAMETERS,
    choices=CHOICES,
    flaws=FLAWS,
    reported=(),
    grids={"quick": QUICK, "full": Grid()},
    cells=cells,
    gather=gather,
    cases=CASES,
)
