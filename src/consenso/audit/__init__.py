"""The audit: attacks on what a plan promises, and the lower bounds on epsilon that they prove.

from consenso.audit import audit
for finding in audit(plan, trials=20_000):
    ...  # finding.claimed, finding.lower, finding.refuted
"""

from __future__ import annotations

from consenso.audit.attack import Finding, audit
from consenso.audit.neighbours import Neighbours, linear, neighbours, unkind

__all__ = ["Finding", "Neighbours", "audit", "linear", "neighbours", "unkind"]
