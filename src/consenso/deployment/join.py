"""One party of a federation: its own file, its own disk, its own ledger; it dials the server and answers it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from consenso.deployment.engines import server_parts
from consenso.deployment.identity import disk_of, guard_of, names_of, place_of, run_of
from consenso.deployment.outcome import prepare, write
from consenso.deployment.status import LiveStatus, budget_of
from consenso.federation.party import Party
from consenso.study import Study
from consenso.transport.zenoh.access import HUB
from consenso.transport.zenoh.star import SERVER, StarParty
from consenso.transport.zenoh.tls import Credentials


@dataclass(frozen=True, kw_only=True)
class PartyOptions:
    """The options of a party. `study` is the file that its own operator has read and accepted."""

    study: Study
    party: str
    data: Path | None
    server: str
    certs: Path
    state: Path
    out: Path
    ledger: Path | None = None
    label: str = "1"
    client: Any = None  # of a Dask cluster whose workers hold the party's rows


class Member:
    """Takes part in a federation; everything that can be wrong is found before the network is opened."""

    def __init__(self, options: PartyOptions) -> None:
        self.options, study = options, options.study
        index = place_of(study, options.party)
        plan = study.plan()
        run, credentials = run_of(study, options.label), Credentials.load(options.certs, name=options.party)
        parts = server_parts(plan, credentials.signatures(names_of(study), run))
        self._run, self._folder = run, prepare(options.out, again=run)
        shards = study.party_shards(options.party, options.data, options.client)
        disk = disk_of(study, options.state, owner=options.party, label=options.label)
        guard = guard_of(study, disk, options.ledger, label=options.label)
        self.party = Party(plan, shards, index, disk, guard=guard, contributor=parts.contributor)
        self.status = LiveStatus(
            role="party",
            name=options.party,
            run=run,
            rounds=plan.rounds,
            delta=study.privacy.delta,
            simulation=study.simulation,
            budget=budget_of(plan, study.privacy.delta),
            round=self.party.round + 1,
            up={SERVER: False},
        )
        self._star = StarParty(
            self.party,
            options.party,
            run=run,
            server=options.server,
            credentials=credentials,
            limit=parts.limit,
            changed=self._note_presence,
            answered=lambda: self.status.note_round(self.party.round + 1),
        )

    def run(self) -> Path:
        """Answer the server until the run has ended, then write the folder."""
        if not self.party.finished:
            self.status.set_state("waiting")
            self._star.run()
        model = self.party.model
        assert model is not None
        out = write(self.options.study, self._folder, model, rounds=self.party.round + 1, run=self._run, missing={})
        self.status.set_state("ended")
        self.party.disk.close()
        return out

    def stop(self) -> None:
        """Leave; the party goes on from its disk when it is started again."""
        self._star.stop()

    def _note_presence(self, who: int | str, here: bool) -> None:
        self.status.lines = self._star.lines
        if who == HUB:
            self.status.note_presence(SERVER, here)
