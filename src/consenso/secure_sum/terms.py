"""What the parties of a secure sum agree on beforehand: who they are, how many may be missing, what it is for."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from consenso.errors import InputError
from consenso.privacy.threshold import least_threshold

RUN_BYTES = 32


@dataclass(frozen=True, kw_only=True, order=True)
class Occasion:
    """One use of the protocol. Keys, masks and messages belong to one occasion of one run and to no other.

    A round whose sum could not be taken may be tried again, as another attempt with fresh keys.
    """

    round: int
    attempt: int = 0

    def __post_init__(self) -> None:
        if not (0 <= self.round < 1 << 63 and 0 <= self.attempt < 1 << 31):
            raise InputError(
                f"Occasion(round={self.round}, attempt={self.attempt}): rounds and attempts are counted from 0."
            )

    @cached_property
    def tag(self) -> bytes:
        """The occasion as bytes that enter every derived key."""
        return self.round.to_bytes(8, "big") + self.attempt.to_bytes(4, "big")


@dataclass(frozen=True, kw_only=True)
class SumTerms:
    """The terms of one run: `run` is a hash of what is run, `absent` the number that the noise shares are planned for.

    `absent` counts the parties that collude with the server and those that drop out of a round together. `threshold`
    is how many parties must answer in every step; with fewer nothing is unmasked. It is at least
    max(parties - absent, absent + 1): so many that the noise of those who answered suffices, and more than can collude.
    Left out, it is that number.
    """

    run: bytes
    parties: int
    absent: int = 0
    threshold: int = 0

    def __post_init__(self) -> None:
        if len(self.run) != RUN_BYTES:
            raise InputError(f"Terms(run of {len(self.run)} bytes): a run is named by a hash of {RUN_BYTES} bytes.")
        if self.parties < 2:
            raise InputError(
                f"Terms(parties={self.parties}): a sum of one party is that party's value; use trust='curator' or "
                "'local'."
            )
        if not 0 <= self.absent <= self.parties - 2:
            raise InputError(
                f"Terms(absent={self.absent}): between 0 and {self.parties - 2} of {self.parties} parties may collude "
                "or drop out, so that one other is left to hide a party."
            )
        if self.threshold == 0:
            object.__setattr__(self, "threshold", self.least)
        if not self.least <= self.threshold <= self.parties:
            raise InputError(
                f"Terms(threshold={self.threshold}): with {self.parties} parties and {self.absent} absent ones the "
                f"threshold lies between {self.least} and {self.parties}."
            )

    @property
    def least(self) -> int:
        """The smallest threshold: enough noise remains, and no coalition holds that many shares."""
        return least_threshold(self.parties, self.absent)

    @property
    def dropouts(self) -> int:
        """How many parties may drop out of a round, over all its steps, before it is discarded."""
        return self.parties - self.threshold
