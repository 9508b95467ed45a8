"""Noise: one object draws the sample and states the event, from one scale. One file for each law.

The scale is a multiple of a sensitivity, never a number of its own: with an adaptive bound the cost then depends on
the multiple alone and is known before the run (docs/privacy.md#adaptive-bounds). The multiple may change from round to
round by a public schedule (`patterns`). Rounds are counted from 0.

A law of its own is one file: a noise (`Noise`), its event (`consenso.privacy.events.Event`) where no event here fits,
and what that costs (`consenso.privacy.accountants.costs`). Another distribution names such a file in the entry points
`consenso.noises` and `consenso.events`.
"""

from __future__ import annotations

from consenso.privacy.noise.gamma_norm import GammaNormNoise
from consenso.privacy.noise.gaussian import GaussianNoise
from consenso.privacy.noise.laplace import LaplaceNoise
from consenso.privacy.noise.law import Noise, ScaledNoise
from consenso.privacy.noise.none import NoNoise
from consenso.privacy.noise.patterns import Constant, Geometric, PerRound, Polynomial, Schedule

__all__ = [
    "Constant",
    "GammaNormNoise",
    "GaussianNoise",
    "Geometric",
    "LaplaceNoise",
    "NoNoise",
    "Noise",
    "PerRound",
    "Polynomial",
    "ScaledNoise",
    "Schedule",
]
