"""What the public code of Cyffers, Bellet and Basu 2023 gives, run by us as it is: data to compare with.

The paper prints no numbers: its Figure 1 is a drawing, with an axis that goes to 20 while the code's epsilons end at 5.
The numbers here are our run of the public code (github.com/totilas/padadmm) unchanged: means over its seeds 0 to 9.
"""

from __future__ import annotations

from experiments.definition import Reported

SOURCE = "our run of the paper's public code (padadmm, main.py) unchanged, means of its ten seeds"
EPSILONS = tuple(0.01 * 500 ** (k / 6) for k in range(7))  # geomspace(0.01, 5, 7)
ADMM = Reported(
    name="private ADMM, test objective of the public code",
    source=SOURCE,
    axis="nominal epsilon",
    at=EPSILONS,
    values=(1.76e4, 280.0, 5.85, 1.50, 0.829, 0.1085, 0.1016),
)
SGD = Reported(
    name="proximal DP-SGD, test objective of the public code",
    source=SOURCE,
    axis="nominal epsilon",
    at=EPSILONS,
    values=(2.11e5, 3357.0, 55.5, 2.42, 1.45, 0.0252, 0.0223),
)
ZERO = Reported(name="zero model, test objective", source=SOURCE, values=(1.671,))
EXACT = Reported(name="LassoCV, test objective", source=SOURCE, values=(0.0214,))
KAPPA = Reported(name="kappa of LassoCV", source=SOURCE, values=(0.00416,))
ALL = (ADMM, SGD, ZERO, EXACT, KAPPA)
