"""Secure sum: the server learns the sum of the parties' integers and nothing else of them (Bonawitz et al. 2017).

`Client` and `SumServer` turn messages into messages. `secure_parts` makes of them what engines carry: a `Summation` for
the hub and a `Contributor` for the party. See docs/secure-sum.md.
"""

from consenso.secure_sum.client import Client
from consenso.secure_sum.contributor import SecureContributor
from consenso.secure_sum.gathering import SecureSum, secure_parts, terms_of
from consenso.secure_sum.server import DiscardedError, SumServer
from consenso.secure_sum.terms import Occasion, SumTerms

__all__ = [
    "Client",
    "DiscardedError",
    "Occasion",
    "SecureContributor",
    "SecureSum",
    "SumServer",
    "SumTerms",
    "secure_parts",
    "terms_of",
]
