"""What is told by name: no part of any curve, since it is counted beside all of them (`parts.find_told`)."""

from __future__ import annotations

from consenso.privacy.accountants import costs
from consenso.privacy.events import Event, Nothing, Told, Unbounded


@costs.simplify.register
def _(event: Told) -> Event:
    probability = costs.not_negative(event, "probability")
    return Nothing() if probability < 1 else Unbounded("what one unit has is told")
