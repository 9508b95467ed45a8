"""What a study says is what is planned: digests, parties, noise, automatic choices, records."""

from __future__ import annotations

import dataclasses
import math
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from consenso.engine.checkpoint import fingerprint
from consenso.engine.run import run
from consenso.errors import ConsensoError, InputError
from consenso.models import load_model
from consenso.privacy.noise import GaussianNoise, Geometric, LaplaceNoise, NoNoise
from consenso.privacy.observers import Eavesdropper, Public, Server
from consenso.privacy.samplers import Safe
from consenso.regularizers import NoPenalty, Unpenalized
from consenso.schedules import PoissonSubset, RandomWalk
from consenso.study import Study
from consenso.study.plan_summary import summarize_plan
from consenso.study.planning import observer_of
from consenso.study.training import train

TEXT = """
title = "a study"
[data]
table = "table.csv"
schema = "schema.toml"
rows = 30
[model]
loss = "logistic"
regularizer = {kind = "l2", strength = 0.5}
[privacy]
epsilon = 1.0
delta = 1e-5
seed = 4
[setting]
kind = "federated"
trust = "secure-sum"
[setting.split]
kind = "equal"
parties = 6
"""
DIGITS: dict[str, Any] = {
    "data": {"dataset": "digits", "rows": 400, "holdout": 300, "positive": ["0", "2", "4", "6", "8"]},
    "model": {"loss": "logistic", "regularizer": {"kind": "l2", "strength": 0.001}, "intercept": True},
    "privacy": {"epsilon": 2.0, "delta": 1e-5, "seed": 0},
    "setting": {"kind": "central"},
}


def digits(**changes: Any) -> Study:
    study = Study.from_tables(DIGITS, folder=Path())
    return study.change({key.replace("__", "."): value for key, value in changes.items()})


# --- digest ----------------------------------------------------------------------------------------------------------


def test_the_digest_does_not_depend_on_how_the_file_is_written(table: Path) -> None:
    study = Study.parse(TEXT, folder=table)
    other = """
# The same, otherwise.
setting = {split = {parties = 6, kind = "equal"}, trust = "secure-sum", kind = "federated", rounds = "auto"}
[privacy]
seed = 4
unit = "record"
delta = 0.00001
epsilon = 1
[model]
loss = {kind = "Logistic"}
regularizer = {strength = 5e-1, kind = "L2"}
[data]
rows = 30
schema = "schema.toml"
table = "elsewhere.csv"
[output]
folder = "x"
"""
    assert Study.parse(other, folder=table).digest == study.digest
    assert Study.parse(study.to_toml(), folder=table) == study
    for change in (
        {"privacy.epsilon": 1.1},
        {"privacy.seed": 5},
        {"data.rows": 36},
        {"setting.trust": "curator"},
        {"setting.split.parties": 5},
        {"model.regularizer": "none"},
    ):
        assert study.change(change).digest != study.digest
    (table / "schema.toml").write_text((table / "schema.toml").read_text().replace("high = 100", "high = 90"))
    assert Study.parse(TEXT, folder=table).digest != study.digest


def test_a_penalty_that_is_not_stated_is_in_the_units_of_the_rows() -> None:
    left_out = digits(model__regularizer=None)
    assert left_out.digest == digits(model__regularizer="auto").digest != digits(model__regularizer="none").digest
    bound, features = left_out.data.bound, left_out.data.features
    strengths = {}
    for scale in (1.0, 1000.0):
        problem = digits(model__regularizer="auto", data__row_bound=scale * bound).problem()
        assert isinstance(problem.regularizer, Unpenalized)
        strengths[scale] = problem.regularizer.inner.strength
    assert strengths[1.0] == pytest.approx(bound**2 / (features * 400))
    assert strengths[1000.0] == pytest.approx(1e6 * strengths[1.0])
    # Rules then take less where the rows that were released are shorter than their bound.
    algorithm, stated = left_out.plan().algorithm, digits().plan().algorithm
    assert (algorithm.follows, stated.follows) == (True, False)


def test_an_algorithm_that_is_named_has_the_penalty_that_is_stated_and_else_none() -> None:
    named = digits(model__regularizer=None, setting__algorithm="dp-sgd")
    assert named.digest == digits(model__regularizer="none", setting__algorithm="dp-sgd").digest
    assert named.problem().regularizer.inner == NoPenalty()
    asked = digits(model__regularizer="auto", setting__algorithm="dp-sgd")
    assert asked.problem().regularizer.inner.strength > 0


def test_a_study_that_was_moved_says_the_same_and_finds_its_files(table: Path) -> None:
    study = Study.parse(TEXT.replace('table = "table.csv"', 'table = "table.csv"\ntest = "test.csv"'), folder=table)
    away = table / "runs" / "one"
    away.mkdir(parents=True)
    assert study.data.schema is not None
    (away / "schema.toml").write_text(study.data.schema.to_toml())
    (away / "study.toml").write_text(study.move(away).to_toml())
    moved = Study.load(away / "study.toml")
    assert moved.digest == study.digest
    records = moved.evaluation_records()
    assert records is not None
    assert len(records.y) == 12
    np.testing.assert_array_equal(moved.shards().offsets, study.shards().offsets)


# --- planning --------------------------------------------------------------------------------------------------------


def test_planning_reads_no_data(table: Path) -> None:
    before = fingerprint(Study.parse(TEXT, folder=table).plan())
    (table / "table.csv").unlink()
    study = Study.parse(TEXT, folder=table)
    assert fingerprint(study.plan()) == before
    assert summarize_plan(study).epsilon == pytest.approx(1.0, rel=1e-4)
    with pytest.raises(InputError, match="no such file"):
        study.shards()


def test_the_target_is_for_whoever_is_not_trusted() -> None:
    cases: list[tuple[dict[str, Any], Any]] = [
        ({"kind": "central"}, Public()),
        ({"kind": "federated", "trust": "curator", "split": {"parties": 4}}, Public()),
        ({"kind": "federated", "trust": "secure-sum", "split": {"parties": 4}}, Server()),
        ({"kind": "federated", "split": {"parties": 4}}, Eavesdropper()),
        ({"kind": "decentralized", "topology": "ring", "split": {"parties": 4}}, Eavesdropper()),
    ]
    for setting, expected in cases:
        study = digits(setting=setting)
        assert observer_of(study.privacy, study.setting, study.parties) == expected
        delta = study.privacy.delta
        assert study.plan().guarantee(expected, delta).epsilon(delta) == pytest.approx(2.0, rel=1e-4)


def test_without_a_seed_the_noise_is_safe() -> None:
    assert isinstance(digits(privacy__seed=None).plan().sampler, Safe)
    assert not digits(privacy__seed=None).simulation


@pytest.mark.parametrize(
    ("privacy", "noise"),
    [
        ({"multiplier": 2.5}, GaussianNoise(multiplier=2.5)),
        ({"multiplier": 2, "kind": "laplace"}, LaplaceNoise(multiplier=2)),
        ({"noise": "none"}, NoNoise()),
        ({"epsilon": math.inf}, NoNoise()),
        (
            {
                "noise": {
                    "gradient": {"kind": "gaussian", "multiplier": {"kind": "geometric", "first": 2, "ratio": 0.9}}
                }
            },
            GaussianNoise(multiplier=Geometric(first=2, ratio=0.9)),
        ),
    ],
)
def test_noise_may_be_stated(privacy: dict[str, Any], noise: Any) -> None:
    made = digits(
        privacy={"seed": 0, **privacy}, setting={"kind": "central", "algorithm": "dp_sgd", "rounds": 5}
    ).plan()
    assert dict(made.noise) == {"gradient": noise}


@pytest.mark.parametrize(
    ("privacy", "cost"),
    [
        ({"rho": 0.2}, lambda g: g.zcdp()),
        ({"mu": 0.5}, lambda g: g.gdp()),
        ({"epsilon": 0.9, "kind": "laplace"}, lambda g: g.epsilon(0.0)),
    ],
)
def test_other_targets_are_met(privacy: dict[str, Any], cost: Any) -> None:
    setting = {"kind": "central", "algorithm": "DP-SGD", "rounds": 5, "parameters": {"clip": 0.5}}
    if "kind" in privacy:
        setting = {"kind": "federated", "algorithm": "ObjP", "rounds": 5, "split": {"parties": 4}}
        setting["parameters"] = {"row_bound_1": 8.0}
    made = digits(privacy={"seed": 0, **privacy}, setting=setting).plan()
    limit = next(iter(value for value in privacy.values() if isinstance(value, float)))
    stated = made.guarantee(Public() if setting["kind"] == "central" else Eavesdropper(), 1e-6)
    assert limit * 0.999 < cost(stated) <= limit


def test_graphs_and_schedules() -> None:
    for topology, edges in (
        ("ring", 6),
        ({"kind": "grid", "rows": 2, "columns": 3}, 7),
        ({"kind": "erdos-renyi", "mean_degree": 3.0}, 9),
        ({"edges": [[0, 1], [1, 2], [2, 3], [3, 4], ["party-4", "party-5"]]}, 5),
    ):
        study = digits(setting={"kind": "decentralized", "topology": topology, "split": {"parties": 6}})
        found = study.plan().topology
        assert found is not None
        assert len(found.edges) == edges
    walk = digits(
        setting={
            "kind": "decentralized",
            "algorithm": "stateless walk",
            "rounds": 4,
            "schedule": "random-walk",
            "topology": "ring",
            "split": {"parties": 4},
        },
        privacy={"multiplier": 3.0, "seed": 0},
        model__regularizer={"kind": "l2", "strength": 0.5},
        model__intercept=False,
    ).plan()
    assert isinstance(walk.schedule, RandomWalk)
    assert walk.schedule.topology is not None
    sampled = digits(
        setting={
            "kind": "federated",
            "trust": "secure-sum",
            "schedule": {"kind": "poisson", "rate": 0.5},
            "split": {"parties": 20},
        }
    ).plan()
    assert sampled.schedule == PoissonSubset(0.5)


# --- what "auto" chooses ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("setting", "name"),
    [
        ({"kind": "central"}, "PreconditionedFixedPoint"),
        ({"kind": "federated", "trust": "secure-sum", "split": {"parties": 8}}, "PreconditionedFixedPoint"),
        ({"kind": "federated", "trust": "local", "split": {"parties": 40}}, "PreconditionedFixedPoint"),
        ({"kind": "decentralized", "topology": "ring", "split": {"parties": 8}}, "PreconditionedFixedPoint"),
        ({"kind": "decentralized", "trust": "local", "topology": "ring", "split": {"parties": 8}}, "IPADMM"),
        (
            {"kind": "decentralized", "trust": "local", "topology": "complete", "split": {"parties": 4}},
            "PreconditionedGossip",
        ),
        (
            {"kind": "decentralized", "trust": "tree", "topology": "ring", "split": {"parties": 40}},
            "PreconditionedFixedPoint",
        ),
    ],
)
def test_auto_chooses_by_public_facts_and_learns(setting: dict[str, Any], name: str, tmp_path: Path) -> None:
    study = digits(setting=setting, privacy__epsilon=8.0)
    assert type(study.plan().algorithm).__name__ == name
    assert study.planned.reason.endswith(".")
    found = train(study, tmp_path / "run").metrics
    assert found is not None
    assert found["accuracy"] > found["majority"] + 0.08


def test_peers_sum_under_masks_unless_they_are_told_otherwise() -> None:
    graph = {"kind": "decentralized", "topology": "ring"}
    summed = digits(setting={**graph, "split": {"parties": 8}})
    assert (summed.setting.trust, summed.setting.colluders) == ("masked-sum", 1)
    assert "the noise of one curator, and gossip would add 2.83 times as much" in summed.planned.reason
    assert digits(setting={**graph, "split": {"parties": 2}}).setting.trust == "local"
    assert digits(setting={**graph, "algorithm": "IPADMM", "split": {"parties": 8}}).setting.trust == "local"
    same = digits(setting={**graph, "masks": "graph", "split": {"parties": 8}})
    assert same.plan().mask_graph == same.plan().topology


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ({"masks": "graph", "topology": "path"}, "node connectivity must be larger"),
        ({"colluders": 7}, "between 0 and 6"),
        ({"colluders": 0}, "how many parties may collude"),
        ({"trust": "secure-sum"}, "peers have no server"),
        ({"trust": "tree", "masks": "graph"}, "it is for sums along a graph"),
        ({"trust": "tree", "algorithm": "IPADMM"}, "single values, not sums"),
        ({"kind": "federated", "topology": None, "trust": "tree"}, "go along a graph of peers"),
    ],
)
def test_sums_on_a_graph_that_cannot_be_are_refused(setting: dict[str, Any], said: str) -> None:
    told = {"kind": "decentralized", "topology": "ring", "split": {"parties": 8}} | setting
    with pytest.raises(ConsensoError, match=said):
        digits(setting={name: value for name, value in told.items() if value is not None}).plan()


def test_metrics_are_those_of_scikit_learn() -> None:
    from sklearn import metrics

    from consenso.losses import Logistic
    from consenso.models import Model
    from consenso.study.metrics import compute_metrics
    from consenso.study.sources import Records

    rng = np.random.default_rng(0)
    rows = np.round(rng.normal(size=(400, 1)), 1)  # with ties
    y = np.where(rng.random(400) < 1 / (1 + np.exp(-2 * rows[:, 0])), 1, -1)
    model = Model(
        loss=Logistic(),
        coefficients=np.array([[2.0]]),
        intercept=np.array([0.0]),
        features=("a",),
        classes=("no", "yes"),
        row_bound=9.0,
    )
    found = compute_metrics(model, Records(rows, y, None))
    scores = model.scores(rows)[:, 0]
    chosen = np.where(scores > 0, 1, -1)
    assert found["auc"] == pytest.approx(metrics.roc_auc_score(y, scores))
    assert found["confusion"] == metrics.confusion_matrix(y, chosen).tolist()
    assert found["precision"]["yes"] == pytest.approx(metrics.precision_score(y, chosen))
    assert found["recall"]["yes"] == pytest.approx(metrics.recall_score(y, chosen))
    # Labels were drawn with the probabilities that the model states: about 0.03 is left by chance.
    assert found["calibration error"] < 0.1


def test_without_privacy_auto_reaches_the_exact_model(tmp_path: Path) -> None:
    from sklearn.linear_model import LogisticRegression

    study = digits(privacy__epsilon=math.inf, model__regularizer={"kind": "l2", "strength": 0.01}, data__row_bound=8.0)
    found = train(study, tmp_path / "run")
    model, records = found.model, study._records()
    exact = LogisticRegression(C=1 / (0.01 * 400), tol=1e-10, max_iter=10_000).fit(records.X, records.y)
    np.testing.assert_allclose(model.coefficients[:, 0], exact.coef_[0], atol=2e-3)
    assert math.isinf(found.card.entries[0].epsilon)
    peers = digits(
        privacy__epsilon=math.inf,
        setting={"kind": "decentralized", "trust": "local", "topology": "complete", "split": {"parties": 3}},
        model__intercept=False,
    )
    assert type(peers.plan().algorithm).__name__ == "DistributedADMM"


def test_a_central_study_is_the_fit_of_the_estimator(tmp_path: Path) -> None:
    from consenso.estimators import PrivateLogisticRegression

    study = digits()
    model = train(study, tmp_path / "run").model
    records = study._records()
    same = PrivateLogisticRegression(
        epsilon=2.0, delta=1e-5, row_bound=1.0, bounds="public", alpha=0.001, classes=[-1, 1], random_state=0
    ).fit(records.X, records.y)
    np.testing.assert_allclose(model.coefficients.T, same.coef_, rtol=1e-6)
    np.testing.assert_allclose(model.intercept, same.intercept_, rtol=1e-6)
    again = model.estimator()
    assert again.guarantee_.epsilon(1e-5) == pytest.approx(same.guarantee_.epsilon(1e-5), rel=1e-6)
    assert again.card_ == model.card

    names = np.where(records.y > 0, *reversed(model.classes))
    assert model.classes != tuple(sorted(model.classes)), "the order of a fit is another one"
    before = again.score(records.X, names)
    np.testing.assert_array_equal(again.predict(records.X), model.predict(records.X))
    once, both = (same.guarantee_.compose(*others).epsilon(1e-5) for others in ((), (same.guarantee_,)))
    assert again.guarantee_.epsilon(1e-5) == pytest.approx(once)
    assert again.partial_fit(records.X, names).guarantee_.epsilon(1e-5) == pytest.approx(both)
    # The mean of a model and one with another order of classes would be right for half of the records.
    clear = model.estimator().set_params(epsilon=500.0).partial_fit(records.X, names)
    assert clear.score(records.X, names) > before - 0.1
    later = PrivateLogisticRegression(epsilon=1.0, delta=1e-5, random_state=2)
    later.fit(records.X, names, start=load_model(model.save(tmp_path / "model.json")).estimator())
    assert later.row_bound_ == model.row_bound
    bare = dataclasses.replace(model, card=None).estimator()
    for go_on in (bare.partial_fit, partial(later.fit, start=bare)):
        with pytest.raises(InputError, match="the model has no card"):
            go_on(records.X, names)


# --- parties and records ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("split", "sizes"),
    [
        ({"kind": "equal", "parties": 7}, None),
        ({"kind": "equal", "parties": 7, "seed": 3}, None),
        ({"kind": "one-per-record"}, [1] * 400),
        ({"kind": "sizes", "sizes": [100, 250, 50]}, [100, 250, 50]),
        ({"kind": "dirichlet", "parties": 5, "concentration": 0.5, "seed": 1}, None),
    ],
)
def test_a_party_holds_its_part_of_the_table(split: dict[str, Any], sizes: list[int] | None) -> None:
    study = digits(setting={"kind": "federated", "split": split})
    assert int(study.sizes.sum()) == 400
    assert sizes is None or study.sizes.tolist() == sizes
    whole = study.shards()
    for place in (0, len(study.parties) - 1):
        alone = study.party_shards(study.parties[place])
        x = np.random.default_rng(0).normal(size=study.problem().dim)
        np.testing.assert_array_equal(alone.cohort(place).linear_predictor(x), whole.cohort(place).linear_predictor(x))


def test_named_parties_bring_their_own_files(table: Path) -> None:
    lines = (table / "table.csv").read_text().splitlines()
    (table / "north.csv").write_text("\n".join([lines[0], *lines[1:13]]) + "\n")
    (table / "south.csv").write_text("\n".join([lines[0], *lines[13:]]) + "\n")
    text = TEXT.replace('table = "table.csv"\n', "").replace("rows = 30\n", "")
    text = text[: text.index("[setting.split]")] + "[setting.parties]\nnorth = 12\nsouth = 18\n"
    study = Study.parse(text, folder=table)
    assert study.parties == ("north", "south")
    assert study.sizes.tolist() == [12, 18]
    alone = study.party_shards("south", table / "south.csv")
    assert alone.parties.tolist() == [1]
    with pytest.raises(InputError, match=r"data\.tables"):
        study.shards()
    with pytest.raises(InputError, match="the study knows north, south"):
        study.party_shards("west", table / "south.csv")
    with pytest.raises(InputError, match="declared with 12 rows and has 18"):
        study.party_shards("north", table / "south.csv")
    files = study.change({"data.tables": {"north": "north.csv", "south": "south.csv"}})
    assert files.digest == study.digest
    same = Study.parse(TEXT.replace('kind = "equal"\nparties = 6', 'kind = "sizes"\nsizes = [12, 18]'), folder=table)
    np.testing.assert_array_equal(run(files.plan(), files.shards()).model, run(same.plan(), same.shards()).model)


def test_users_of_a_table_are_parties_within_public_bounds(table: Path) -> None:
    schema = (table / "schema.toml").read_text() + '[columns.who]\nkind = "user"\n'
    (table / "schema.toml").write_text(schema)
    lines = (table / "table.csv").read_text().splitlines()
    rows = [f"{line},{'who' if place == 0 else f'u{place % 5}'}" for place, line in enumerate(lines)]
    (table / "table.csv").write_text("\n".join(rows) + "\n")
    start = TEXT[: TEXT.index("[setting.split]")].replace("rows = 30\n", "")
    text = start + '[setting.split]\nkind = "column"\nparties = 5\nsize = 9\n'
    with pytest.raises(InputError, match="add-remove"):
        Study.parse(text, folder=table)
    study = Study.parse(text.replace("seed = 4", 'seed = 4\nadjacency = "add-remove"\nunit = "party"'), folder=table)
    assert study.sizes.tolist() == [9] * 5
    assert np.diff(study.shards().offsets).tolist() == [6] * 5
    with pytest.raises(InputError, match="another number of users"):
        study.change({"setting.split.parties": 4}).shards()


def test_what_would_make_sizes_private_is_refused(table: Path) -> None:
    study = Study.parse(TEXT, folder=table)
    with pytest.raises(InputError, match="private labels"):
        study.change({"setting.split": {"kind": "dirichlet", "parties": 3, "concentration": 1.0}})
    with pytest.raises(InputError, match="moves the others when one is removed"):
        study.change({"privacy.adjacency": "add-remove", "privacy.seed": None})
    (table / "schema.toml").write_text(
        (table / "schema.toml").read_text().replace("high = 100", 'high = 100\nmissing = "drop-row"')
    )
    with pytest.raises(InputError, match="drops records with missing values"):
        Study.parse(TEXT, folder=table)


def test_the_classes_of_catalogued_sets_are_those_of_their_data(data_dir: Path) -> None:
    from consenso.study.data import CLASSES
    from consenso.study.sources import _load

    for name, classes in CLASSES.items():
        targets = _load(name, 0).y
        assert (targets.min(), targets.max()) == (0, classes - 1)


# --- robustness ------------------------------------------------------------------------------------------------------

STRANGE: tuple[Any, ...] = (
    None, True, -1, 0, 3, 10**30, 1e308, math.inf, -math.inf, math.nan, "", "auto", "none", "x" * 300, [], [1, "a"], {},
    {"kind": "l2"}, {"kind": 3}, {"kind": "Polynomial", "first": "a"}, [[0, 1]],
)  # fmt: skip


@pytest.mark.parametrize("base", ["table", "digits", "peers"])
def test_strange_values_are_refused_or_planned_and_never_crash(base: str, table: Path) -> None:
    tables: Any = {
        "table": Study.parse(TEXT, folder=table).tables,
        "digits": DIGITS,
        "peers": {
            **DIGITS,
            "setting": {
                "kind": "decentralized",
                "algorithm": "IPADMM",
                "rounds": 3,
                "parameters": {"penalty": 1.0},
                "topology": {"kind": "random-regular", "degree": 2, "seed": 0},
                "split": {"kind": "equal", "parties": 4, "seed": 0},
            },
        },
    }[base]
    study = Study.from_tables(tables, folder=table)
    keys = [
        *(f"{section}.{key}" for section, values in tables.items() if isinstance(values, dict) for key in values),
        *("data.test", "data.tables", "data.row_bound", "data.target_bound", "privacy.observer", "privacy.noise"),
        *("privacy.multiplier", "privacy.rho", "setting.schedule", "setting.parameters", "setting.colluders"),
        *("setting.rounds", "setting.parties", "setting.split.kind", "setting.split.sizes", "setting.topology.kind"),
        *("model.loss.kind", "output.folder", "output.checkpoint", "title", "strange.key", "setting.weighting"),
    ]
    planned = refused = 0
    for key in dict.fromkeys(keys):
        for value in STRANGE:
            try:
                study.change({key: value}).plan()
                planned += 1
            except ConsensoError:
                refused += 1
            except Exception as error:
                raise AssertionError(f"{key} = {value!r}") from error
    assert refused > 200
    assert planned > 20
