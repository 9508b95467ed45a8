"""The sliders of a study: which keys they change, between which ends, and where they stand."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from consenso.errors import InputError
from consenso.schedules import PoissonSubset
from consenso.study import Study, privacy
from consenso.trust import modes

# The keys that say how much may be learnt: a study has one of them.
WAYS = tuple(f"privacy.{way}" for way in privacy.WAYS)


@dataclass(frozen=True, kw_only=True)
class Slider:
    """A number that can be moved. `value` None means that a public rule chooses it, or that it is not used."""

    name: str
    label: str
    least: float
    most: float
    value: float | None
    log: bool = True
    whole: bool = False
    automatic: bool = False  # whether it can be left to a rule, or switched off
    why_not: str = ""  # why it cannot be moved in this study


def controls(study: Study) -> dict[str, Any]:
    """What the page draws."""
    setting = study.setting
    records, parties = int(study.sizes.sum()), len(study.parties)
    noisy = study.privacy.noise is not None
    schedule = setting.schedule
    rate = float(schedule.rate) if isinstance(schedule, PoissonSubset) else None
    fixed = "" if setting.split is not None and setting.split.kind == "equal" else "the study names its parties"
    if setting.kind == "central":
        fixed = "one curator holds the table"
    sampled = "" if setting.kind == "federated" else "only a federation samples its clients"
    target = study.planned.plan
    sliders = [
        Slider(name="epsilon", label="epsilon", least=0.05, most=20.0, value=_epsilon(study)),
        Slider(name="delta", label="delta", least=1e-10, most=1e-2, value=study.privacy.delta),
        Slider(
            name="noise",
            label="noise multiplier, in place of epsilon",
            least=0.05,
            most=200.0,
            value=_multiplier(study) if noisy else None,
            automatic=True,
        ),
        Slider(
            name="rounds",
            label="rounds",
            least=1,
            most=max(2000, 4 * target.rounds),
            value=setting.rounds,
            whole=True,
            automatic=True,
        ),
        Slider(
            name="parties",
            label="clients" if setting.kind == "federated" else "parties",
            least=2,
            most=max(2, min(records, 10_000)),
            value=parties,
            whole=True,
            why_not=fixed,
        ),
        Slider(
            name="rate",
            label="sampling rate",
            least=0.01,
            most=1.0,
            value=rate,
            automatic=True,
            why_not=sampled,
        ),
    ]
    return {
        "title": study.title or "A study",
        "kind": setting.kind,
        "trust": setting.trust,
        "trusts": tuple(name for name, mode in modes().items() if setting.kind in mode.settings),
        "simulation": study.simulation,
        "sliders": [asdict(slider) for slider in sliders],
    }


def changes(asked: Mapping[str, Any]) -> dict[str, Any]:
    """The keys of a study that positions of the sliders stand for."""
    found: dict[str, Any] = {}
    unknown = sorted(set(asked) - {"epsilon", "delta", "noise", "rounds", "parties", "rate", "trust"})
    if unknown:
        raise InputError(f"{unknown[0]}: there is no such slider.")
    if asked.get("noise") is not None:
        found |= {**dict.fromkeys(WAYS), "privacy.multiplier": _number(asked, "noise")}
    elif "epsilon" in asked:
        found |= {**dict.fromkeys(WAYS), "privacy.epsilon": _number(asked, "epsilon")}
    if "delta" in asked:
        found["privacy.delta"] = _number(asked, "delta")
    if "rounds" in asked:
        found["setting.rounds"] = "auto" if asked["rounds"] is None else round(_number(asked, "rounds"))
    if "parties" in asked:
        found["setting.split.parties"] = round(_number(asked, "parties"))
    if "rate" in asked:
        rate = None if asked["rate"] is None else _number(asked, "rate")
        found["setting.schedule"] = None if rate is None or rate >= 1 else {"kind": "poisson", "rate": rate}
    if "trust" in asked:
        found["setting.trust"] = str(asked["trust"])
    return found


def _number(asked: Mapping[str, Any], name: str) -> float:
    value = asked[name]
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise InputError(f"{name} = {value!r}: a slider stands at a finite number.")
    return float(value)


def _epsilon(study: Study) -> float | None:
    value = getattr(study.privacy.target, "epsilon", None)
    return float(value) if value is not None and math.isfinite(value) else None


def _multiplier(study: Study) -> float | None:
    value = getattr(study.privacy.noise, "multiplier", None)
    return float(value) if isinstance(value, int | float) else None
