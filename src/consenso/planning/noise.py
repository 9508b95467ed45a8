"""How much noise the releases of a plan get: the least that meets its target, and how large it is in each release."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from consenso.conventions import default_delta
from consenso.errors import InputError
from consenso.privacy.calibrate import Target, calibrate_noise
from consenso.privacy.declarations import Declaration
from consenso.privacy.noise import GaussianNoise
from consenso.privacy.observers import Observer
from consenso.privacy.run_spec import RunSpec, largest_bounds

if TYPE_CHECKING:
    from consenso.planning.plan import Plan


def with_calibrated_noise(planned: Plan, target: Target, observer: Observer) -> Plan:
    """The plan with the least common multiplier that meets the target for an observer."""
    weights: Mapping[str, float] = getattr(planned.algorithm, "noise_weights", {})

    def at(multiplier: float) -> Plan:
        noise = {name: GaussianNoise(multiplier=multiplier * weights.get(name, 1.0)) for name in planned.noise}
        return replace(planned, noise=noise)

    delta = getattr(target, "delta", default_delta())
    return at(calibrate_noise(lambda multiplier: at(multiplier).guarantee(observer, delta).event, target))


def with_noise_levels(planned: Plan) -> Plan:
    """The plan whose facts say how loud each release will be: public, and what step rules are made from."""
    heard = {name: _noise_level(planned, planned.algorithm.releases, name) for name in planned.noise}
    return replace(planned, facts=replace(planned.facts, noise=heard))


def _noise_level(spec: RunSpec, declaration: Declaration, name: str) -> float:
    """Noise scale of a release where it is first made: on the sum for a sum, else the largest of one party's."""
    for declared in spec.remember(declaration).over_rounds(spec.representatives()):
        round_ = declared.first
        everyone = spec.representatives().at(round_)
        for release in declared.releases:
            if release.name == name:
                largest = largest_bounds(spec, declaration, round_)[name]
                sensitivity = spec.sensitivity(release, everyone, largest)
                scale = float(np.max(spec.noise_for(name).scale(sensitivity, round_)))
                if release.at == "party" or spec.mode.noise_at_hub:
                    return scale
                # Under a secure sum every party adds a share, under local trust the whole noise.
                shares = spec.shares if spec.mode.sums_in_steps else 1
                return scale * float(np.sqrt(spec.parties / shares))
    raise InputError(f"plan(noise=...): the algorithm makes no release {name!r}; drop that noise.")
