"""The audit: attacks on what a plan promises, and the lower bounds on epsilon that they prove.

from consenso.audit import Effort, audit, confirm
effort = Effort(trials=20_000)
found = audit(plan, effort)
for finding in confirm(plan, found, effort.again(claims=len(found))):
    finding.claimed, finding.lower, finding.refuted
"""

from __future__ import annotations

from consenso.audit.attack import Effort, audit, confirm
from consenso.audit.findings import Finding
from consenso.audit.neighbours import Neighbours, linear, neighbours, unkind
from consenso.audit.one_run import canaries, one_run

__all__ = [
    "Effort",
    "Finding",
    "Neighbours",
    "audit",
    "canaries",
    "confirm",
    "linear",
    "neighbours",
    "one_run",
    "unkind",
]
