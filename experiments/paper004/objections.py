"""Objections to paper 004, each with the reading that is kindest to it."""

from __future__ import annotations

from experiments.definition import Case
from experiments.outcome import Objection
from experiments.paper004.first_round import AFTER, BEFORE
from experiments.results import Results
from experiments.writing import shown

FIRST, SECOND = "zCDP-NFL", "(eps, delta)-NFL"


def bounded_gradient(results: Results) -> Objection:
    """The sensitivity."""
    (asked, values), *_ = results.rows("first round", task="ridge")
    (_, kept), *_ = results.rows("first round", task="least absolute deviations")
    return Objection(
        claim="One record moves the update by at most 2 c_1/(M_k (2 rho |N_k| + 1/eta)), c_1 a bound of the gradients",
        place="(11) and (12), used for elastic net and ridge",
        argument=(
            "The gradient of the squared loss is (<x, w> - y) x, which nothing bounds: not the data, not the iterates.",
            f"Everything starts at zero, so replacing (x, {BEFORE:g}) by (x, {AFTER:g}) moves the first sum by "
            f"{abs(AFTER - BEFORE):g} |x|/M_k.",
            "Nothing was released before, so this cost is exact, and the run costs at least as much.",
        ),
        shown=f"ridge, nominal total epsilon {asked['epsilon']:g}: the first round costs {shown(values['true rho'])} "
        f"where "
        f"{shown(values['nominal rho'])} is accounted for (zCDP)",
        stands=values["true rho"] > values["nominal rho"] * (1 + 1e-9),
        reading="Targets, rows and iterates lie in known bounded sets and c_1 is the bound on them; for least absolute "
        f"deviations, whose slopes are bounded, the sensitivity holds as printed ({shown(kept['true rho'])} of "
        f"{shown(kept['nominal rho'])}).",
        survives=kept["true rho"] > kept["nominal rho"] * (1 + 1e-9),
        correction="Shorten every record's gradient to a public length, or project on |w| <= W and use 2 X (X W + Y).",
    )


def two_accountants(results: Results) -> Objection:
    """What is compared."""
    (asked, values), *_ = results.rows("accountants")
    one, other = (values[f"exact multiplier, {name}"] for name in (FIRST, SECOND))
    return Objection(
        claim='"ZCDP allows for better accuracy than the conventional (eps, delta)-DP": zCDP-NFL has a smaller error '
        "than (eps, delta)-NFL at the same privacy",
        place="abstract, Figures 1 and 2",
        argument=(
            "Both add Gaussian noise to the same update: they are one mechanism, composed by two accountants.",
            "Composed exactly, both have the same noise at the same (epsilon, delta).",
            "The difference that is shown is the slack of advanced composition.",
        ),
        shown=f"nominal epsilon {asked['epsilon']:g}: the noise of the two accountants is really worth "
        f"{shown(values[f'true epsilon, {FIRST}'])} and {shown(values[f'true epsilon, {SECOND}'])}; exactly composed, "
        f"the first multipliers are {one:.5g} and {other:.5g}",
        stands=abs(one / other - 1) < 1e-6,
        reading="A statement on accounting: zCDP gives the same noise a smaller epsilon than advanced composition "
        "does.",
        survives=values[f"true epsilon, {FIRST}"] < values[f"true epsilon, {SECOND}"],
        correction="Compose Gaussian steps exactly, as Gaussian differential privacy, whatever the method is called.",
    )


def assumptions(results: Results) -> Objection:
    """Theorems III and IV."""
    found = {asked["power"]: values for asked, values in results.rows("assumptions")}
    both = [power for power, values in found.items() if values["falls"] and values["summable"]]
    return Objection(
        claim="Assumption 3: the step eta goes to zero. Assumption 4: the sum of 1/eta converges. Theorem IV uses "
        "Theorem III",
        place="Assumptions 3 and 4, Theorem IV",
        argument=(
            "If eta goes to zero then 1/eta grows, and its sum diverges.",
            "If the sum of 1/eta converges then eta grows without bound.",
            "So no step satisfies both, and Theorem IV cannot use Theorem III.",
        ),
        shown=f"steps n^p for p = {', '.join(f'{power:g}' for power in found)}: {len(both)} of them satisfy both",
        stands=not both,
        reading="The two theorems are about two kinds of steps, each with its own assumption.",
        survives=not (any(v["falls"] for v in found.values()) and any(v["summable"] for v in found.values())),
        correction="With falling steps the average of the iterates is within O(1/sqrt(T)) (experiments.linearised).",
    )


CASES = (
    Case(name="bounded-gradient", groups=("first round",), object_to=bounded_gradient),
    Case(name="two-accountants", groups=("accountants",), object_to=two_accountants),
    Case(name="assumptions", groups=("assumptions",), object_to=assumptions),
)
