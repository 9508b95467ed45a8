"""Secure sum: the server learns the sum of the parties' integers and nothing else of them (Bonawitz et al. 2017).

`Client` and `Server` turn messages into messages; an engine carries them. See docs/secure-sum.md.
"""

from consenso.runtime.secure_sum.client import Client
from consenso.runtime.secure_sum.server import DiscardedError, Server
from consenso.runtime.secure_sum.terms import Occasion, Terms

__all__ = ["Client", "DiscardedError", "Occasion", "Server", "Terms"]
