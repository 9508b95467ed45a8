"""The audit: attacks on what a plan promises, and the lower bounds on epsilon that they prove.

from consenso.audit import Effort, audit
for finding in audit(plan, Effort(trials=20_000)):
    finding.claimed, finding.lower, finding.refuted
"""

from __future__ import annotations

from consenso.audit.attack import Effort, audit
from consenso.audit.findings import Finding
from consenso.audit.neighbours import Neighbours, linear, neighbours, unkind
from consenso.audit.one_run import canaries, one_run

__all__ = ["Effort", "Finding", "Neighbours", "audit", "canaries", "linear", "neighbours", "one_run", "unkind"]
