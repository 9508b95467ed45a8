"""The step of one party alone, as a deployment takes it: its own rows, its own releaser, its own part of every cost."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from consenso.arrays import IntArray
from consenso.engine.release_records import Spent
from consenso.engine.step import take_step
from consenso.errors import InputError, MessageError, PrivacyError, StepError
from consenso.federation.ranges import check_numbers, largest_number
from consenso.federation.round_log import RoundLog
from consenso.planning.plan import Plan
from consenso.privacy.noise import NoNoise
from consenso.privacy.release import Release
from consenso.privacy.releaser import SumTerm
from consenso.public_facts import PublicFacts
from consenso.shards import Cohort, Shards
from consenso.shards.stored import require_adding_up
from consenso.trust import mode_of


@dataclass(frozen=True, kw_only=True)
class Taken:
    """What a step leaves: the next state, the message, and what it released."""

    state: Any
    message: Any
    releases: tuple[dict[str, Any], ...]  # public numbers, for the journal
    spent: Spent


class SinglePartyStep:
    """Takes the steps of one party of a plan on its own rows."""

    def __init__(self, plan: Plan, shards: Shards, party: int) -> None:
        _check(plan, shards, party)
        self.plan, self.party = plan, party
        self.cohort: Cohort = shards.cohort([party])
        self._self: IntArray = np.array([party], dtype=np.int64)

    def facts(self, round_: int) -> PublicFacts:
        """PublicFacts of this party alone."""
        return self.plan.facts.only(self._self).at(round_)

    def enroll(self) -> Any:
        """The state before the first round."""
        return self.plan.algorithm.enroll(self.facts(0), self.cohort)

    @cached_property
    def state_kind(self) -> type[Any]:
        """The record that a state is."""
        return type(self.enroll())

    def take(self, round_: int, state: Any, spent: Spent, *down: Any, silent: bool = False) -> Taken:
        """One step. `silent` answers every release with its noise alone and leaves the state as it is."""
        plan, here = self.plan, self.facts(round_)
        if silent:
            plan = replace(plan, probe=_ignore_value)
        for heard in down:
            check_numbers(heard, largest_number(plan.problem))
        book = RoundLog(spent)
        try:
            after, message = take_step(plan, here, self.cohort, state, *down, record=book.record)
        except StepError as error:
            # No rows are in it: what was heard is to blame.
            raise MessageError("what came cannot be worked with, whatever the rows; send smaller numbers.") from error
        declared = plan.remember(plan.algorithm.releases)(here)
        releases = (*book.releases, *_list_handed_over(plan.trust, declared, message))
        return Taken(state=state if silent else after, message=message, releases=releases, spent=book.spent)


def _list_handed_over(trust: str, releases: tuple[Release, ...], message: Any) -> list[dict[str, Any]]:
    """What leaves without noise because the hub is trusted to add it: no scale of its own."""
    if not mode_of(trust).noise_at_hub or not any(isinstance(value, SumTerm) for value in vars(message).values()):
        return []
    return [{"name": each.name, "scale": None} for each in releases if each.at == "sum"]


def _ignore_value(round_: int, release: Release, cohort: IntArray, value: object, bound: float) -> None:
    """A probe that looks at nothing: with it, the releaser answers with noise alone."""


def _check(plan: Plan, shards: Shards, party: int) -> None:
    if shards.problem != plan.problem:
        raise InputError("Party(shards=...): the rows belong to another problem; read them for the plan's problem.")
    require_adding_up(plan.algorithm, shards)
    if party not in shards.parties:
        raise InputError(f"Party(party={party}): no rows of this party are here; read its own file.")
    require_sampler(plan)


def require_sampler(plan: Plan) -> None:
    """Refuse a plan that was made without saying where its noise comes from."""
    if not plan.sampler_chosen and not all(isinstance(n, NoNoise) for n in plan.noise.values()):
        raise PrivacyError(
            f"{type(plan.algorithm).__name__}: no source of noise was chosen; plan with sampler=Safe() for noise that "
            "protects, or with sampler=Seeded(seed) for a simulation."
        )
