"""Whole federations in processes of their own, over mutual TLS on loopback."""

from __future__ import annotations

import json

import numpy as np
import pytest


def test_a_star_gives_the_model_of_the_local_engine(federation):
    made = federation()
    server = made.serve()
    clients = [made.join(name) for name in ("ash", "birch", "cedar")]
    made.wait(server, *clients)
    expected = made.train()
    assert np.array_equal(made.model("run"), expected)
    for name in ("ash", "birch", "cedar"):
        assert np.array_equal(made.model(f"{name}.run"), expected)
        steps = [row for row in made.journal(name) if row["what"] == "step"]
        assert [row["round"] for row in steps] == list(range(12))


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


def test_a_masked_sum_runs_over_the_star(federation):
    made = federation(algorithm="DPSGD", rounds=6, setting='trust = "secure-sum"\ncolluders = 1')
    server = made.serve()
    clients = [made.join(name) for name in ("ash", "birch", "cedar")]
    made.wait(server, *clients)
    assert np.array_equal(made.model("run"), made.train())
    for name in ("ash", "birch", "cedar"):
        assert np.array_equal(made.model(f"{name}.run"), made.model("run"))
        assert [row["round"] for row in made.journal(name) if row["what"] == "step"] == list(range(6))
