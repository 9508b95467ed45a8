"""The two sides of a sum that a plan's trust asks for, and how long their messages may be."""

from __future__ import annotations

from dataclasses import dataclass

from consenso.federation.message_schemas import HubMessageSchemas
from consenso.federation.signatures import SIGNATURE_BYTES, Signatures
from consenso.federation.sum_protocol import Contributor, Summation, plain_parts
from consenso.planning.plan import Plan

# What a secure sum adds to a message for each party: keys, signatures, encrypted shares, names.
PER_PARTY = 4096 + SIGNATURE_BYTES


@dataclass(frozen=True, kw_only=True)
class Parts:
    """The hub's side, the party's side, and the most bytes of a message between them."""

    summation: Summation
    contributor: Contributor
    limit: int


def parts_of(plan: Plan, signatures: Signatures | None = None) -> Parts:
    """Plain for local noise and for a trusted hub, masked for a secure sum; refuses what cannot be summed so.

    signatures: of a party that has certificates; it then believes no keys of a secure sum but signed ones.
    """
    largest = HubMessageSchemas(plan).largest()
    if not plan.mode.has_secure_sum:
        summation, contributor = plain_parts(plan)
        return Parts(summation=summation, contributor=contributor, limit=largest)
    from consenso.secure_sum import secure_parts

    masked, masking = secure_parts(plan, signatures=signatures)
    limit = largest + masked.extra_answer_bytes() + PER_PARTY * plan.parties
    return Parts(summation=masked, contributor=masking, limit=limit)
