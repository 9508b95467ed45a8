"""The list of planted faults, and what it takes to catch one."""

from __future__ import annotations

import re
import tempfile
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal
from unittest import mock

import numpy as np

from consenso.algorithms.consensus import ConsensusADMM
from consenso.algorithms.dual_averaging import DualAveraging
from consenso.algorithms.dual_consensus import DualConsensusADMM
from consenso.algorithms.preconditioned import PreconditionedFixedPoint
from consenso.algorithms.shape import Example
from consenso.errors import BudgetError, InputError, PrivacyError, TamperError, UndeclaredReleaseError
from consenso.schedules import Everyone, PoissonSubset
from consenso.shards import Cohort
from consenso.testing import laws
from consenso.testing.attacks import list_attacked_plans
from consenso.testing.exact_values.compare import compare
from consenso.testing.planted import algorithms as wrong
from consenso.testing.planted import misuses, noises, searches

BEGIN, END = "<!-- planted faults: begin -->", "<!-- planted faults: end -->"
Kind = Literal["law", "attack", "refusal"]


@dataclass(frozen=True, kw_only=True)
class Fault:
    """One way to be wrong, and what must catch it."""

    name: str
    catcher: str
    kind: Kind = "law"
    error: type[Exception] = AssertionError
    message: str  # a pattern in the text of the error
    plant: Callable[[Path], None]  # in an empty folder; must raise
    slow: bool = False  # takes more than a second or two


@dataclass(frozen=True, kw_only=True)
class Caught:
    """What planting a fault led to."""

    fault: Fault
    caught: bool
    seconds: float
    said: str  # what was raised instead, where it was not caught as it should be


def catch(fault: Fault) -> Caught:
    """Plant a fault, and see whether what should catch it does."""
    began, said, caught = time.perf_counter(), "nothing was raised", False
    with tempfile.TemporaryDirectory(prefix="consenso-planted-") as folder:
        try:
            fault.plant(Path(folder))
        except Exception as error:  # whatever is raised must be what is expected
            caught = isinstance(error, fault.error) and re.search(fault.message, str(error)) is not None
            said = f"{type(error).__name__}: {error}"
    return Caught(fault=fault, caught=caught, seconds=time.perf_counter() - began, said=said)


def markdown(faults: Iterable[Fault]) -> str:
    """The table of the page: which fault is caught by what."""
    lines = ["| fault | caught by | kind |", "| --- | --- | --- |"]
    lines += [f"| {fault.name} | {fault.catcher} | {fault.kind} |" for fault in faults]
    return "\n".join(lines) + "\n"


def _law(
    name: str, law: Callable[[Example], None], catcher: str, message: str, example: Callable[[], Example], **rest: Any
) -> Fault:
    return Fault(name=name, catcher=catcher, message=message, plant=lambda folder: law(example()), **rest)


def _beside(name: str, cls: Any) -> Fault:
    """Something leaves beside the releaser."""
    catcher = "law 3, nothing but releases depends on the data"
    return _law(name, laws.non_interference, catcher, "depends on the data", lambda: wrong.small(cls))


def _plant_draw(name: str, noise: Any) -> Fault:
    catcher = "law 8, noise has the law that it states"
    return _law(
        name,
        laws.noise_has_its_law,
        catcher,
        "noise of",
        lambda: noises.plan_attacked(ConsensusADMM(step=0.5), noise=noise),
    )


def _attack(name: str, example: Callable[[], Example]) -> Fault:
    return _refute(name, lambda folder: laws.attacks_stay_below(example()), "law 9, no attack beats a claim")


def _misuse(name: str, plant: Callable[[Path], None], catcher: str, error: type[Exception], message: str) -> Fault:
    return Fault(name=name, catcher=catcher, kind="refusal", error=error, message=message, plant=plant)


def _refute(name: str, plant: Callable[[Path], None], catcher: str = "an attack through a search") -> Fault:
    return Fault(name=name, catcher=catcher, kind="attack", message="REFUTED", plant=plant, slow=True)


def _plant_undeclared(name: str, cls: Any, message: str) -> Fault:
    def plant(folder: Path) -> None:
        laws.engines_agree(wrong.small(cls))

    return _misuse(name, plant, "law 7, the releaser", UndeclaredReleaseError, message)


def _believe_any_metric(folder: Path) -> None:
    example = replace(PreconditionedFixedPoint.example(), schedules=(Everyone(),), trusts=("local",))
    with mock.patch("consenso.algorithms.preconditioned.check_metric", return_value=None):
        laws.lies_gain_nothing(example)


def _count_every_row(folder: Path) -> None:
    def count(f: Cohort, bins: int, *rest: Any) -> Any:
        return f.sizes[:, None] * np.eye(bins, dtype=np.int64)[0]

    with mock.patch("consenso.algorithms.preconditioning.target_counts._count", count):
        laws.zero_rows_are_no_rows(DualAveraging.example().variants[-1])


def _toss_for_each(folder: Path) -> None:
    example = noises.plan_attacked(
        noises.AsksTwice(), parties=2, noise=1.0, rounds=2, schedule=PoissonSubset(0.3), trust="curator"
    )
    with mock.patch("consenso.privacy.composition._hide_sample", noises.toss_for_each):
        said = [each.sentence() for each in compare(next(list_attacked_plans(example)), 0) if each.below]
    assert not said, said[0]


def _divide_by_the_sample() -> Example:
    return replace(
        DualConsensusADMM.example(),
        algorithm=wrong.DividesByTheSample(level="party", step=0.5),
        schedules=(PoissonSubset(0.5),),
        trusts=("curator",),
    )


def _print_the_recursion() -> Example:
    return wrong.small(wrong.PrintedRecursion, exact=wrong.PrintedRecursion(step=8.0), regularizers=())


def _keep_the_dual() -> Example:
    wrong.KeepsItsDual.kept.clear()
    return wrong.small(wrong.KeepsItsDual)


_LIES = "law 11, no message of a hub gains anything"
_LEDGER, _MASKS = "the ledger", "the client of the secure sum"

FAULTS: tuple[Fault, ...] = (
    _plant_draw("noise of half the scale", noises.HalfTheNoise(multiplier=2.0)),
    _plant_draw("a variance used as a standard deviation", noises.VarianceForDeviation(multiplier=0.5)),
    _plant_draw("noise that is never negative", noises.OneSided(multiplier=2.0)),
    _beside("noise drawn and not added", wrong.DrawsNoiseAndForgetsIt),
    _beside("noise forgotten in one round", wrong.ForgetsNoiseOnce),
    _beside("one noise for two releases", wrong.OneNoiseForTwo),
    _beside("a noise scale read from the data", noises.ScaleFromTheData),
    _beside("a parameter that follows an exact residual", wrong.BalancesResiduals),
    _beside("a penalty from the number of records under add-remove", wrong.PenaltyFromItsCount),
    _beside("a number more in a message", wrong.SendsOneNumberMore),
    _beside("a log line that tells the objective", wrong.LogsItsData),
    _law(
        "a count of the sample in a message",
        laws.messages_are_releases,
        "law 3, messages are releases",
        "is not a release",
        _divide_by_the_sample,
    ),
    _law(
        "a sensitivity that is too small",
        laws.check_sensitivity,
        "law 4, measured sensitivity",
        "moved by",
        lambda: wrong.small(wrong.HalvesItsSensitivity),
    ),
    _law(
        "a clip after the sum",
        laws.check_sensitivity,
        "law 4, measured sensitivity",
        "moved by",
        wrong.clips_after_the_sum,
    ),
    _law(
        "a wrong mean of states (zhat as printed)",
        laws.reaches_optimum,
        "law 5, the optimum is reached",
        "optimum",
        _print_the_recursion,
    ),
    _law(
        "a dual variable that is not reset",
        laws.engines_agree,
        "law 1, engines agree",
        "two runs of one seed differ|Not equal",
        _keep_the_dual,
    ),
    _law(
        "a scale that differs from the plan",
        laws.ledger_equals_plan,
        "law 2, a run is its plan",
        "scale of",
        lambda: wrong.small(ConsensusADMM, noise=noises.ScaleOfTheMoment(multiplier=1.0)),
    ),
    Fault(
        name="one coin for two releases, accounted as two",
        catcher="law 10, exact values",
        message="is reported as",
        plant=_toss_for_each,
    ),
    Fault(
        name="a count of rows that are all zeros",
        catcher="law 13, a row of zeros is no row",
        message="where a row of zeros is there",
        plant=_count_every_row,
    ),
    _plant_undeclared("a release more than declared", wrong.ReleasesOnceMore, "one more"),
    _plant_undeclared("a release that is not made", wrong.ReleasesWhenItLikes, "made 0 time"),
    Fault(
        name="a metric of a lying hub that is believed",
        catcher=_LIES,
        message=r"moved by|rows decide",
        plant=_believe_any_metric,
        slow=True,
    ),
    _law(
        "a refusal that private rows decide",
        laws.lies_gain_nothing,
        _LIES,
        "rows decide what is refused",
        lambda: wrong.believes_its_hub(wrong.RefusesByItsRows),
        slow=True,
    ),
    _law(
        "a bound that holds for honest messages only",
        laws.lies_gain_nothing,
        _LIES,
        "moved by",
        lambda: wrong.believes_its_hub(wrong.MovesWithTheNumbersOfTheHub, rate=1.0),
        slow=True,
    ),
    _attack(
        "noise that falls and is stated constant",
        lambda: noises.plan_attacked(ConsensusADMM(step=0.5), noise=noises.FallingNoise(multiplier=2.0)),
    ),
    _attack("half the sensitivity", lambda: noises.plan_attacked(noises.HalfTheSensitivity(step=0.5))),
    _attack("a bound measured on the records", lambda: noises.plan_attacked(noises.ScaleFromTheData(step=0.5))),
    _attack(
        "sampling that is claimed and not done",
        lambda: noises.sampled_records(noises.TakesEverybody(clip=0.7, rate=0.2)),
    ),
    _attack(
        "Poisson accounting of a fixed-size sample whose memory shows",
        lambda: noises.sampled_parties(noises.ShowsItsMemory(level="party", step=0.5), noises.CalledPoisson(2)),
    ),
    _misuse("a value that is not finite", misuses.release_what_is_not_finite, "the releaser", PrivacyError, "finite"),
    _misuse("a seed that is shared", misuses.charge_seeded_noise, _LEDGER, PrivacyError, "protects nobody"),
    _misuse("a run over the budget", misuses.overspend, _LEDGER, BudgetError, "is left"),
    _misuse("runs that results choose between", misuses.choose_by_results, _LEDGER, BudgetError, "which would make"),
    _misuse("labels told more often than delta allows", misuses.tell_too_often, _LEDGER, BudgetError, "told by name"),
    _misuse("more spent than reserved", misuses.spend_more_than_reserved, _LEDGER, BudgetError, "spent more"),
    _misuse("adjacencies that are mixed", misuses.mix_adjacencies, _LEDGER, BudgetError, "cannot be charged"),
    _misuse("a resumed copy", misuses.resume_a_copy, _LEDGER, PrivacyError, "another copy"),
    _misuse(
        "a run under another's name", misuses.reserve_again_as_another, _LEDGER, BudgetError, "reserved something else"
    ),
    _misuse("two hosts that spend one budget", misuses.write_on_two_hosts, _LEDGER, BudgetError, "this host is"),
    _misuse("a copy that spends the budget again", misuses.write_to_a_copy, _LEDGER, BudgetError, "is a copy"),
    _misuse("a ledger set back to an old copy", misuses.set_the_ledger_back, _LEDGER, TamperError, "anchor|row"),
    _misuse("a charge made smaller by hand", misuses.edit_a_row, _LEDGER, TamperError, "row"),
    _misuse("a ledger deleted and made anew", misuses.begin_a_deleted_ledger_anew, _LEDGER, InputError, "anchor file"),
    _misuse("a mask used twice", misuses.mask_twice, _MASKS, PrivacyError, "used up"),
    _misuse("sums with and without a party", misuses.ask_for_two_sums, _MASKS, PrivacyError, "another list"),
    _misuse("a sum of too few", misuses.ask_for_a_sum_of_two, _MASKS, PrivacyError, "fewer|at least|threshold"),
    _refute("a search whose number of fits is known", searches.search_a_known_number),
    _refute("scores of a search without noise", searches.search_without_noise),
)
