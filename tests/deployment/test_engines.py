"""Which engine runs what: the table of the guide is the one that the code makes."""

from __future__ import annotations

from pathlib import Path

import pytest

from consenso.algorithms import discover
from consenso.algorithms.dp_sgd import DPSGD
from consenso.algorithms.ipadmm import IPADMM
from consenso.deployment.engines import list_engines, peer_kind, refusal, server_parts, table
from consenso.errors import InputError
from consenso.federation.node import Node
from consenso.federation.walker import Walker
from consenso.schedules import FixedSubset, RandomWalk
from consenso.secure_sum.tree_peer import TreePeer
from consenso.testing.graph_sums import place_on_graph
from consenso.testing.laws import plan_example, settings_of

PAGE = Path(__file__).parents[2] / "docs" / "federation.md"


def test_the_guide_has_the_table_that_the_code_makes() -> None:
    examples = [definition.example() for definition in discover().values()]
    placed = [place_on_graph(example) for example in examples]
    made = table(plan for example in (*examples, *placed) if example is not None for plan in settings_of(example))
    text = PAGE.read_text(encoding="utf-8")
    assert made in text, f"docs/federation.md: the table of engines is another now; replace it by\n\n{made}"
    # Nothing is left out: an algorithm that is discovered has a line.
    for name in discover():
        assert f"| {name} | " in made


def test_a_line_says_what_each_engine_does() -> None:
    plans = [plan_example(DPSGD.example(), trust="secure-sum", schedule=FixedSubset(2)), plan_example(IPADMM.example())]
    _, _, masked, graph, _, *reasons = table(plans).splitlines()
    assert masked == "| DPSGD | FixedSubset | secure-sum | no (1) | no (2) | no (1) |"
    assert graph == "| IPADMM | Everyone | local | no (3) | yes | no (3) |"
    assert [reason[:3] for reason in reasons] == ["1. ", "2. ", "3. "]
    assert "cannot draw for themselves" in reasons[0]


def test_an_engine_is_asked_before_anything_starts() -> None:
    graph, walk = plan_example(IPADMM.example()), plan_example(DPSGD.example(), trust="local", schedule=RandomWalk())
    assert peer_kind(graph) is Node
    assert peer_kind(walk) is Walker
    summing = place_on_graph(DPSGD.example())
    assert summing is not None
    assert peer_kind(plan_example(summing)) is TreePeer
    with pytest.raises(InputError, match="without a server; run it with `consenso peer`"):
        server_parts(plan_example(summing))
    for made in (graph, walk):
        with pytest.raises(InputError, match="consenso peer"):
            server_parts(made)
    assert server_parts(plan_example(DPSGD.example())).limit > 0
    assert [refusal(engine, graph) is None for engine in list_engines()] == [False, True, False]
