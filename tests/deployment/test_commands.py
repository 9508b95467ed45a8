"""What the commands show, refuse and answer."""

from __future__ import annotations

import json
import os
import signal
import stat
import sys
import time
import urllib.request
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from consenso.deployment import certs
from consenso.deployment.status import LiveStatus, StatusPort
from consenso.deployment.view import table_of
from consenso.errors import InputError
from consenso.transport.zenoh.tls import Credentials

NAMES = ("ash", "birch", "cedar")


@pytest.fixture
def answers(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[int, str]]:
    """The program in this process: exit code, and what it wrote."""

    def consenso(*arguments: str | Path) -> tuple[int, str]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # Typer imports what Click is about to drop
            from consenso.cli import main

        monkeypatch.setattr(sys, "argv", ["consenso", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            main()
        out, err = capsys.readouterr()
        return int(ended.value.code or 0), out + err

    return consenso


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def look(port: int) -> dict[str, Any]:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=60) as answer:
        assert answer.headers["Content-Type"] == "application/json"
        return json.loads(answer.read())


def test_a_server_idles_shows_its_status_and_stops_where_it_can_go_on(federation):
    made = federation()
    found = made.free_port()
    server = made.serve("--status-port", str(found))
    made.until(server, '"event": "waiting"')
    before, began = cpu_seconds(server.pid), time.monotonic()
    told = look(found)
    assert (told["role"], told["state"], told["round"], told["rounds"]) == ("server", "waiting", 0, 12)
    assert told["parties"] == dict.fromkeys(NAMES, "down")
    assert set(told["charged"]["epsilon"]) == {"eavesdropper", "server", "peer:0", "public"}
    assert told["simulation"] is True
    time.sleep(2.0)
    # Half a core is far more than waiting and one answer take, however busy the machine; a busy loop takes all of one.
    assert cpu_seconds(server.pid) - before < 0.5 * (time.monotonic() - began)
    server.send_signal(signal.SIGTERM)
    assert server.wait(300) == 130
    assert "give the same command to go on" in made.tail(server)
    lines = [json.loads(line) for line in server.log.read_text().splitlines() if line.startswith("{")]
    assert [line["event"] for line in lines] == ["waiting", "stopped"]


def test_a_server_that_altered_the_study_is_refused_by_everybody(federation):
    made = federation()
    text = (made.folder / "study.toml").read_text()
    made.write("altered.toml", text.replace("multiplier = 2.0", "multiplier = 0.001"))
    server = made.serve(study="altered.toml")
    clients = [made.join(name) for name in NAMES[:2]]
    for name in NAMES[:2]:
        made.until(server, f'"{name}": "the message belongs to another study')
    assert server.poll() is None
    for client, name in zip(clients, NAMES, strict=False):
        client.send_signal(signal.SIGTERM)
        assert client.wait(300) == 130
        assert made.journal(name) == []


def test_a_party_refuses_to_start_with_what_is_not_its_own(federation, answers):
    made = federation()
    base = ["join", made.folder / "study.toml", "--server", "127.0.0.1:1", "--data", made.folder / "ash.csv"]
    base += ["--state", made.folder / "s", "--out", made.folder / "o"]

    def refused(*more: str | Path) -> str:
        code, told = answers(*base, *more)
        assert code == 2
        return told

    certificates = made.folder / "certs"
    assert "not of 'ash'" in refused("--party", "ash", "--certs", certificates / "birch")
    assert "the study names" in refused("--party", "oak", "--certs", certificates / "oak")
    assert "is not there" in refused("--party", "ash", "--certs", made.folder)
    (made.folder / "o").mkdir()
    (made.folder / "o" / "thesis.doc").write_text("mine")
    assert "something else" in refused("--party", "ash", "--certs", certificates / "ash")


def test_what_the_engines_do_not_run_is_refused_before_anything_starts(federation, answers):
    star = federation()
    graph = federation(kind="decentralized", algorithm="IPADMM", setting='topology = "ring"')
    code, told = answers(
        "serve", graph.folder / "study.toml", "--listen", "127.0.0.1:1", "--certs", "nowhere", "--out", "nowhere"
    )
    assert code == 2
    assert "consenso peer" in told
    code, told = answers("peer", star.folder / "study.toml", "--name", "ash", "--certs", "nowhere")
    assert code == 2
    assert "consenso serve" in told


# --- certificates -----------------------------------------------------------------------------------------------------


def test_certificates_are_made_by_command_and_replace_nothing(tmp_path, answers):
    authority, out = tmp_path / "authority", tmp_path / "ash"
    assert answers("certs", "init", authority)[0] == 0
    issue = ["certs", "issue", "ash", "--ca", authority, "--out", out, "--host", "10.0.0.1", "--host", "a.example"]
    assert answers(*issue)[0] == 0
    assert Credentials.load(out, name="ash").name == "ash"
    for secret in (authority / "ca-key.pem", out / "key.pem"):
        assert stat.S_IMODE(secret.stat().st_mode) == 0o600
    assert not (out / "ca-key.pem").exists()
    for again in (issue, ["certs", "init", authority]):
        code, told = answers(*again)
        assert code == 2
        assert "already" in told
    assert "without a port" in answers(*issue[:-1], "b:1", "--out", tmp_path / "other")[1]


def test_a_certificate_says_who_for_what_and_until_when(tmp_path):
    from cryptography import x509

    certs.init(tmp_path / "authority")
    certs.issue(tmp_path / "authority", "ash", out=tmp_path / "ash", hosts=["127.0.0.1", "ash.example"], days=30)
    made = x509.load_pem_x509_certificate((tmp_path / "ash" / "cert.pem").read_bytes())
    ca = x509.load_pem_x509_certificate((tmp_path / "ash" / "ca.pem").read_bytes())
    made.verify_directly_issued_by(ca)
    names = made.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == ["ash.example"]
    assert [str(address) for address in names.get_values_for_type(x509.IPAddress)] == ["127.0.0.1"]
    purposes = made.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    assert {purpose._name for purpose in purposes} == {"serverAuth", "clientAuth"}
    assert not made.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    assert (made.not_valid_after_utc - made.not_valid_before_utc).days == 30


@pytest.mark.parametrize("name", ["", "x" * 65])
def test_a_name_must_fit_on_a_certificate(tmp_path, name):
    certs.init(tmp_path / "authority")
    with pytest.raises(InputError, match="64 bytes"):
        certs.issue(tmp_path / "authority", name, out=tmp_path / "ash")


def test_a_key_that_others_can_read_is_refused(tmp_path):
    certs.init(tmp_path / "authority")
    certs.issue(tmp_path / "authority", "ash", out=tmp_path / "ash")
    (tmp_path / "ash" / "key.pem").chmod(0o644)
    with pytest.raises(InputError, match="chmod 600"):
        Credentials.load(tmp_path / "ash")
    (tmp_path / "ash" / "key.pem").chmod(0o600)
    (tmp_path / "ash" / "cert.pem").write_text("no certificate")
    with pytest.raises(InputError, match="not a certificate"):
        Credentials.load(tmp_path / "ash")


# --- status -----------------------------------------------------------------------------------------------------------


def test_a_status_knows_time_left_and_who_missed_what():
    made = LiveStatus(role="server", name="server", run="ab" * 32, rounds=10, delta=1e-5, simulation=False)
    assert made.snapshot()["seconds_left"] is None
    made.note_presence("ash", True)
    made.note_round(2)
    time.sleep(0.05)
    made.note_round(7, missing=("birch",))
    told = made.snapshot()
    assert 0.0 < told["seconds_left"] < 1.0
    assert told["missing"] == {"birch": 1}
    assert told["parties"] == {"ash": "up"}
    made.set_state("ended")
    assert made.snapshot()["seconds_left"] == 0.0
    port = StatusPort(0)
    port.show(made)
    try:
        assert look(port.port).keys() == made.snapshot().keys()
        assert look(port.port)["missing"] == {"birch": 1}
    finally:
        port.close()


def test_the_panel_shows_everything(capsys):
    from rich.console import Console

    made = LiveStatus(
        role="peer",
        name="ash",
        run="ab" * 32,
        rounds=10,
        delta=1e-5,
        simulation=True,
        budget={"server": 1.5, "public": "inf"},
    )
    made.note_presence("birch", True)
    made.note_presence("cedar", False)
    made.note_round(3, missing=("cedar",))
    Console(width=120, file=None).print(table_of(made.snapshot()))
    shown = capsys.readouterr().out
    for part in ("peer ash", "3 of 10", "birch", "cedar: 1 rounds", "epsilon 1.5", "no guarantee", "simulation"):
        assert part in shown
