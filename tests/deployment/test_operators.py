"""What an operator is told when something is in the way, and what can be had after the end."""

from __future__ import annotations

import json
import shutil
import socket

import numpy as np
import pytest

from consenso.deployment import certs
from consenso.deployment.handshakes import reason_in

NAMES = ("ash", "birch", "cedar")
GRAPH = {"kind": "decentralized", "algorithm": "IPADMM", "setting": 'topology = "ring"'}


@pytest.mark.parametrize("command", ["serve", "join", "peer"])
def test_a_status_port_that_is_in_use_is_an_error_before_anything_starts(federation, command):
    made = federation(**(GRAPH if command == "peer" else {}))
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = ["--status-port", str(taken.getsockname()[1])]
        process = made.serve(*port) if command == "serve" else getattr(made, command)("ash", *port)
        assert process.wait(300) == 2
    assert "cannot be used" in made.tail(process)
    assert not (made.folder / "run").exists()
    assert not (made.folder / "ash.state").exists()


@pytest.mark.slow
def test_a_finished_server_hands_the_model_out_again(federation):
    made = federation(rounds=3)
    made.wait(made.serve(), *(made.join(name) for name in NAMES))
    for kept in ("cedar.state", "cedar.run"):
        shutil.rmtree(made.folder / kept)  # it comes as if it had never heard of the end
    before = {file.name: file.read_bytes() for file in (made.folder / "run").iterdir() if file.is_file()}
    late, again = made.join("cedar"), made.serve()
    made.wait(late)
    again.terminate()
    again.wait()
    assert np.array_equal(made.model("cedar.run"), made.model("run"))
    assert {file.name: file.read_bytes() for file in (made.folder / "run").iterdir()} == before
    assert [row["what"] for row in made.journal("cedar")] == ["ended"], "it was asked for nothing"


@pytest.mark.slow
def test_another_run_is_not_handed_out_from_a_finished_folder(federation):
    made = federation(rounds=1)
    made.wait(made.serve(), *(made.join(name) for name in NAMES))
    other = made.serve("--label", "2")
    assert other.wait(300) == 2
    assert "a run is complete there" in made.tail(other)


def test_a_certificate_of_another_authority_leaves_both_operators_a_reason(federation, tmp_path):
    made = federation()
    certs.init(tmp_path / "other")
    folder = certs.issue(tmp_path / "other", "ash", out=tmp_path / "ash", hosts=["127.0.0.1"]) and tmp_path / "ash"
    server = made.serve()
    made.until(server, "waiting")
    party = made.join("ash", "--certs", str(folder))
    made.until(party, "ca.pem")
    made.until(server, "somebody dialled")
    theirs, mine = party.log.read_text(), server.log.read_text()
    assert "refused here" in theirs
    assert "refuses the certificate here" in mine
    reasons = [line for line in mine.splitlines() if "somebody dialled" in line]
    assert len(reasons) == len(set(reasons)), "each reason is told once, however often somebody dials"
    for line in mine.splitlines():
        if line.startswith("{"):
            json.loads(line)
    assert "zenoh_link_tls" not in mine


def test_a_certificate_that_the_own_authority_did_not_issue_is_refused_before_anybody_is_dialled(federation, tmp_path):
    made = federation()
    certs.init(tmp_path / "other")
    certs.issue(tmp_path / "other", "ash", out=tmp_path / "ash", hosts=["127.0.0.1"])
    shutil.copy(made.folder / "certs" / "ash" / "ca.pem", tmp_path / "ash" / "ca.pem")
    party = made.join("ash", "--certs", str(tmp_path / "ash"))
    assert party.wait(300) == 2
    assert "ca.pem has not issued it" in made.tail(party)


def test_peers_of_another_authority_are_named(federation, tmp_path):
    made = federation(**GRAPH)
    certs.init(tmp_path / "other")
    certs.issue(tmp_path / "other", "ash", out=tmp_path / "ash", hosts=["127.0.0.1"])
    stranger, honest = made.peer("ash", "--certs", str(tmp_path / "ash")), made.peer("birch")
    made.until(stranger, "birch: the certificate at")
    made.until(honest, "ash: the certificate at")


def test_other_lines_of_the_network_are_no_reasons():
    assert reason_in("2026 WARN acc-0 zenoh_link_tls::unicast: too many open files. Hint: more.") is None
    assert reason_in('{"event": "round"}') is None
