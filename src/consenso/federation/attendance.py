"""Whether a party may take part in a round: what its schedule says, as far as the party can tell by itself."""

from __future__ import annotations

from consenso.engine.codec import MessageError
from consenso.engine.coins import make_coins
from consenso.planning.plan import Plan
from consenso.schedules import Certain, Independent, OncePerPass, PoissonSubset, Visits

# More participations than an honest schedule gives with this chance are refused.
HONEST = 1e-12


class Attendance:
    """The schedule of a plan, seen by one party.

    Poisson coins are the party's own: it needs nobody's word for the sample that its guarantee is made of. Whose turn
    it is in a fixed order it can see. Where somebody else draws, the party counts, and refuses what no honest draw
    would ask of it.
    """

    def __init__(self, plan: Plan, party: int) -> None:
        self._plan, self._party = plan, party
        self._most = _most(plan, party)
        law = plan.schedule.participation(party, plan.rounds, plan.parties)
        self._own = law.own if isinstance(law, Certain | Visits) else None

    def draw(self, round_: int) -> bool:
        """Whether the party's own coin has it in a round; True where the schedule is not drawn by the parties.

        A coin of a sampler for deployment comes up anew whenever it is drawn: keep what it said.
        """
        schedule = self._plan.schedule
        if not isinstance(schedule, PoissonSubset):
            return True
        coins = make_coins(self._plan.sampler)
        return self._party in schedule.active(round_, None, self._plan.parties, coins)

    def check(self, round_: int, before: int) -> None:
        """Refuse a round that is not this party's, given in how many it took part before."""
        if self._own is not None and round_ not in self._own:
            raise MessageError(f"round {round_} is another party's turn in the order of the study.")
        if before >= self._most:
            raise MessageError(
                f"this party has taken part in {before} rounds, and an honest schedule would hardly ask for more."
            )


def _most(plan: Plan, party: int) -> int:
    """How often a party may take part before the draw cannot be believed."""
    law = plan.schedule.participation(party, plan.rounds, plan.parties)
    if isinstance(law, Certain):
        return law.count
    if isinstance(law, OncePerPass):
        return law.most
    if isinstance(law, Independent):
        if law.poisson:
            return plan.rounds
        from scipy.stats import binom

        return int(binom.isf(HONEST, law.rounds, law.rate))
    tail = 0.0
    for count in range(len(law.chances) - 1, 0, -1):
        tail += law.chances[count]
        if tail > HONEST:
            return count
    return 0
