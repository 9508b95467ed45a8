"""How many rounds a run had, as it may be told."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from consenso.planning.plan import Plan
from consenso.schedules import RandomStopping

DONE = "the released values showed that all steps were taken"
SECRET = "their number was drawn at random, and the guarantee rests on its being secret"


def show_rounds(plan: Plan, run: int) -> int | None:
    """The number of rounds that were run; None where a proof takes it for a secret."""
    return None if isinstance(plan.schedule, RandomStopping) else run


def describe_rounds(plan: Plan, run: int) -> dict[str, Any]:
    """What a run's files say of its rounds."""
    shown = show_rounds(plan, run)
    why = SECRET if shown is None else DONE if shown < plan.rounds else None
    return {"rounds planned": plan.rounds, "rounds run": shown, "because": why}


def rounds_text(told: Mapping[str, Any]) -> str:
    """The rounds of a run in words, from what its files say."""
    planned, run, why = told["rounds planned"], told["rounds run"], told.get("because")
    if run == planned:
        return f"{planned:,} rounds"
    ran = "how many were run is not told" if run is None else f"{run:,} were run"
    return f"at most {planned:,} rounds are paid for, {ran}" + (f", because {why}" if why else "")
