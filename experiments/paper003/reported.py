"""Test errors that Ryu and Kim report, in per cent, by epsilon of one iteration."""

from __future__ import annotations

from experiments.definition import Reported

EPSILONS = (0.05, 0.1, 1.0, 3.0, 5.0)
NON_PRIVATE = {"MNIST": 7.42, "FEMNIST": 35.25}
TRUST = {"MNIST": {5.0: 7.84, 0.05: 12.80}, "FEMNIST": {5.0: 36.29, 0.05: 72.40}}
OUTPUT = {"MNIST": {0.05: 21.79}, "FEMNIST": {0.05: 91.05}}
SOURCE = "Ryu and Kim 2021, test errors after 20,000 iterations"

ALL = tuple(
    Reported(
        name=f"{label}, {name}",
        source=SOURCE,
        values=tuple(found[name].values()),
        at=tuple(found[name]),
        axis="epsilon of one iteration",
    )
    for label, found in (("DP-IADMM-Trust", TRUST), ("OutP", OUTPUT))
    for name in found
) + tuple(
    Reported(name=f"without privacy, {name}", source=SOURCE, values=(value,)) for name, value in NON_PRIVATE.items()
)
