"""What a secure sum costs beside a plain one: ten parties, ten thousand entries, all in one process.

Two rounds are timed, each against the plain round that does everything else alike. *In the engine*: a hub and its
parties run whole rounds, with the party's step, its noise, and what is kept on disk before it is sent; the limit is for
this one. *On the wire*: messages are written, read, checked and added up, nothing more; a plain round is then little
else than copying, and the secure one is ninety key agreements and a hundred masks. In a deployment the parties work at
the same time, so that the hub waits for one of them only; `one party` is that share. Times are of the processor, since
a round of many milliseconds is interrupted more often on a busy machine than one of a few hundred microseconds.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.measure import Figure, best, seconds
from consenso.algorithms.dp_sgd import DPSGD
from consenso.engine.codec import RecordSchema, decode_values, encode_values
from consenso.engine.fixed_point import GridColumn, decode, encode
from consenso.federation.disk import Disk
from consenso.federation.hub import HubRun, Question
from consenso.federation.party import Party
from consenso.federation.sum_protocol import Check, plain_parts
from consenso.losses import Logistic
from consenso.planning.plan import Plan, plan
from consenso.privacy.noise import GaussianNoise
from consenso.privacy.samplers import Seeded
from consenso.problem import Problem
from consenso.regularizers import L2
from consenso.secure_sum import Client, Occasion, SumServer, SumTerms, secure_parts
from consenso.secure_sum.wire import Wire
from consenso.shards import Shards

PARTIES, ENTRIES, ABSENT, LIMIT = 10, 10_000, 3, 20.0


def run() -> Iterator[Figure]:
    """Ratios, measured in turns in one run, so that a busy machine slows both sides down."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        rounds = [in_the_engine(stack, folder / trust, trust) for trust in ("local", "secure-sum")]
        plain_time, masked_time = best(*rounds, repeats=12)
    note = f"plain {1e3 * plain_time:.1f} ms, secure {1e3 * masked_time:.1f} ms, steps, noise and disks included"
    yield Figure("round in the engine, secure over plain", masked_time / plain_time, limit=LIMIT, note=note)
    plain, masked, one = on_the_wire()
    plain_time, masked_time = processor(plain, 40), processor(masked, 40)
    note = f"plain {1e3 * plain_time:.2f} ms, secure {1e3 * masked_time:.2f} ms of processor time"
    yield Figure("round on the wire, secure over plain", masked_time / plain_time, note=note)
    yield Figure("one party's part of the secure round", 1e3 * min(one), "ms")


def processor(call: Callable[[], Any], repeats: int) -> float:
    """The least processor time of a call, in seconds; the first is not counted."""
    found = []
    for _ in range(repeats + 1):
        start = time.process_time()
        call()
        found.append(time.process_time() - start)
    return min(found[1:])


def on_the_wire() -> tuple[Callable[[], Any], Callable[[], Any], list[float]]:
    """A plain round, a secure round, and how long the parties of the secure rounds took."""
    values = np.random.default_rng(0).standard_normal((PARTIES, ENTRIES))
    schema = RecordSchema.of_values("Up", {"x": values[:1]})
    terms = SumTerms(run=bytes(32), parties=PARTIES, absent=ABSENT)
    clients, server, wire = [Client(terms, party) for party in range(PARTIES)], SumServer(terms), Wire(terms)
    for client in clients:
        server.greet(client.hello())
    for client in clients:
        client.meet(server.circle())
    column = GridColumn(name="x", shape=(ENTRIES,), grid=2.0**-40)
    rounds, one = iter(range(10**9)), list[float]()
    expected = values.sum(axis=0)

    def plain() -> None:
        total = np.zeros(ENTRIES)
        for row in values:
            total += decode_values(encode_values("Up", {"x": row[None, :]}), schema)["x"][0]
        assert np.allclose(total, expected)

    def masked() -> None:
        at = Occasion(round=next(rounds))

        def advertise(client: Client) -> None:
            adverts[client.party] = wire.write_advert(client.advertise(at))

        for client in clients:
            took = seconds(
                lambda client=client: adverts.update({client.party: wire.write_advert(client.advertise(at))})
            )
            spent[client.party] = took
        for party, blob in adverts.items():
            server.take_advert(wire.read_advert(blob, party, at))
        calls = {party: wire.write_call(call) for party, call in server.call(at).items()}

        def answer(party: int) -> None:
            sent = clients[party].mask(wire.read_call(calls[party], at), encode(values[party], column))
            answers[party] = wire.write_masked(sent, {})

        for party in calls:
            spent[party] += seconds(lambda party=party: answer(party))
        for party, blob in answers.items():
            server.take_masked(wire.read_masked(blob, party, at, ENTRIES, {}))
        survivors = server.survivors()
        request = wire.write_survivors(survivors)
        roster = survivors.survivors

        def reveal(party: int) -> None:
            read = wire.read_survivors(request, at)
            shares[party] = wire.write_shares(read.survivors, roster, clients[party].reveal(read).shares)

        for party in calls:
            spent[party] += seconds(lambda party=party: reveal(party))
        for party, blob in shares.items():
            server.take_shares(wire.read_shares(blob, party, at, roster)[1])
        assert np.allclose(decode(server.total(), column), expected)
        one.append(float(np.median(list(spent.values()))))

    adverts: dict[int, bytes] = {}
    answers: dict[int, bytes] = {}
    shares: dict[int, bytes] = {}
    spent: dict[int, float] = {}
    return plain, masked, one


class Direct:
    """Hands a hub's questions to its parties in this process."""

    def __init__(self, parties: list[Party]) -> None:
        self._parties = parties

    def ask(self, questions: Mapping[int, Question], check: Check, *, partial: bool) -> dict[int, bytes]:
        """Ask one after the other."""
        answers = {}
        for party, question in questions.items():
            answer = self._parties[party].answer(
                round_=question.round, stage=question.stage, body=question.body, counted=question.counted
            )
            check(party, answer)
            answers[party] = answer
        return answers


def in_the_engine(stack: ExitStack, folder: Path, trust: str) -> Callable[[], Any]:
    """Whole rounds of a hub and its parties."""
    made = _plan(trust)
    parts = secure_parts(made) if trust == "secure-sum" else plain_parts(made)
    rng = np.random.default_rng(0)
    data = [
        (rng.standard_normal((5, ENTRIES)) / np.sqrt(ENTRIES), np.sign(rng.standard_normal(5))) for _ in range(PARTIES)
    ]
    shards = Shards.from_parties(made.problem, data)
    parties = []
    for party in range(PARTIES):
        disk = _disk(stack, folder, str(party))
        contributor = secure_parts(made)[1] if trust == "secure-sum" else parts[1]
        parties.append(Party(made, shards, party, disk, contributor=contributor))
    hub = HubRun(made, _disk(stack, folder, "hub"), summation=parts[0])
    rounds = hub.rounds(Direct(parties))
    next(rounds)  # keys are agreed, forms are rehearsed
    next(rounds)
    return lambda: next(rounds)


def _plan(trust: str) -> Plan:
    problem = Problem(
        loss=Logistic(), regularizer=L2(strength=0.1), features=ENTRIES, sizes=np.full(PARTIES, 5), row_bound=2.0
    )
    return plan(
        problem,
        DPSGD(step=1.0, clip=0.6),
        rounds=40,
        noise=GaussianNoise(multiplier=1.0),
        trust=trust,  # type: ignore[arg-type]
        sampler=Seeded(7),
        colluders=ABSENT if trust == "secure-sum" else 0,
    )


def _disk(stack: ExitStack, folder: Path, owner: str) -> Disk:
    disk = Disk(folder / owner, owner=owner, run="r", fingerprint="f")
    stack.callback(disk.close)
    return disk
