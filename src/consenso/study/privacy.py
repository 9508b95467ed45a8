"""The [privacy] section: how much may be learnt, of whom, by whom, and where it is charged."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, get_args

from consenso import registry
from consenso.conventions import ADJACENCIES, default_delta
from consenso.errors import InputError
from consenso.privacy.calibrate import EpsilonDelta, Mu, PureEpsilon, Rho, Target
from consenso.privacy.noise import Noise, NoNoise
from consenso.problem import Adjacency, Unit
from consenso.study.from_table import spell
from consenso.study.keys import Keys

DELTA = "delta lies in (0, 1); a common choice is 1/(10 n)"
#: Budgets outside are slips of the pen: the accountants are exact far beyond, but nobody means them.
LEAST, MOST = 1e-6, 1e4
WAYS = ("epsilon", "rho", "mu", "multiplier", "noise")


@dataclass(frozen=True, kw_only=True)
class PrivacySection:
    """A target, or the noise itself.

    target: what the whole run may cost; None with explicit noise. noise: explicit noise, one for all releases or one
    for each by name. kind: the law of calibrated noise. delta: at which the card states epsilon. observer: whom the
    target is for, "auto" chooses by the trust. seed: makes the run a simulation, without it the noise is safe.
    """

    target: Target | None
    noise: Noise | tuple[tuple[str, Noise], ...] | None
    kind: str
    delta: float
    unit: Unit
    adjacency: Adjacency
    observer: str
    ledger: str | None
    seed: int | None

    @property
    def noises(self) -> Noise | Mapping[str, Noise] | None:
        """The explicit noise as a plan takes it."""
        return dict(self.noise) if isinstance(self.noise, tuple) else self.noise

    @property
    def exact(self) -> bool:
        """Whether no noise is drawn at all."""
        return isinstance(self.noise, NoNoise)


def noise_laws() -> dict[str, type[Any]]:
    """Noises that can be calibrated, by the names of studies."""
    return {name: kind for name, kind in registry.short_names("noises").items() if kind is not NoNoise}


def read_privacy(keys: Keys) -> PrivacySection | None:
    """The section, or None where it says nothing to plan with."""
    before = len(keys.faults.sentences)
    kind = keys.text("kind", "gaussian", choices=noise_laws()) or "gaussian"
    delta = keys.number("delta", rule=DELTA, low=0.0, high=1.0)
    units = (*get_args(Unit), *registry.RENAMED["units"])
    unit = registry.rename("units", keys.text("unit", "record", choices=units) or "record")
    adjacency = keys.text("adjacency", "replace-one", choices=ADJACENCIES) or "replace-one"
    observer = keys.text("observer", "auto") or "auto"
    ledger = keys.text("ledger")
    seed = keys.whole("seed", least=0, what="the seed of a simulation")
    target, noise = _amount(keys, delta, kind)
    if "seed" in keys and ledger is not None:
        keys.wrong("ledger", "seeded noise protects nobody and is charged to no ledger; remove privacy.seed or it")
    keys.finish()
    if len(keys.faults.sentences) > before:
        return None
    return PrivacySection(
        target=target,
        noise=noise,
        kind=kind,
        delta=delta if delta is not None else default_delta(),
        unit=unit,  # type: ignore[arg-type]
        adjacency=adjacency,  # type: ignore[arg-type]
        observer=observer,
        ledger=ledger,
        seed=seed,
    )


def _amount(keys: Keys, delta: float | None, kind: str) -> tuple[Target | None, Any]:
    """The target, or the explicit noise."""
    given = [name for name in WAYS if name in keys]
    values = {
        name: keys.number(name, rule=f"{name} lies between {LEAST:g} and {MOST:g}; try 0.1", low=LEAST, high=MOST)
        for name in given
        if name in ("rho", "mu")
    }
    epsilon = _epsilon(keys)
    if len(given) != 1:
        told = "nothing" if not given else " and ".join(given)
        keys.faults.add(
            keys.key(given[-1] if given else "epsilon"),
            f"state one of {', '.join(WAYS)}, and {told} was given; epsilon = 1.0 with delta = 1e-5 is a common choice",
        )
        return None, None
    if given == ["multiplier"] or given == ["noise"]:
        return None, _noise(keys, given[0], kind)
    if given == ["epsilon"] and epsilon is not None:
        return _epsilon_target(keys, epsilon, delta, kind)
    if values.get("rho") is not None:
        return Rho(rho=float(values["rho"] or 0.0)), None
    if values.get("mu") is not None:
        return Mu(mu=float(values["mu"] or 0.0)), None
    return None, None


def _epsilon(keys: Keys) -> float | None:
    value = keys.raw("epsilon")
    if value == math.inf and isinstance(value, float):
        return math.inf
    rule = f"epsilon is positive, from {LEAST:g} to {MOST:g}; 1.0 is a common choice, and inf adds no noise"
    return keys.number("epsilon", rule=rule, low=LEAST, high=MOST)


def _epsilon_target(keys: Keys, epsilon: float, delta: float | None, kind: str) -> tuple[Target | None, Any]:
    if math.isinf(epsilon):
        return None, NoNoise()
    if delta is not None:
        return EpsilonDelta(epsilon=epsilon, delta=delta), None
    if "delta" in keys:
        return None, None  # a wrong delta was noted where it was read
    if not noise_laws()[kind].is_pure:
        keys.wrong("delta", f"an epsilon with {kind.title()} noise needs a delta; {DELTA}")
        return None, None
    return PureEpsilon(epsilon=epsilon), None


def _noise(keys: Keys, name: str, kind: str) -> Any:
    value = keys.raw(name)
    try:
        if name == "multiplier":
            return noise_laws()[kind](multiplier=_multiplier(value))
        if value == "none":
            return NoNoise()
        if isinstance(value, Mapping) and "kind" not in value:
            return tuple(sorted((release, _one(each)) for release, each in value.items()))
        return _one(value)
    except InputError as error:
        keys.wrong(name, str(error).rstrip("."))
        return None


def _one(value: Any) -> Noise:
    """The noise of one release, spelled out."""
    if not isinstance(value, Mapping) or "kind" not in value or "shares" in value:
        raise InputError('write "none", {kind = "gaussian", multiplier = 1.0}, or such a table for each release')
    made: Noise = spell(value, "noises")
    return made


def _multiplier(value: Any) -> Any:
    return spell(value, "patterns") if isinstance(value, Mapping) else value
