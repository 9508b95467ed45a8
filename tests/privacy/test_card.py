"""The privacy card: it says what was proved, and no field of it can be changed unnoticed."""

from __future__ import annotations

import copy
import json
import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from consenso.errors import InputError, PrivacyError, TamperError
from consenso.losses import Huber
from consenso.privacy.accountants import best
from consenso.privacy.card import Card, round_up
from consenso.privacy.card.document import digest
from consenso.privacy.events import Gaussian, Laplace, Unbounded, compose
from consenso.privacy.guarantee import Guarantee
from consenso.privacy.observers import parse
from consenso.privacy.samplers import Seeded
from consenso.privacy.serial import to_json
from consenso.privacy.theorems import Composition, Theorem
from consenso.privacy.theorems.curator import PerturbedObjective
from consenso.privacy.theorems.sampling import FixedSizeWithoutMemory
from consenso.privacy.theorems.theorem_f import MeanOfNoisyStates
from consenso.privacy.verify import first_failure, verify

DELTA = 1e-5

# What the parameters of a card do not determine: changing it is found by the digest alone.
FREE = ("algorithm", "parameters", "data", "versions", "refusals")


class Secret:
    """Stands for a sampler that keeps its noise secret; only its name and nature are on the card."""

    name = "a secret source"
    private = True


def promise(observer: str, theorem: Theorem, party: int = 0, refusals: tuple[str, ...] = ()) -> Guarantee:
    return Guarantee.of(theorem, parse(observer), theorem.adjacency, party=party, refusals=refusals)


def local(std: float = 20.0) -> FixedSizeWithoutMemory:
    return FixedSizeWithoutMemory(size=1, population=1, contribution=1.0, std=std, rounds=30)


def build(*promises: Guarantee, sampler: Any = None, kinds: dict[int, int] | None = None) -> Card:
    return Card.build(
        algorithm="ConsensusADMM",
        parameters={"step": 0.5, "relaxation": 0.5, "loss": Huber(threshold=0.7), "clip": None},
        data={"adjacency": "add-remove", "records": 4000, "row_bound": 1.0, "target_bound": math.inf},
        trust="local",
        sampler=sampler or Secret(),
        delta=DELTA,
        promises=promises,
        kinds=kinds,
    )


@pytest.fixture(scope="module")
def card() -> Card:
    """Four observers; the eavesdropper's cost differs over three kinds of parties."""
    mixed = compose(Gaussian(9.0, 1.0, 1e-12), Laplace(30.0, 1.0))
    return build(
        promise("eavesdropper", local(25.0), party=2),
        promise("eavesdropper", local(20.0), party=0),
        promise("eavesdropper", local(40.0), party=7),
        promise("server", local(), refusals=("MeanOfNoisyStates: the server sees every message.",)),
        promise(
            "peer:1", Composition(released=mixed, why="every release is clipped", adjacency="add-remove", unit="record")
        ),
        promise(
            "public",
            MeanOfNoisyStates(parties=12, rounds=30, step=0.5, lipschitz=1.0, relaxation=0.5, std=20.0),
            refusals=("x", "y"),
        ),
        kinds={2: 4, 0: 3, 7: 5},
    )


@pytest.fixture(scope="module")
def stored(card: Card) -> dict[str, Any]:
    made: dict[str, Any] = json.loads(json.dumps(card.to_json()))
    return made


def failure(card: dict[str, Any]) -> str | None:
    found = first_failure(verify(card))
    return None if found is None else found.field


def test_a_card_says_what_was_proved(card: Card) -> None:
    entry = card.entries[1]
    cost = best(local().event(), DELTA)
    assert (entry.observer, entry.unit, entry.adjacency) == ("server", "party", "replace-one")
    assert (entry.epsilon, entry.method) == (cost.epsilon, cost.method)
    # 30 releases that move by 4 step lipschitz against std 20, in units of the relaxation.
    assert entry.rho == pytest.approx(30 * 2.0**2 / (2 * 20.0**2), rel=1e-12)
    assert entry.mu == pytest.approx(math.sqrt(2 * 30 * 2.0**2 / (2 * 20.0**2)), rel=1e-12)
    assert entry.theorem == to_json(local())
    assert entry.event == to_json(local().event())
    assert {"text", "anchor"} == entry.assumptions[0].keys()
    assert entry.refusals == ("MeanOfNoisyStates: the server sees every message.",)
    assert entry.spread is None
    assert entry.sentence == promise("server", local()).sentence(DELTA)


def test_the_entry_of_unequal_parties_is_that_of_the_worst_and_says_how_they_differ(card: Card) -> None:
    entry = card.entries[0]
    low, middle, high = (best(local(std).event(), DELTA).epsilon for std in (40.0, 25.0, 20.0))
    assert entry.spread is not None
    # 5, 4 and 3 parties: the sixth of twelve is the lower median.
    assert (entry.spread.least, entry.spread.median, entry.spread.most) == (low, middle, high)
    assert entry.spread.worst == 0
    assert entry.epsilon == high
    assert entry.theorem == to_json(local(20.0))
    assert sum(kind.parties for kind in entry.spread.kinds) == 12


@given(sizes=st.lists(st.tuples(st.integers(1, 4), st.integers(20, 30)), min_size=2, max_size=6))
def test_the_spread_is_that_of_the_list_of_all_parties(sizes: list[tuple[int, int]]) -> None:
    promises = [promise("server", local(float(std)), party=party) for party, (_, std) in enumerate(sizes)]
    (entry,) = build(*promises, kinds={party: many for party, (many, _) in enumerate(sizes)}).entries
    every = np.sort(np.concatenate([[best(local(float(std)).event(), DELTA).epsilon] * many for many, std in sizes]))
    if entry.spread is None:
        assert len(set(every)) == 1
    else:
        median = every[(len(every) - 1) // 2]
        assert (entry.spread.least, entry.spread.median, entry.spread.most) == (every[0], median, every[-1])
    assert entry.epsilon == every[-1]


def test_no_rho_and_mu_where_there_is_none_and_excess_is_stated(card: Card) -> None:
    # A sampler that misses its law has a cost at a delta, and no rho or mu.
    assert (card.entries[2].rho, card.entries[2].mu, card.entries[2].excess) == (None, None, 1e-12)
    objective = PerturbedObjective(lipschitz=1.0, smoothness=0.25, strong_convexity=4.0, std=5.0)
    (entry,) = build(promise("public", objective)).entries
    assert entry.mu is None
    assert entry.excess == 0.0


def test_an_unprotected_observer_is_shown_as_such() -> None:
    nothing = Composition(released=Unbounded("exact values leave"), why="none", adjacency="replace-one", unit="record")
    card = build(promise("server", nothing))
    (entry,) = card.entries
    assert entry.epsilon == math.inf
    assert "a value leaves without a bound" in entry.sentence
    written = card.to_json()
    assert written["entries"][0]["epsilon"] == "inf"
    assert failure(json.loads(json.dumps(written))) is None
    assert Card.from_json(json.loads(json.dumps(written))) == card


def test_a_card_verifies_and_survives_the_round_trip(card: Card, stored: dict[str, Any], tmp_path: Path) -> None:
    checks = verify(stored)
    assert all(check.holds for check in checks)
    for field in ("entries[0].epsilon", "entries[0].spread.median", "entries[3].theorem.std", "simulation", "digest"):
        assert field in {check.field for check in checks}
    assert card.save(tmp_path) == tmp_path / "card.json"
    assert Card.load(tmp_path) == Card.load(tmp_path / "card.json") == card
    assert Card.from_json(stored) == card


def test_a_seeded_run_is_marked(tmp_path: Path) -> None:
    card = build(promise("public", local()), sampler=Seeded(3))
    assert card.simulation
    assert "SIMULATION, NOT PRIVATE" in card.text().splitlines()[1]
    assert "seed" in card.sampler
    assert "3" not in card.sampler.split("Threefry")[0]
    pretended = card.to_json()
    pretended["simulation"] = False
    pretended["digest"] = digest({name: value for name, value in pretended.items() if name != "digest"})
    assert failure(pretended) == "simulation"


def test_a_sampler_whose_name_hides_its_nature_is_refused() -> None:
    class Mislabelled:
        name = "the best noise"
        private = False

    with pytest.raises(PrivacyError, match="if and only if it is not private"):
        build(promise("public", local()), sampler=Mislabelled())


def test_a_guarantee_that_its_theorem_does_not_prove_is_refused() -> None:
    honest = promise("public", local())
    with pytest.raises(PrivacyError, match="is not what FixedSizeWithoutMemory proves"):
        build(replace(honest, proof=local(21.0)))


def test_public_facts_of_any_shape_are_kept(tmp_path: Path) -> None:
    facts = {
        "adjacency": "replace-one",
        "matrix": np.array([[0.5, 1.0]]),
        "sizes": np.array([3, 4]),
        "count": np.int64(7),
        "scale": np.float32(0.5),
    }
    card = Card.build(
        algorithm="a",
        parameters={},
        data=facts,
        trust="curator",
        sampler=Secret(),
        delta=DELTA,
        promises=[promise("public", local())],
    )
    plain = {"matrix": [[0.5, 1.0]], "sizes": [3, 4], "count": 7, "scale": 0.5}
    assert card.data == {"adjacency": "replace-one", **plain}
    assert Card.load(card.save(tmp_path)) == card


def test_bad_cards_are_refused() -> None:
    good: dict[str, Any] = {
        "algorithm": "a",
        "parameters": {},
        "data": {"adjacency": "replace-one"},
        "trust": "local",
        "sampler": Secret(),
        "delta": DELTA,
        "promises": [promise("public", local())],
    }
    for change, message in (
        ({"trust": "nobody"}, "trust is one of"),
        ({"delta": 1.0}, r"\[0, 1\)"),
        ({"promises": []}, "at least one guarantee"),
        ({"data": {"adjacency": "replace-one", "rows": object()}}, "data.rows"),
        ({"data": {"adjacency": "replace-one", "mean": math.nan}}, "data.mean"),
        ({"data": {}}, "adjacency"),
    ):
        with pytest.raises(InputError, match=message):
            Card.build(**{**good, **change})


def leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if isinstance(value, dict):
        for name, item in value.items():
            yield from leaves(item, (*path, name))
    elif isinstance(value, list) and value:
        for place, item in enumerate(value):
            yield from leaves(item, (*path, place))
    else:
        yield path


def edits(value: Any) -> list[Any]:
    """Other values for a leaf: slightly off, and of another kind."""
    if isinstance(value, bool):
        return [not value, int(value), None]
    if isinstance(value, int):
        return [value + 1, -value - 1, str(value), None]
    if isinstance(value, float):
        return [value * (1 + 1e-6) if value else 1e-6, value * 0.5 if value else 0.5, -value - 1.0, "inf", None]
    if isinstance(value, str):
        return [value + " ", "", 1.0, None]
    return [0.0, "text"]


def edited(stored: dict[str, Any], path: tuple[Any, ...], value: Any) -> dict[str, Any]:
    changed = copy.deepcopy(stored)
    inner: Any = changed
    for name in path[:-1]:
        inner = inner[name]
    inner[path[-1]] = value
    return changed


def resealed(card: dict[str, Any]) -> dict[str, Any]:
    return {**card, "digest": digest({name: value for name, value in card.items() if name != "digest"})}


def is_free(path: tuple[Any, ...]) -> bool:
    """Fields that nothing on the card determines."""
    names = [name for name in path if isinstance(name, str)]
    return any(name in FREE for name in names) or names in (
        ["digest"],
        ["trust"],
        ["sampler"],
        ["entries", "spread", "kinds", "party"],
        ["entries", "spread", "kinds", "parties"],
    )


def test_any_edited_field_fails(stored: dict[str, Any]) -> None:
    """The digest covers every field, whatever is written there; what is without it is for the next test."""
    count = 0
    for path in leaves(stored):
        original: Any = stored
        for name in path:
            original = original[name]
        assert failure(edited(stored, path, edits(original)[0])) is not None, path
        count += 1
    assert count > 100


def test_an_edited_number_fails_even_with_a_new_digest_and_is_named(stored: dict[str, Any]) -> None:
    named = 0
    for path in leaves(stored):
        if is_free(path):
            continue
        original: Any = stored
        for name in path:
            original = original[name]
        for value in edits(original):
            found = failure(resealed(edited(stored, path, value)))
            assert found is not None, (path, value)
            assert found != "digest", (path, value)
            if path[0] == "entries":
                named += found.startswith(f"entries[{path[1]}]")
    assert named > 150


@pytest.mark.parametrize(
    ("path", "value", "field"),
    [
        (("entries", 1, "epsilon"), 0.1, "entries[1].epsilon"),
        (("entries", 1, "rho"), 0.1, "entries[1].rho"),
        (("entries", 1, "mu"), None, "entries[1].mu"),
        (("entries", 1, "method"), "wishful", "entries[1].method"),
        (("entries", 1, "theorem", "std"), 40.0, "entries[1].event.event.std"),
        (("entries", 1, "theorem", "std"), -1.0, "entries[1].theorem"),
        (("entries", 1, "theorem", "kind"), "NoSuchTheorem", "entries[1].theorem"),
        (("entries", 1, "observer"), "public", "entries[1].sentence"),
        (("entries", 1, "observer"), "nobody", "entries[1]"),
        (("entries", 1, "unit"), "record", "entries[1].unit"),
        (("entries", 1, "assumptions"), [], "entries[1].assumptions"),
        (("entries", 0, "spread", "median"), 0.5, "entries[0].spread.median"),
        (("entries", 0, "spread", "worst"), 2, "entries[0].spread.worst"),
        (("entries", 0, "spread", "kinds", 1, "theorem", "std"), 80.0, "entries[0].theorem.std"),
        # Without its spread an entry still states the worst party's cost: less is said, nothing false.
        (("entries", 0, "spread"), None, None),
        (("entries",), [], "entries"),
        (("delta",), 1e-3, "entries[0].epsilon"),
        (("format",), 99, "format"),
        (("trust",), "blind", "trust"),
        (("simulation",), True, "simulation"),
        (("sampler",), "seeded (simulation, not private)", "simulation"),
        (("versions", "numpy"), "0.1", None),
    ],
)
def test_the_first_field_that_does_not_follow_is_named(
    stored: dict[str, Any], path: tuple[Any, ...], value: Any, field: str | None
) -> None:
    changed = edited(stored, path, value)
    assert failure(changed) == (field or "digest")
    assert failure(resealed(changed)) == field


def test_added_removed_and_repeated_parts_are_found(stored: dict[str, Any]) -> None:
    assert failure(resealed({**stored, "note": "all is well"})) == "note"
    for name in stored:
        assert failure({key: value for key, value in stored.items() if key != name}) == name
    twice = {**stored, "entries": [*stored["entries"], stored["entries"][0]]}
    assert failure(resealed(twice)) == "entries"
    assert failure(resealed({**stored, "entries": [{**stored["entries"][0], "note": "fine"}]})) == "entries[0].theorem"


@given(
    junk=st.recursive(
        st.none() | st.booleans() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
        max_leaves=5,
    ),
    data=st.data(),
)
def test_any_part_replaced_by_anything_is_found_and_nothing_else_is_raised(
    stored: dict[str, Any], junk: Any, data: st.DataObject
) -> None:
    leaf = data.draw(st.sampled_from(list(leaves(stored))))
    path = leaf[: data.draw(st.integers(1, len(leaf)))]
    original: Any = stored
    for name in path:
        original = original[name]
    if junk != original:
        assert failure(edited(stored, path, junk)) is not None


def test_a_card_whose_digest_does_not_fit_is_not_loaded(stored: dict[str, Any], tmp_path: Path) -> None:
    changed = edited(stored, ("data", "records"), 13)
    (tmp_path / "card.json").write_text(json.dumps(changed))
    with pytest.raises(TamperError, match="the digest is not that of the card"):
        Card.load(tmp_path)
    (tmp_path / "card.json").write_text(json.dumps(resealed({**stored, "entries": [{}]})))
    with pytest.raises(TamperError, match="not those of a card"):
        Card.load(tmp_path)


def test_files_that_are_no_cards_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no card\.json"):
        Card.load(tmp_path)
    for text in ("not json", "[]", '{"delta": 1, "delta": 2}', '{"delta": NaN}'):
        (tmp_path / "card.json").write_text(text)
        with pytest.raises(InputError, match="not"):
            Card.load(tmp_path)


@given(value=st.floats(1e-300, 1e300))
def test_shown_costs_are_never_below_the_true_ones(value: float) -> None:
    assert value <= float(round_up(value)) <= value * (1 + 1e-3)


def test_the_text_tells_everything(card: Card) -> None:
    text = " ".join(card.text().split())
    for entry in card.entries:
        assert entry.sentence in text
        assert entry.citation in text
        for assumption in entry.assumptions:
            assert assumption["text"] in text
        for refusal in entry.refusals:
            assert refusal in text
    assert "Huber(threshold=0.7)" in text
    assert "least" in text
    assert "SIMULATION" not in text
