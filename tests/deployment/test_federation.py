"""Whole federations in processes of their own, over mutual TLS on loopback."""

from __future__ import annotations

import json

import numpy as np
import pytest
from tests.deployment.conftest import SCHEMA

from consenso.deployment import certs
from consenso.errors import InputError
from consenso.privacy.verify import first_failure, verify_file
from consenso.shards.cluster import connect


@pytest.mark.slow
@pytest.mark.parametrize(
    ("algorithm", "setting"),
    [("IPADMM", 'topology = "ring"'), ("ConsensusADMM", 'schedule = "random-walk"\ntopology = "path"')],
)
def test_a_graph_gives_the_model_of_the_local_engine(federation, algorithm, setting):
    made = federation(kind="decentralized", algorithm=algorithm, setting=setting)
    peers = [made.peer(name) for name in ("ash", "birch", "cedar")]
    made.wait(*peers)
    expected = made.train()
    for name in ("ash", "birch", "cedar"):
        assert np.array_equal(made.model(f"{name}.run"), expected)
    rounds = sorted(row["round"] for name in ("ash", "birch", "cedar") for row in made.journal(name) if "round" in row)
    assert rounds == sorted(list(range(12)) * (3 if algorithm == "IPADMM" else 1))
    assert json.loads((made.folder / "ash.run" / "run.json").read_text())["rounds"] == 12


@pytest.mark.slow
def test_a_masked_sum_runs_over_the_star(federation):
    made = federation(algorithm="DPSGD", rounds=6, setting='trust = "secure-sum"\ncolluders = 1')
    server = made.serve()
    clients = [made.join(name) for name in ("ash", "birch", "cedar")]
    made.wait(server, *clients)
    assert np.array_equal(made.model("run"), made.train())
    for name in ("ash", "birch", "cedar"):
        assert np.array_equal(made.model(f"{name}.run"), made.model("run"))
        assert [row["round"] for row in made.journal(name) if row["what"] == "step"] == list(range(6))


@pytest.mark.slow
def test_people_with_several_rows_over_the_star(federation):
    """Two hospitals, 20 patients each with one to three stays: the model of one process, and cards that say person."""
    told = 'multiplier = 2.0\nseed = 7\nunit = "person"'
    made = federation(parties=("ash", "birch"), algorithm="PreconditionedFixedPoint", rounds=7, privacy=told)
    made.write("schema.toml", SCHEMA + '[columns.patient]\nkind = "user"\n')
    for party in ("ash", "birch"):
        head, *lines = (made.folder / f"{party}.csv").read_text().splitlines()
        stays = [f"{line},{party}-{number}" for number, line in enumerate(lines) for _ in range(1 + number % 3)]
        made.write(f"{party}.csv", "\n".join([f"{head},patient", *stays]) + "\n")
    made.wait(made.serve(), made.join("ash"), made.join("birch"))
    expected = made.train()
    for out in ("run", "ash.run", "birch.run"):
        assert np.array_equal(made.model(out), expected)
        card = made.folder / out / "card.json"
        assert {entry["unit"] for entry in json.loads(card.read_text())["entries"]} == {"person"}
        assert first_failure(verify_file(card)) is None
    # Sizes are numbers of people: a patient more is refused.
    made.write("ash.csv", (made.folder / "ash.csv").read_text() + "50,120,no,no,somebody\n")
    with pytest.raises(InputError, match="ash: 20 people are declared"):
        made.train()


@pytest.mark.slow
def test_a_party_joins_with_a_table_on_a_cluster_that_speaks_tls(federation, authority, monkeypatch):
    """One hospital's rows are on workers behind TLS; everybody's model is that of tables in memory."""
    import dask
    from distributed import LocalCluster, Security

    made = federation(algorithm="PreconditionedFixedPoint", rounds=8)
    head, *lines = (made.folder / "ash.csv").read_text().splitlines()
    for part, rows in enumerate((lines[:7], lines[7:])):
        made.write(f"ash-{part}.csv", "\n".join([head, *rows]) + "\n")
    own = authority / "oak"
    files = {"ca-file": str(own / certs.CA)}
    for role in ("scheduler", "worker", "client"):
        files |= {f"{role}.cert": str(own / certs.CERTIFICATE), f"{role}.key": str(own / certs.KEY)}
    settings = {f"distributed.comm.tls.{name}": path for name, path in files.items()}
    with dask.config.set(settings | {"distributed.comm.require-encryption": True}):
        told = {"host": "127.0.0.1", "protocol": "tls://", "security": Security(), "dashboard_address": None}
        told["scheduler_kwargs"] = {"dashboard_address": "127.0.0.1:0"}
        workers = LocalCluster(n_workers=1, threads_per_worker=1, **told)
    with workers:
        address = workers.scheduler_address
        assert address.startswith("tls://")
        monkeypatch.setattr("consenso.shards.cluster.PATIENCE", 2)
        with pytest.raises(InputError, match="check the address and its certificates"), connect(address):
            pass
        for name, path in settings.items():
            monkeypatch.setenv("DASK_" + name.replace(".", "__").replace("-", "_").upper(), path)
        on_cluster = made.join("ash", "--data", "ash-*.csv", "--engine", "dask", "--scheduler", address)
        everybody = [made.serve(), on_cluster, made.join("birch"), made.join("cedar")]
        made.wait(*everybody)
    expected = made.train()
    for name in ("run", "ash.run", "birch.run"):
        assert np.array_equal(made.model(name), expected)
