"""Numbers of Cyffers, Bellet and Basu 2023 to compare with.

The paper shows Figure 1 as a drawing only. Its public code (github.com/totilas/padadmm) writes the numbers: means of
ten runs with seeds 0 to 9 of the code as it is.
"""

from __future__ import annotations

from experiments.definition import Reported

SOURCE = "public code of the paper (padadmm, main.py), run unchanged, means of its ten seeds"
EPSILONS = tuple(0.01 * 500 ** (k / 6) for k in range(7))  # geomspace(0.01, 5, 7)
ADMM = Reported(
    name="private ADMM, test objective (Figure 1)",
    source=SOURCE,
    axis="nominal epsilon",
    at=EPSILONS,
    values=(1.76e4, 280.0, 5.85, 1.50, 0.829, 0.1085, 0.1016),
)
SGD = Reported(
    name="proximal DP-SGD, test objective (Figure 1)",
    source=SOURCE,
    axis="nominal epsilon",
    at=EPSILONS,
    values=(2.11e5, 3357.0, 55.5, 2.42, 1.45, 0.0252, 0.0223),
)
ZERO = Reported(name="zero model, test objective", source=SOURCE, values=(1.671,))
EXACT = Reported(name="LassoCV, test objective", source=SOURCE, values=(0.0214,))
KAPPA = Reported(name="kappa of LassoCV", source=SOURCE, values=(0.00416,))
ALL = (ADMM, SGD, ZERO, EXACT, KAPPA)
