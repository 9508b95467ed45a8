from __future__ import annotations

import json
import subprocess
import sys

import pytest
from tests import forks

from consenso.algorithms import discover, find
from consenso.errors import InputError

PROGRAM = [sys.executable, "-c", "from consenso.cli import main; main()"]


def test_every_definition_is_listed_with_a_theorem_for_every_observer() -> None:
    done = forks.run("algorithms", "--json")
    listed = json.loads(done.stdout)
    assert [each["name"] for each in listed] == list(discover())
    for each in listed:
        assert each["shape"] in ("hub", "peer")
        assert each["sources"]
        for setting in each["settings"]:
            assert "public" in setting["theorem by observer"]
            assert "eavesdropper" in setting["theorem by observer"]


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ("DP-IADMM-Prox", "InexactADMM"),
        ("ObjP", "InexactADMM"),
        ("DP-IADMM-Trust", "InexactADMM"),
        ("ObjT", "InexactADMM"),
        ("OutP", "DPADMM"),
        ("DP-SGD", "DPSGD"),
        ("DP-CD", "DPCD"),
        ("IPADMM", "IPADMM"),
        ("PVP", "PrimalPerturbation"),
        ("DVP", "DualPerturbation"),
        ("R-ADMM", "RecycledADMM"),
        ("DP-ADMM", "GraphDPADMM"),
        ("zCDP-NFL", "NetworkedADMM"),
        ("(eps,delta)-NFL", "NetworkedADMM"),
        ("zCDP-grad-NFL", "DistributedSubgradient"),
        ("P-ADMM", "PADMM"),
        ("000-1", "NoisyFixedPoint"),
        ("000-2", "ConsensusADMM"),
        ("000-3", "ConsensusADMM"),
        ("000-4", "ConsensusADMM"),
        ("000-5", "GeneralADMM"),
        ("000-6", "ConsensusADMM"),
        ("consensusadmm", "ConsensusADMM"),
    ],
)
def test_the_papers_names_find_them(asked: str, found: str) -> None:
    assert find(asked).__name__ == found


def test_an_unknown_name_proposes_the_nearest() -> None:
    with pytest.raises(InputError, match="did you mean 'IPADMM'"):
        find("IPADM")


def test_importing_loads_nothing_heavy_and_help_names_the_commands() -> None:
    heavy = ("numba", "sklearn", "dp_accounting", "opendp", "scipy")
    script = f"import sys, consenso; print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
    done = subprocess.run([*PROGRAM, "--help"], capture_output=True, text=True, timeout=300, check=True)
    for command in ("algorithms", "card", "data", "demo", "ledger", "verify"):
        assert command in done.stdout
