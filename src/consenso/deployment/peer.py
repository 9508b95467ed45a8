"""One peer of a graph: its own file, its own disk, its own ledger; it talks to its neighbours, without a server."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from consenso.deployment.engines import RemoteEngine, peer_kind
from consenso.deployment.identity import disk_of, guard_of, names_of, place_of, read_addresses, run_of
from consenso.deployment.outcome import prepare, write
from consenso.deployment.status import LiveStatus
from consenso.federation.exchange import Exchanger
from consenso.federation.walker import Walker
from consenso.secure_sum.tree_peer import TreePeer
from consenso.study import Study
from consenso.transport.zenoh.graph import GraphPeer
from consenso.transport.zenoh.tls import Credentials

ENGINE = RemoteEngine("`consenso peer`", peer_kind)


class PeerMember:
    """Takes part in a graph; everything that can be wrong is found before the network is opened.

    study: the file that the peer's own operator has read and accepted. linger: seconds to wait in the end for
    neighbours that are not done.
    """

    def __init__(
        self,
        study: Study,
        name: str,
        *,
        data: Path | None,
        addresses: Path,
        certs: Path,
        state: Path,
        out: Path,
        ledger: Path | None,
        label: str,
        linger: float,
    ) -> None:
        index, names = place_of(study, name), names_of(study)
        plan, run = study.plan(), run_of(study, label)
        kind = peer_kind(plan)
        listed = read_addresses(addresses, names)
        credentials = Credentials.load(certs, name=name)
        self._study, self._run, self._folder = study, run, prepare(out, again=run)
        shards = study.party_shards(name, data)
        disk = disk_of(study, state, owner=name, label=label)
        extra: dict[str, Any] = {"guard": guard_of(study, disk, ledger, label=label)}
        if kind is TreePeer:
            extra["signatures"] = credentials.signatures(names, run)
        self.worker: Exchanger | Walker = kind(plan, shards, index, disk, **extra)
        done, others = self.worker.round + 1, [names[other] for other in self.worker.neighbours]
        self.status = LiveStatus.of(study, role="peer", name=name, run=run, done=done, others=others)
        self._names = names
        self._peer = GraphPeer(
            self.worker,
            names,
            listed,
            run=run,
            credentials=credentials,
            linger=linger,
            changed=self._note_presence,
            refused=lambda who, reason: self.status.note_refusal(names[int(who)], reason),
            advanced=lambda: self.status.note_round(self.worker.round + 1),
        )

    def run(self) -> Path:
        """Take part until the run has ended and the neighbours know it, then write the folder."""
        self.status.set_state("waiting")
        self._peer.run()
        rounds = self.worker.plan.rounds
        out = write(self._study, self._folder, self.worker.model(), rounds=rounds, run=self._run, missing={})
        self.status.set_state("ended")
        self.worker.disk.close()
        return out

    def stop(self) -> None:
        """Leave; the peer goes on from its disk when it is started again."""
        self._peer.stop()

    def _note_presence(self, who: int | str, here: bool) -> None:
        self.status.channel = self._peer.channel
        self.status.note_presence(self._names[int(who)], here)
