"""Which numbers a message may hold, by public facts alone.

Numbers beyond the range are refused, whoever sends them: a party could end everybody's run with one of 1e150, and a hub
could hide a record's part in the rounding of a number that large. Whoever is honest keeps to it: what a hub sends down,
and what a peer says, is cut to the range first, and a party's part of a sum is as long as it is declared to be plus
noise. More than `TAILS` noise scales are seen with a chance below 1e-25 a number.
"""

from __future__ import annotations

import dataclasses
from typing import Any, TypeVar

import numpy as np

from consenso.errors import MessageError
from consenso.privacy.release import Release
from consenso.privacy.run_spec import RunSpec
from consenso.problem import Problem
from consenso.public_facts import PublicFacts

R = TypeVar("R")

# In units in which rows have length 1. A double of this size has ten digits behind the point.
LARGEST = 1e6


def largest_number(problem: Problem) -> float:
    """The largest number that any message of a problem may hold."""
    return LARGEST * max(1.0, problem.row_bound**2, 1 / problem.row_bound)


def check_numbers(record: object, largest: float) -> None:
    """Refuse a record with a number that is beyond the largest, or none."""
    for each in dataclasses.fields(record):  # type: ignore[arg-type]
        value = getattr(record, each.name)
        if _is_number(value) and not np.abs(value).max(initial=0.0) <= largest:
            raise MessageError(
                f"{type(record).__name__}: a number in {each.name!r} is larger than the {largest:g} that public facts "
                "allow, or none."
            )


def cut_numbers(record: R, largest: float) -> R:
    """The record with every number cut to the largest; the record itself where nothing is beyond."""
    cut: dict[str, Any] = {}
    for each in dataclasses.fields(record):  # type: ignore[arg-type]
        value = getattr(record, each.name)
        if _is_number(value) and not np.abs(value).max(initial=0.0) <= largest:
            within = np.clip(np.nan_to_num(value), -largest, largest)
            cut[each.name] = within if isinstance(value, np.ndarray) else float(within)
    return dataclasses.replace(record, **cut) if cut else record  # type: ignore[type-var]


def largest_contribution(
    spec: RunSpec, facts: PublicFacts, release: Release, largest: float, bound: float, share: float
) -> float:
    """The largest number that one party's part of a sum may hold: its declared length, and noise where it adds any.

    facts: of that party alone. largest: the largest declared bound over all parties.
    """
    length = float(np.max(release.bounds.party_add_remove))
    if release.clip is not None:
        length = min(length, release.clip)
    length *= bound
    if spec.mode.noise_on_messages:
        noise = spec.noise_for(release.name)
        sensitivity = spec.sensitivity(release, facts, largest) * bound / np.sqrt(share)
        length += noise.tail(release.size) * float(np.max(noise.scale(sensitivity, facts.round)))
    return min(length * (1 + 1e-9), largest_number(facts.problem) * max(1.0, float(facts.sizes.max())))


def _is_number(value: object) -> bool:
    return isinstance(value, float | np.floating) or (isinstance(value, np.ndarray) and value.dtype.kind == "f")
