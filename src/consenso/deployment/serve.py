"""The server of a federation: asks the parties round by round and writes what may be shown."""

from __future__ import annotations

from pathlib import Path

from consenso.deployment.engines import RemoteEngine, server_parts
from consenso.deployment.identity import disk_of, names_of, run_of
from consenso.deployment.outcome import keep_model, prepare, read_kept_model, write
from consenso.deployment.status import LiveStatus
from consenso.federation.hub import HubRun
from consenso.study import Study
from consenso.study.folder import RunFolder
from consenso.transport.zenoh.star import SERVER, StarHub
from consenso.transport.zenoh.tls import Credentials

ENGINE = RemoteEngine("`consenso serve` and `join`", server_parts)


class HubService:
    """Runs a federation; everything that can be wrong is found before the network is opened.

    patience: seconds that a sampled round waits for an answer. linger: seconds that the server waits in the end for
    parties to take the model.
    """

    def __init__(
        self, study: Study, *, listen: str, certs: Path, out: Path, label: str, patience: float, linger: float
    ) -> None:
        self._study, self._linger = study, linger
        plan = study.plan()
        parts = server_parts(plan)
        self._names, self._run = names_of(study), run_of(study, label)
        credentials = Credentials.load(certs, name=SERVER)
        self._folder: RunFolder = prepare(out, again=self._run)
        self._handed: bytes | None = None
        self.hub: HubRun | None = None
        if self._folder.complete:
            self._handed, run = read_kept_model(self._folder)
            done = plan.rounds if run is None else run
        else:
            disk = disk_of(study, self._folder.checkpoint, owner=SERVER, label=label)
            self.hub = HubRun(plan, disk, summation=parts.summation)
            done = self.hub.round
        self.status = LiveStatus.of(
            study, role="server", name=SERVER, run=self._run, done=done, others=self._names.values()
        )
        self._star = StarHub(
            self._names,
            run=self._run,
            listen=listen,
            credentials=credentials,
            limit=parts.limit,
            patience=patience,
            changed=lambda who, here: self.status.note_presence(self._names[int(who)], here),
            refused=lambda who, reason: self.status.note_refusal(self._names[int(who)], reason),
        )
        self.status.channel = self._star.channel

    def run(self) -> Path:
        """Run the rounds that are left, write the folder, and hand the model to the parties; again, if that was all."""
        hub, status = self.hub, self.status
        try:
            status.set_state("waiting")
            if hub is None:
                assert self._handed is not None
                self._star.end(self._handed, seconds=self._linger)
                status.set_state("ended")
                return self._folder.path
            for done in hub.rounds(self._star):
                status.note_round(done.round + 1, tuple(self._names[party] for party in done.missing))
            missing = self._list_missing(hub)
            out = write(self._study, self._folder, hub.model(), rounds=hub.round, run=self._run, missing=missing)
            keep_model(self._folder, hub.model_bytes())
            self._star.end(hub.model_bytes(), seconds=self._linger)
            status.set_state("ended")
            hub.disk.close()
            self._folder.discard()
            return out
        finally:
            self._star.close()

    def stop(self) -> None:
        """Give up waiting; the run goes on from its folder when it is started again."""
        self._star.stop()

    def _list_missing(self, hub: HubRun) -> dict[str, list[int]]:
        found: dict[str, list[int]] = {}
        for row in hub.disk.journal():
            for party in row.get("missing", ()):
                found.setdefault(self._names[party], []).append(row["round"])
        return found
