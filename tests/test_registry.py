"""One registry of kinds: a kind is one file, here or in another distribution, and its name means one thing."""

from __future__ import annotations

import importlib.metadata
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from consenso import registry
from consenso.algorithms.dp_sgd import DPSGD
from consenso.errors import InputError
from consenso.losses import Logistic
from consenso.privacy.events import Gaussian, TokenWalk
from consenso.privacy.noise import NoNoise, PerRound
from consenso.privacy.theorems.theorem_f import MeanOfNoisyStates
from consenso.regularizers import NoPenalty

# --- names ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("family", registry.FAMILIES)
def test_every_kind_is_found_by_its_qualified_name(family: str) -> None:
    found = registry.kinds(family)
    assert found
    for name, kind in found.items():
        assert registry.find(f"{family}.{name}", [family]) is kind
        if isinstance(kind, type):
            assert registry.name_of(kind) == f"{family}.{name}"


def test_names_of_version_0_1_0_are_found() -> None:
    assert registry.find("Logistic", registry.PLANNED) is Logistic
    assert registry.find("Table", registry.PLANNED) is PerRound
    assert registry.find("Gaussian", registry.PROVED) is Gaussian
    assert registry.find("TheoremF", registry.PROVED) is MeanOfNoisyStates
    assert registry.find("Walk", registry.PROVED) is TokenWalk
    assert registry.rename("units", "user") == "party"


@pytest.mark.parametrize(
    ("written", "kind"),
    [("logistic", Logistic), ("Logistic", Logistic), ("losses.Logistic", Logistic), ("losses.logistic", Logistic)],
)
def test_a_study_writes_names_as_people_do(written: str, kind: type) -> None:
    assert registry.spell(written, ["losses"]) is kind


def test_a_name_that_is_not_known_or_means_two_kinds_is_refused() -> None:
    with pytest.raises(InputError, match="did you mean 'logistic'"):
        registry.spell("logistik", ["losses"])
    with pytest.raises(InputError, match="not known"):
        registry.find("os.system", registry.FAMILIES)
    with pytest.raises(InputError, match=r"regularizers\.NoPenalty or noises\.NoNoise|noises\.NoNoise or regul"):
        registry.spell("none", ["regularizers", "noises"])
    assert registry.spell("regularizers.none", ["regularizers"]) is NoPenalty
    assert registry.spell("noises.NoNoise", ["regularizers", "noises"]) is NoNoise
    with pytest.raises(InputError, match=r"events\.ObjectivePerturbation or algorithms"):
        registry.find("ObjectivePerturbation", ["events", "algorithms"])


def test_a_clash_is_an_error_and_other_families_do_not_clash() -> None:
    impostor = dataclass(frozen=True)(type("Logistic", (), {"__module__": "elsewhere"}))
    with pytest.raises(InputError, match=r"losses\.Logistic: the name belongs to consenso\.losses\.logistic"):
        registry.register("losses", impostor)
    assert registry.kinds("losses")["Logistic"] is Logistic
    assert registry.name_of(impostor) == "elsewhere.Logistic"
    registry.register("losses", Logistic)
    with pytest.raises(InputError, match="frozen"):
        registry.register("losses", type("Loose", (), {}))


def test_a_class_that_is_not_registered_has_a_name_that_nothing_finds() -> None:
    @dataclass(frozen=True, kw_only=True)
    class Mine(DPSGD):
        pass

    with pytest.raises(InputError, match="not known"):
        registry.find(registry.name_of(Mine), registry.PLANNED)


def test_a_broken_entry_point_says_which_distribution_to_repair() -> None:
    def entry(value: str) -> importlib.metadata.EntryPoint:
        return importlib.metadata.EntryPoint(name="mine", value=value, group="consenso.losses")

    with pytest.raises(InputError, match=r"mine = no_such_module_at_all of consenso\.losses"):
        registry.load_entry(entry("no_such_module_at_all"))
    empty = entry("consenso.version")
    with pytest.raises(InputError, match=r"mine = consenso\.version of consenso\.losses: no kind is there"):
        registry._register_all("losses", empty, registry.load_entry(empty))


# --- one file each, in a distribution of somebody else --------------------------------------------------------------

FILES = {
    "loss.py": '''
from dataclasses import dataclass
from typing import ClassVar
import numpy as np
from consenso.losses.checks import prox_arguments
from consenso.losses.loss import Kind, ScalarLoss

@dataclass(frozen=True, kw_only=True)
class Pinball(ScalarLoss):
    """max(q r, (q - 1) r) of a residual r = target - score."""

    quantile: float = 0.5
    name: ClassVar[str] = "pinball"
    targets: ClassVar[Kind] = "real"

    @property
    def slope_bound(self):
        return max(self.quantile, 1 - self.quantile)

    @property
    def curvature_bound(self):
        return np.inf

    def value(self, scores, targets):
        rest = targets - scores
        return np.maximum(self.quantile * rest, (self.quantile - 1) * rest)

    def slope(self, scores, targets):
        return np.where(scores > targets, 1 - self.quantile, np.where(scores < targets, -self.quantile, 0.0))

    def curvature(self, scores, targets):
        return np.zeros(np.shape(scores))

    def prox_slope(self, points, steps, targets):
        points, steps = prox_arguments(repr(self), self.outputs, points, steps, targets)
        steps = np.maximum(steps, 1e-300)
        return np.clip((points - targets) / steps, -self.quantile, 1 - self.quantile)
''',
    "regularizer.py": '''
from dataclasses import dataclass
import numpy as np
from consenso.regularizers import Regularizer

@dataclass(frozen=True, kw_only=True)
class Pull(Regularizer):
    """strength / 2 |x - towards|^2."""

    strength: float
    towards: float = 0.1

    @property
    def strong_convexity(self):
        return self.strength

    @property
    def is_constraint(self):
        return False

    def value(self, x):
        return 0.5 * self.strength * np.sum(np.square(x - self.towards), axis=-1)

    def prox(self, v, step):
        return (v + step * self.strength * self.towards) / (1 + step * self.strength)

    def subgradient(self, x):
        return self.strength * (x - self.towards)
''',
    "schedule.py": '''
from dataclasses import dataclass
import numpy as np
from consenso.schedules import Certain

@dataclass(frozen=True)
class EveryOther:
    """Even parties in even rounds, odd parties in odd ones."""

    def active(self, round_, previous, parties, coins):
        return np.arange(round_ % 2, parties, 2)

    def participation(self, party, rounds, parties):
        return Certain(range(party % 2, rounds, 2))

    def length(self, rounds, coins):
        return rounds
''',
    "algorithm.py": '''
from dataclasses import dataclass, replace
from consenso.algorithms.dp_sgd import DPSGD
from consenso.algorithms.shape import Source

@dataclass(frozen=True, kw_only=True)
class HalfSteps(DPSGD):
    """DP-SGD with half of the step."""

    sources = (Source(paper="ours", algorithm="1", names=("half-way",)),)

    def combine(self, facts, hub, total):
        return DPSGD(**{**vars(self), "step": self.step / 2}).combine(facts, hub, total)
''',
    "noise.py": '''
"""Logistic noise: |d/dx log density| <= 1/scale, so a shift of 1-norm s costs at most s/scale, as a pure epsilon."""
from dataclasses import dataclass, replace
import numpy as np
from consenso.errors import PreconditionError
from consenso.privacy.accountants.costs import finite, ratio, simplify
from consenso.privacy.events import Event, Pure
from consenso.privacy.noise.law import ScaledNoise, trivial_event
from consenso.privacy.samplers.contract import check_draw

@dataclass(frozen=True)
class LogisticShift(Event):
    """Independent logistic noise on a value whose 1-norm moves by at most `sensitivity`."""

    scale: float
    sensitivity: float

    def magnify(self, factor):
        return replace(self, sensitivity=self.sensitivity * factor)

@simplify.register
def _(event: LogisticShift) -> Event:
    epsilon = ratio(event, "sensitivity", "scale")
    return finite(Pure(epsilon), epsilon)

@dataclass(frozen=True, kw_only=True)
class LogisticNoise(ScaledNoise):
    """Logistic noise in every coordinate, scale = multiplier * sensitivity in the 2-norm."""

    alias = "logistic"
    is_pure = True

    def sample(self, values, sensitivity, round, key, sampler):
        if sampler.private:
            raise PreconditionError("LogisticNoise: no exact discrete sampler is known; it is for simulation only.")
        values, scales = check_draw(values, self.scale(sensitivity, round), key, "scale")
        chance = sampler.uniform(key, values.shape[1])
        return values + scales[:, None] * (np.log(chance) - np.log1p(-chance))

    def event(self, noise_sensitivity, seen_sensitivity, round, sampler, dim):
        scale = float(self.scale(noise_sensitivity, round))
        return trivial_event(seen_sensitivity, scale) or LogisticShift(scale, float(seen_sensitivity * np.sqrt(dim)))

    def tail(self, dim):
        return 60.0

    def log_density(self, gap, scale):
        part = -np.abs(gap) / scale[:, None]
        return (part - 2 * np.log1p(np.exp(part))).sum(axis=1) - gap.shape[1] * np.log(scale)

    def variance(self, dim):
        return np.pi**2 / 3

    def simulate(self, shape, rng):
        return rng.logistic(size=shape)

    def event_of_gap(self, gap):
        return LogisticShift(1.0, float(np.abs(gap).sum()))
''',
    "trust.py": """
from dataclasses import dataclass
from consenso.trust import TrustMode

@dataclass(frozen=True)
class Enclave(TrustMode):
    alias = "enclave"
    noise_by = "hub"
    settings = ("federated",)
    model_name = "Federated"
    clause = "attested hardware adds up the parties' values and adds the noise"
    sentence = "Hardware that the parties attest adds up their values and adds the noise."
""",
    "observer.py": '''
from dataclasses import dataclass
from consenso.privacy.observers import Eavesdropper, Observer, Server

@dataclass(frozen=True, kw_only=True)
class Dashboard(Observer):
    """Every sum that the hub opens, and no message."""

    key = "dashboard"
    name = "who watches the dashboard"
    sentence = "whoever watches the dashboard, which shows the sum of every round"

    @classmethod
    def on_card(cls, run):
        return (cls(),) if run.parties > 1 and run.shape == "hub" else ()

    def is_covered_by(self, other):
        return isinstance(other, Eavesdropper | Server)
''',
    "theorem.py": '''
"""A bound, and the algorithm whose plans state it."""
from dataclasses import dataclass
from typing import ClassVar
from consenso.algorithms.dp_sgd import DPSGD
from consenso.conventions import Unit
from consenso.privacy.events import Adjacency, Event, Gaussian
from consenso.privacy.theorems.preconditions import require
from consenso.privacy.theorems.theorem import GAUSSIAN_RUN

@dataclass(frozen=True, kw_only=True)
class OnlyOnce:
    """One release of a run of one round."""

    citation: ClassVar[str] = "ours"
    section: ClassVar[str] = "conventions"
    rounds: int
    multiplier: float
    adjacency: Adjacency
    unit: Unit

    def __post_init__(self):
        require(self.rounds == 1, "OnlyOnce: a run of one round.")

    def event(self) -> Event:
        return Gaussian(self.multiplier, 0.9)

    def assumptions(self):
        return GAUSSIAN_RUN

@dataclass(frozen=True, kw_only=True)
class OneStep(DPSGD):
    """DP-SGD, for which somebody proved more."""

    sources = ()

    def theorems(self, spec, query):
        noise = spec.noise_for("gradient").multiplier
        yield lambda: OnlyOnce(rounds=spec.rounds, multiplier=noise, adjacency=query.adjacency, unit=query.unit)
''',
    "engine.py": '''
"""Files in a shared folder: the hub writes questions, parties write answers."""
from pathlib import Path
from consenso.deployment.engines import RemoteEngine, server_parts
from consenso.federation.disk import Disk
from consenso.federation.hub import HubRun
from consenso.federation.party import Party
from consenso.study import Study

ENGINE = RemoteEngine("`consenso courier`", server_parts)

class Folder:
    """One process stands in for the machines of the parties."""

    def __init__(self, place, parties):
        self.place, self.parties = place, parties

    def ask(self, questions, check, *, partial):
        answers = {}
        for party, asked in questions.items():
            (self.place / f"question-{party}").write_bytes(asked.body)
            body = (self.place / f"question-{party}").read_bytes()
            told = {"round_": asked.round, "stage": asked.stage, "body": body, "counted": asked.counted}
            (self.place / f"answer-{party}").write_bytes(self.parties[party].answer(**told))
            answers[party] = (self.place / f"answer-{party}").read_bytes()
            check(party, answers[party])
        return answers

def carry(study, place):
    made = Study.load(study).plan()

    def disk(owner):
        return Disk(place / owner, owner=owner, run="ab" * 32, fingerprint="f")

    shares = [Study.load(study).party_shards(name) for name in Study.load(study).parties]
    parties = {index: Party(made, share, index, disk(f"p{index}")) for index, share in enumerate(shares)}
    hub = HubRun(made, disk("hub"))
    for _ in hub.rounds(Folder(place, parties)):
        pass
    return hub.model()

def register(app):
    @app.command()
    def courier(study: str, place: str):
        """Run a study through a shared folder."""
        print(carry(study, Path(place)).tolist())
''',
    "format.py": """
from consenso.tables import Table

def read_pairs(path):
    lines = [line.split(";") for line in path.read_text().splitlines()]
    return Table.from_arrays({head: [float(cell) for cell in cells] for head, *cells in lines}, source=str(path))

READERS = {".turned": read_pairs}
""",
    "solver.py": """
from thirdparty.algorithm import HalfSteps

NAME = "half-steps"
PLACE = 5

def refusal(request):
    return None

def excess(request):
    return 1e9

def recipe(request):
    return HalfSteps(clip=1.0), 3
""",
}
GROUPS = {
    "losses": "pinball = thirdparty.loss",
    "regularizers": "pull = thirdparty.regularizer:Pull",
    "schedules": "every-other = thirdparty.schedule",
    "algorithms": "half-steps = thirdparty.algorithm\none-step = thirdparty.theorem:OneStep",
    "solvers": "half-steps = thirdparty.solver",
    "noises": "logistic = thirdparty.noise",
    "events": "logistic = thirdparty.noise",
    "trusts": "enclave = thirdparty.trust",
    "formats": "turned = thirdparty.format",
    "engines": "courier = thirdparty.engine",
    "observers": "dashboard = thirdparty.observer",
    "theorems": "only-once = thirdparty.theorem",
}
STUDY = """
[data]
dataset = "diabetes"
rows = 300
holdout = 100
target_bound = 3.0
[model]
loss = {kind = "pinball", quantile = 0.4}
regularizer = {kind = "regularizers.Pull", strength = 0.1}
[privacy]
epsilon = 2.0
delta = 1e-5
seed = 0
[setting]
kind = "federated"
trust = "curator"
algorithm = "half-way"
schedule = "every-other"
rounds = 4
split = {kind = "equal", parties = 4}
[setting.parameters]
step = 0.5
"""
SCRIPT = """
import json
import subprocess
import sys
import numpy as np
from consenso import registry
from consenso.algorithms import discover
from consenso.audit import Effort, audit
from consenso.deployment.engines import list_engines, refusal
from consenso.engine.run import run
from consenso.models import load_model
from consenso.planning.plan import plan
from consenso.planning.replan import differences
from consenso.privacy.calibrate import EpsilonDelta
from consenso.privacy.card import Card
from consenso.privacy.card.evaluation import evaluation_text
from consenso.privacy.events import Gaussian
from consenso.privacy.ledger import Budget, Ledger, Scope
from consenso.privacy.noise import GaussianNoise
from consenso.privacy.samplers import Seeded
from consenso.privacy.verify import first_failure, verify_file
from consenso.problem import Problem
from consenso.shards import Shards
from consenso.solvers import choose
from consenso.study import Study
from consenso.study.training import train
from consenso.tables import read_table
from consenso.testing.worlds import draw
from pathlib import Path

study = Study.load("study.toml")
train(study, Path("run"))
assert first_failure(verify_file("run")) is None
card = Card.load("run")
assert differences(card) == []
assert card.parameters["algorithm"]["kind"] == "algorithms.HalfSteps", card.parameters
assert card.parameters["schedule"]["kind"] == "schedules.EveryOther"
assert card.data["loss"]["kind"] == "losses.Pinball"

model = load_model("run")
assert type(model.loss).__name__ == "Pinball" and model.loss.quantile == 0.4
again = load_model(model.save("again.json"))
X = np.random.default_rng(0).normal(size=(5, len(model.features))) / 100
np.testing.assert_array_equal(again.predict(X), model.predict(X))
np.testing.assert_allclose(model.to_sklearn().predict(X), model.predict(X))
try:
    import onnxruntime
except ImportError:
    pass
else:
    session = onnxruntime.InferenceSession(str(model.to_onnx("model.onnx")))
    np.testing.assert_allclose(session.run(None, {"X": X})[0][:, 0], model.predict(X))

np.testing.assert_array_equal(run(study.plan(), study.shards()).coefficients, model.coefficients)

kinds = {name: registry.kinds(name) for name in registry.FAMILIES}
loss, pull = kinds["losses"]["Pinball"](), kinds["regularizers"]["Pull"](strength=0.1)
small = Problem(loss=loss, regularizer=pull, features=2, sizes=np.full(4, 2), row_bound=1.0, target_bound=1.0)
half = discover()["HalfSteps"](clip=1.0)
options = {"rounds": 2, "schedule": kinds["schedules"]["EveryOther"](), "trust": "curator"}
made = plan(small, half, noise=GaussianNoise(multiplier=1.0), **options)
findings = audit(made, Effort(trials=200))
assert findings and not any(finding.refuted for finding in findings)

logistic = plan(small, half, noise=kinds["noises"]["LogisticNoise"](multiplier=2.0), sampler=Seeded(0), **options)
assert np.isfinite(run(logistic, Shards.from_parties(small, draw(small, np.random.default_rng(0)))).coefficients).all()
stored = json.loads(json.dumps(logistic.card(1e-5).to_json()))
assert "events.LogisticShift" in json.dumps(stored) and "noises.LogisticNoise" in json.dumps(stored)
assert differences(Card.from_json(stored)) == []
findings = audit(logistic, Effort(trials=200))
assert findings and not any(finding.refuted for finding in findings)

assert study.change({"setting.trust": "enclave"}).plan().mode.noise_at_hub
attested = plan(small, half, noise=GaussianNoise(multiplier=1.0), **{**options, "trust": "enclave"})
stored = json.loads(json.dumps(attested.card(1e-5).to_json()))
assert differences(Card.from_json(stored)) == [] and stored["trust"] == "enclave"
assert [e["epsilon"] for e in stored["entries"]] == [e["epsilon"] for e in made.card(1e-5).to_json()["entries"]]
assert "Hardware that the parties attest" in evaluation_text(Card.from_json(stored))
assert audit(attested, Effort(trials=200))

who = [observer.key for observer in made.observers()]
assert who == ["eavesdropper", "server", "peer:0", "dashboard", "public"], who
shown = {e["observer"]: e["epsilon"] for e in made.card(1e-5).to_json()["entries"]}
assert shown["dashboard"] == shown["public"] < np.inf, shown
assert "who watches the dashboard" in str(made.card(1e-5))
assert "dashboard" in {finding.observer for finding in audit(made, Effort(trials=200))}
budget = Budget(observer="dashboard", unit="record", adjacency="replace-one", epsilon=9.0, delta=1e-5)
ledger = Ledger.create("seen.ledger", dataset="d", budgets=[budget])
ledger.reserve("one", {Scope(observer="server", unit="record", adjacency="replace-one"): Gaussian(1.0, 1.0)}, what="r")
assert 0 < ledger.balances()[0].spent < 9

step = kinds["algorithms"]["OneStep"](clip=1.0)
proved = plan(small, step, rounds=1, trust="curator", noise=GaussianNoise(multiplier=1.0))
stored = json.loads(json.dumps(proved.card(1e-5).to_json()))
assert "theorems.OnlyOnce" in json.dumps(stored)
assert differences(Card.from_json(stored)) == []
twice = plan(small, step, rounds=2, trust="curator", noise=GaussianNoise(multiplier=1.0))
assert "theorems.OnlyOnce" not in json.dumps(twice.card(1e-5).to_json())

assert [each.commands for each in list_engines()][-1] == "`consenso courier`"
assert refusal(list_engines()[-1], made) is None
place = Path("courier")
place.mkdir()
Path("open.toml").write_text(study.change({"setting.trust": "local"}).to_toml())
command = [sys.executable, "-m", "consenso", "courier", "open.toml", "courier"]
done = subprocess.run(command, capture_output=True, text=True)
assert done.returncode == 0, done.stderr
alone = run(Study.load("open.toml").plan(), Study.load("open.toml").shards()).model
np.testing.assert_allclose(json.loads(done.stdout), alone, rtol=1e-10, atol=1e-12)

Path("t.turned").write_text("a;1;2;3\\nb;4;5;6\\n")
assert read_table("t.turned").columns["b"].numbers(frozenset())[0].tolist() == [4.0, 5.0, 6.0]

assert choose.names() == ("preconditioned", "wide", "objective-perturbation", "dual-admm", "half-steps", "dp-sgd")
target = EpsilonDelta(epsilon=1.0, delta=1e-5)
named = choose.prepare(small, target, solver="half-steps", sampler=Seeded(0), trust="curator")
assert type(named.algorithm).__name__ == "HalfSteps"
assert differences(named.card(1e-5)) == []
"""


@pytest.fixture
def elsewhere(tmp_path: Path) -> Path:
    """A distribution with one file for each kind, as it lies in a folder of site packages."""
    package, info = tmp_path / "thirdparty", tmp_path / "thirdparty-1.0.dist-info"
    for folder in (package, info):
        folder.mkdir()
    (package / "__init__.py").write_text("")
    for name, text in FILES.items():
        (package / name).write_text(text)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: thirdparty\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("".join(f"[consenso.{name}]\n{line}\n" for name, line in GROUPS.items()))
    (tmp_path / "study.toml").write_text(STUDY)
    return tmp_path


@pytest.mark.slow
def test_kinds_of_somebody_else_train_verify_save_load_export_and_are_audited(elsewhere: Path) -> None:
    path = os.pathsep.join([str(elsewhere), *filter(None, [os.environ.get("PYTHONPATH")])])
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", SCRIPT],
        cwd=elsewhere,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=550,
    )
    assert done.returncode == 0, done.stderr
