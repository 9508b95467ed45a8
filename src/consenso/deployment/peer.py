"""One peer of a graph: its own file, its own disk, its own ledger; it talks to its neighbours, without a server."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from consenso.deployment.engines import RemoteEngine, peer_kind
from consenso.deployment.identity import disk_of, guard_of, names_of, place_of, read_addresses, run_of
from consenso.deployment.outcome import prepare, write
from consenso.deployment.status import LiveStatus, budget_of
from consenso.federation.exchange import Exchanger
from consenso.federation.walker import Walker
from consenso.secure_sum.tree_peer import TreePeer
from consenso.study import Study
from consenso.transport.zenoh.graph import GraphPeer
from consenso.transport.zenoh.tls import Credentials

ENGINE = RemoteEngine("`consenso peer`", peer_kind)


@dataclass(frozen=True, kw_only=True)
class PeerOptions:
    """The options of a peer. `study` is the file that its own operator has read and accepted."""

    study: Study
    name: str
    data: Path | None
    addresses: Path
    certs: Path
    state: Path
    out: Path
    ledger: Path | None = None
    label: str = "1"
    linger: float = 60.0


class PeerMember:
    """Takes part in a graph; everything that can be wrong is found before the network is opened."""

    def __init__(self, options: PeerOptions) -> None:
        self.options, study = options, options.study
        index, names = place_of(study, options.name), names_of(study)
        plan = study.plan()
        kind = peer_kind(plan)
        addresses = read_addresses(options.addresses, names)
        credentials = Credentials.load(options.certs, name=options.name)
        self._run, self._folder = run_of(study, options.label), prepare(options.out, again=run_of(study, options.label))
        shards = study.party_shards(options.name, options.data)
        disk = disk_of(study, options.state, owner=options.name, label=options.label)
        guard = guard_of(study, disk, options.ledger, label=options.label)
        extra: dict[str, Any] = {"guard": guard}
        if kind is TreePeer:
            extra["signatures"] = credentials.signatures(names, self._run)
        self.worker: Exchanger | Walker = kind(plan, shards, index, disk, **extra)
        self.status = LiveStatus(
            role="peer",
            name=options.name,
            run=self._run,
            rounds=plan.rounds,
            delta=study.privacy.delta,
            simulation=study.simulation,
            budget=budget_of(plan, study.privacy.delta),
            round=self.worker.round + 1,
            up={names[other]: False for other in self.worker.neighbours},
        )
        self._names = names
        self._peer = GraphPeer(
            self.worker,
            names,
            addresses,
            run=self._run,
            credentials=credentials,
            linger=options.linger,
            changed=self._note_presence,
            refused=lambda who, reason: self.status.note_refusal(names[int(who)], reason),
            advanced=lambda: self.status.note_round(self.worker.round + 1),
        )

    def run(self) -> Path:
        """Take part until the run has ended and the neighbours know it, then write the folder."""
        self.status.set_state("waiting")
        self._peer.run()
        rounds = self.worker.plan.rounds
        out = write(self.options.study, self._folder, self.worker.model(), rounds=rounds, run=self._run, missing={})
        self.status.set_state("ended")
        self.worker.disk.close()
        return out

    def stop(self) -> None:
        """Leave; the peer goes on from its disk when it is started again."""
        self._peer.stop()

    def _note_presence(self, who: int | str, here: bool) -> None:
        self.status.lines = self._peer.lines
        self.status.note_presence(self._names[int(who)], here)
