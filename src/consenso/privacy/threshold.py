"""How many parties a secure sum needs, so that its noise suffices and no coalition can open what is not the sum."""

from __future__ import annotations


def least_threshold(parties: int, absent: int) -> int:
    """The smallest number of parties whose answers may open a sum.

    `absent` is what the noise shares are planned for: parties that collude with the server and parties that drop out of
    a round, together. At least parties - absent shares of noise must be in the sum. More than `absent` secrets must be
    needed to open it, or the colluders would have enough among themselves. The larger of the two is above half of the
    parties, so that of one round no two different sums can be opened.
    """
    return max(parties - absent, absent + 1)
