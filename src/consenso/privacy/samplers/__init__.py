"""Where the noise comes from: `Seeded` for simulation, `Safe` for deployment, one protocol for both."""

from __future__ import annotations

from consenso.privacy.samplers.contract import Key, Kind, Sampler
from consenso.privacy.samplers.safe import Safe
from consenso.privacy.samplers.seeded import Seeded

__all__ = ["Key", "Kind", "Safe", "Sampler", "Seeded"]
