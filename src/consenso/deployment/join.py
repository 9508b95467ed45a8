"""One party of a federation: its own file, its own disk, its own ledger; it dials the server and answers it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from consenso.deployment.engines import server_parts
from consenso.deployment.identity import disk_of, guard_of, names_of, place_of, run_of
from consenso.deployment.outcome import prepare, write
from consenso.deployment.status import LiveStatus
from consenso.federation.party import Party
from consenso.study import Study
from consenso.transport.zenoh.access import HUB
from consenso.transport.zenoh.star import SERVER, StarParty
from consenso.transport.zenoh.tls import Credentials


class Member:
    """Takes part in a federation; everything that can be wrong is found before the network is opened.

    study: the file that the party's own operator has read and accepted. client: of a Dask cluster whose workers hold
    the party's rows.
    """

    def __init__(
        self,
        study: Study,
        party: str,
        *,
        data: Path | None,
        server: str,
        certs: Path,
        state: Path,
        out: Path,
        ledger: Path | None,
        label: str,
        client: Any,
    ) -> None:
        index = place_of(study, party)
        plan = study.plan()
        run, credentials = run_of(study, label), Credentials.load(certs, name=party)
        parts = server_parts(plan, credentials.signatures(names_of(study), run))
        self._study, self._run, self._folder = study, run, prepare(out, again=run)
        shards = study.party_shards(party, data, client)
        disk = disk_of(study, state, owner=party, label=label)
        guard = guard_of(study, disk, ledger, label=label)
        self.party = Party(plan, shards, index, disk, guard=guard, contributor=parts.contributor)
        done = self.party.round + 1
        self.status = LiveStatus.of(study, role="party", name=party, run=run, done=done, others=[SERVER])
        self._star = StarParty(
            self.party,
            party,
            run=run,
            server=server,
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
        out = write(self._study, self._folder, model, rounds=self.party.round + 1, run=self._run, missing={})
        self.status.set_state("ended")
        self.party.disk.close()
        return out

    def stop(self) -> None:
        """Leave; the party goes on from its disk when it is started again."""
        self._star.stop()

    def _note_presence(self, who: int | str, here: bool) -> None:
        self.status.channel = self._star.channel
        if who == HUB:
            self.status.note_presence(SERVER, here)
