"""The losses of one score, one of each kind."""

from __future__ import annotations

from consenso.losses import Absolute, EpsilonInsensitive, Hinge, Huber, Logistic, SmoothedHinge, Squared

SCALAR = [
    Logistic(),
    Squared(),
    Huber(threshold=0.7),
    Hinge(),
    SmoothedHinge(smoothing=0.3),
    Absolute(),
    EpsilonInsensitive(width=0.4),
]
