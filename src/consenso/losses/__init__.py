"""Losses of a margin: values, slopes, proxes, and the constants that privacy rests on."""

from __future__ import annotations

from consenso.losses.absolute import Absolute, EpsilonInsensitive
from consenso.losses.checks import require_step
from consenso.losses.hinge import Hinge, SmoothedHinge
from consenso.losses.huber import Huber
from consenso.losses.logistic import Logistic
from consenso.losses.loss import Loss, ScalarLoss, require_lipschitz, require_smooth
from consenso.losses.softmax import Softmax
from consenso.losses.squared import Squared

__all__ = [
    "Absolute",
    "EpsilonInsensitive",
    "Hinge",
    "Huber",
    "Logistic",
    "Loss",
    "ScalarLoss",
    "SmoothedHinge",
    "Softmax",
    "Squared",
    "require_lipschitz",
    "require_smooth",
    "require_step",
]
