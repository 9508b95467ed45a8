"""Between which data sets a claim holds, and which claims a run may make.

A run is planned for one adjacency. An add-remove run uses the number of records nowhere, so it may also claim
replace-one. A replace-one run uses that number (in penalties, steps, delta, on the card itself), so that data sets of
different sizes are told apart by reading the card: it makes no add-remove claim. Beside replace-one it may claim
"blanked": one record blanked, n public. A blanked record adds zero to every sum, so the value is computed from the
add-remove bounds of the same releases (docs/privacy.md#blanked).
"""

from __future__ import annotations

from typing import Literal, get_args

from consenso.errors import InputError
from consenso.problem import Adjacency, Unit

Relation = Literal["add-remove", "replace-one", "blanked"]
RELATIONS: tuple[Relation, ...] = get_args(Relation)
UNITS: tuple[Unit, ...] = ("record", "party")


def bounds_of(relation: Relation) -> Adjacency:
    """The adjacency whose bounds a claim is computed from."""
    return "add-remove" if relation == "blanked" else relation


def claims_of(run: Adjacency, unit: Unit) -> tuple[Relation, ...]:
    """What a run that was planned for an adjacency may claim of a unit."""
    if run == "add-remove":
        return ("add-remove", "replace-one")
    return ("blanked", "replace-one") if unit == "record" else ("replace-one",)


def relation_of(bounds: Adjacency, run: Adjacency) -> Relation:
    """The claim that bounds of an adjacency support in a run that was planned for another, or for the same."""
    return "blanked" if (bounds, run) == ("add-remove", "replace-one") else bounds


def check_claim(run: Adjacency, unit: Unit, relation: Relation) -> None:
    """Refuse a claim that a run planned for an adjacency does not support."""
    allowed = claims_of(run, unit)
    if relation in allowed:
        return
    if run == "replace-one":
        why = "it uses the number of records, which is public only where no record is added or removed"
    else:
        why = "it claims add-remove, which says more"
    raise InputError(
        f"A {run} run makes no {relation} claim for unit {unit!r}, because {why}; ask for {' or '.join(allowed)}, or "
        "plan it for another adjacency."
    )
