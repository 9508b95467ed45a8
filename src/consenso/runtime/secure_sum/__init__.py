"""Secure sum: the server learns the sum of the parties' integers and nothing else of them (Bonawitz et al. 2017).

`Client` and `Server` turn messages into messages. `secure_parts` makes of them what engines carry: a `Summation` for
the hub and a `Contributor` for the party. See docs/secure-sum.md.
"""

from consenso.runtime.secure_sum.client import Client
from consenso.runtime.secure_sum.contributor import SecureContributor
from consenso.runtime.secure_sum.gathering import SecureSum, secure_parts, terms_of
from consenso.runtime.secure_sum.server import DiscardedError, Server
from consenso.runtime.secure_sum.terms import Occasion, Terms

__all__ = [
    "Client",
    "DiscardedError",
    "Occasion",
    "SecureContributor",
    "SecureSum",
    "Server",
    "Terms",
    "secure_parts",
    "terms_of",
]
