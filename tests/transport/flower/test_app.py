"""The app folder of a study, and what a node's operator states."""

from __future__ import annotations

import json
import tomllib
import warnings
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

import consenso
from consenso.deployment.flower import PACKAGE, answer, build, serve
from consenso.engine.run import run
from consenso.errors import InputError
from consenso.federation.disk import read_journal
from consenso.models import load_model
from consenso.privacy.ledger import Budget, Ledger
from consenso.study import Study
from consenso.study.training import model_of
from consenso.transport import flower
from consenso.transport.flower import key_hash

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # of what Flower and Typer import
    from flwr.app import ConfigRecord, Error, Message, RecordDict
    from flwr.cli.build import build_fab_from_disk
    from flwr.cli.config_utils import load_and_validate
    from flwr.supercore.task_identity import TaskIdentity
    from typer.testing import CliRunner

    from consenso.cli import build as application

# What a process of Flower is told when it is started.
TaskIdentity.run_id = TaskIdentity.node_id = TaskIdentity.task_id = 1

SCHEMA = """
[columns.age]
kind = "numeric"
low = 0
high = 100
[columns.ill]
kind = "label"
classes = ["no", "yes"]
"""
STUDY = """
title = "Two woods"
[data]
schema = "columns.toml"
tables = {{ash = "private/ash.csv", birch = "private/birch.csv"}}
[model]
loss = "logistic"
[privacy]
multiplier = 2.0
{privacy}
delta = 1e-5
[setting]
kind = "{kind}"
algorithm = "{algorithm}"
rounds = 3
{setting}
[setting.parties]
ash = 3
birch = 3
"""


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flower, "AFTER_REFUSAL", 0.05)


def study(
    folder: Path,
    *,
    kind: str = "federated",
    algorithm: str = "ConsensusADMM",
    setting: str = "",
    privacy: str = "seed = 7",
) -> Study:
    (folder / "columns.toml").write_text(SCHEMA)
    text = STUDY.format(kind=kind, algorithm=algorithm, setting=setting, privacy=privacy)
    (folder / "study.toml").write_text(text)
    (folder / "private").mkdir(exist_ok=True)
    for name in ("ash", "birch"):
        (folder / "private" / f"{name}.csv").write_text("age,ill\n30,no\n50,yes\n70,yes\n")
    return Study.load(folder / "study.toml")


@pytest.mark.filterwarnings("ignore:GitWildMatchPattern:DeprecationWarning")  # in Flower
def test_the_folder_is_an_app_that_flower_accepts(tmp_path: Path) -> None:
    out = build(study(tmp_path), tmp_path / "woods-app")
    assert sorted(str(file.relative_to(out)) for file in out.rglob("*") if file.is_file()) == [
        f"{PACKAGE}/__init__.py",
        f"{PACKAGE}/client_app.py",
        f"{PACKAGE}/schema.toml",
        f"{PACKAGE}/server_app.py",
        f"{PACKAGE}/study.toml",
        "pyproject.toml",
    ]
    told, warned = load_and_validate(out / "pyproject.toml")
    assert not warned
    assert told["project"]["name"] == "woods-app"
    assert told["project"]["dependencies"] == [f"consenso[flower]=={consenso.__version__}"]
    assert len(build_fab_from_disk(out)) > 0


def test_the_study_in_it_is_the_same_and_names_no_file_of_this_machine(tmp_path: Path) -> None:
    made = study(tmp_path)
    out = build(made, tmp_path / "app")
    copied = Study.load(out / PACKAGE / "study.toml")
    assert copied.digest == made.digest
    assert copied.title == "Two woods"
    for file in out.rglob("*"):
        assert not file.is_file() or "private/" not in file.read_text()


def test_the_shims_only_call_this_library(tmp_path: Path) -> None:
    out = build(study(tmp_path), tmp_path / "app")
    for file in (out / PACKAGE).glob("*.py"):
        code = file.read_text()
        compile(code, str(file), "exec")
        assert len(code.splitlines()) < 25


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"kind": "decentralized", "algorithm": "IPADMM", "setting": 'topology = "path"'}, "it has no hub"),
        ({"kind": "decentralized", "setting": 'schedule = "random-walk"\ntopology = "path"'}, "a walk goes from party"),
        (
            {"algorithm": "DPSGD", "setting": 'trust = "secure-sum"\nschedule = {kind = "fixed", size = 1}'},
            "cannot draw for themselves",
        ),
    ],
)
def test_what_flower_cannot_run_is_refused_and_nothing_is_written(
    changes: dict[str, Any], reason: str, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match=reason):
        build(study(tmp_path, **changes), tmp_path / "app")
    assert not (tmp_path / "app").exists()


@pytest.mark.parametrize("name", ["my app", "1app", "a" * 33, "app_1"])
def test_folders_that_flower_would_not_take_are_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="letters, digits and hyphens"):
        build(study(tmp_path), tmp_path / name)


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    (tmp_path / "app").mkdir()
    (tmp_path / "app" / "mine.txt").write_text("mine")
    with pytest.raises(InputError, match="not an empty folder"):
        build(study(tmp_path), tmp_path / "app")


def test_keys_of_nodes_go_into_the_app(tmp_path: Path) -> None:
    made, lines = study(tmp_path), []
    for name in made.parties:
        public = ec.generate_private_key(ec.SECP384R1()).public_key()
        (tmp_path / f"{name}.pub").write_bytes(public.public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH))
        lines.append(f'{name} = "{name}.pub"')
    keys = tmp_path / "keys.toml"
    keys.write_text("\n".join(lines[:1]))
    with pytest.raises(InputError, match="'birch' is in the study or in the file and not in both"):
        build(made, tmp_path / "app", keys=keys)
    keys.write_text("\n".join(lines))
    out = build(made, tmp_path / "app", keys=keys)
    stored = tomllib.loads((out / PACKAGE / "keys.toml").read_text())
    assert stored == {name: key_hash((tmp_path / f"{name}.pub").read_bytes()) for name in made.parties}
    keys.write_text('ash = "absent.pub"\nbirch = "birch.pub"')
    with pytest.raises(InputError, match="for each party"):
        build(made, tmp_path / "app2", keys=keys)


def test_the_command_builds_and_tells(tmp_path: Path) -> None:
    study(tmp_path)
    runner = CliRunner()
    done = runner.invoke(
        application(), ["flower", "build", str(tmp_path / "study.toml"), "--out", str(tmp_path / "app"), "--json"]
    )
    assert done.exit_code == 0, done.output
    told = json.loads(done.output)
    assert told["parties"] == ["ash", "birch"]
    assert (tmp_path / "app" / "pyproject.toml").exists()


# --- what a node states -----------------------------------------------------------------------------------------------


def who(run: str = "x") -> Message:
    return Message(RecordDict({"consenso": ConfigRecord({"run": run})}), dst_node_id=1, message_type="query", ttl=5.0)


def told(folder: Path, **changes: Any) -> dict[str, Any]:
    return {"study": str(folder / "study.toml"), "party": "ash", "state": str(folder / "ash.state")} | changes


def test_a_node_says_who_it_is_and_which_study_it_accepted(tmp_path: Path) -> None:
    study(tmp_path)
    reply = answer(who(), told(tmp_path))
    said = dict(reply.content["consenso"])
    assert said["name"] == "ash"
    # Another study, or another label, is another run.
    others = [answer(who(), told(tmp_path, label="2")).content["consenso"]["run"]]
    study(tmp_path, algorithm="DPSGD")
    others.append(answer(who(), told(tmp_path)).content["consenso"]["run"])
    assert len({said["run"], *others}) == 3
    assert not (tmp_path / "ash.state").exists()  # nothing was touched to say that


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"party": "oak"}, "the study names ash, birch"),
        ({"colour": "green"}, "a node states study, party"),
        ({"study": "/absent.toml"}, "cannot be read"),
    ],
)
def test_a_node_that_states_something_wrong_is_told(changes: dict[str, Any], reason: str, tmp_path: Path) -> None:
    study(tmp_path)
    with pytest.raises(InputError, match=reason):
        answer(who(), told(tmp_path, **changes))


@pytest.mark.parametrize("name", ["study", "party", "state"])
def test_a_node_states_study_party_and_state_at_least(name: str, tmp_path: Path) -> None:
    study(tmp_path)
    stated = {key: value for key, value in told(tmp_path).items() if key != name}
    with pytest.raises(InputError, match=f'{name}="..." is missing'):
        answer(who(), stated)


# --- the whole study, with the way through SuperLink and SuperNodes cut short -----------------------------------------


class CrashError(Exception):
    pass


class Grid:
    """Nodes that answer when they are pulled; `dies` ends the server at that message."""

    def __init__(self, folder: Path, dies: int | None = None) -> None:
        self.configs = {
            10 + place: told(folder, party=name, state=str(folder / f"{name}.state"), out=str(folder / f"{name}.run"))
            for place, name in enumerate(("ash", "birch"))
        }
        self.sent: list[Message] = []
        self.waiting: dict[str, Message] = {}
        self.dies = dies

    def get_node_ids(self) -> list[int]:
        return list(self.configs)

    def push_messages(self, messages: Any) -> list[str]:
        found = []
        for message in messages:
            if len(self.sent) == self.dies:
                raise CrashError
            message.metadata.__dict__["_message_id"] = str(len(self.sent))
            self.sent.append(message)
            self.waiting[message.metadata.message_id] = message
            found.append(message.metadata.message_id)
        return found

    def pull_messages(self, message_ids: Any) -> list[Message]:
        asked = [self.waiting.pop(message_id) for message_id in message_ids if message_id in self.waiting]
        return [answer(message, self.configs[message.metadata.dst_node_id]) for message in asked]


def test_a_server_that_was_stopped_goes_on_and_everybody_has_the_model(tmp_path: Path) -> None:
    made = study(tmp_path)
    app = build(made, tmp_path / "app") / PACKAGE
    config = {"out": str(tmp_path / "run"), "label": "1", "patience": 20.0, "linger": 20.0}
    with pytest.raises(CrashError):
        serve(app, Grid(tmp_path, dies=5), config)  # two introductions, one round, and half of the next
    assert not (tmp_path / "run" / "model.json").exists()
    assert serve(app, Grid(tmp_path), config) == tmp_path / "run"
    result = run(made.plan(), made.shards(), one_by_one=True)
    expected = model_of(made, result, result.card(made.privacy.delta))
    for folder in ("run", "ash.run", "birch.run"):
        found = load_model(tmp_path / folder)
        assert (found.coefficients == expected.coefficients).all()
        assert (tmp_path / folder / "card.json").exists()
    assert not (tmp_path / "run" / "checkpoint").exists()
    for party in ("ash", "birch"):
        steps = [row["round"] for row in read_journal(tmp_path / f"{party}.state") if row["what"] == "step"]
        assert steps == [0, 1, 2]
    with pytest.raises(InputError, match="a run is complete there"):
        serve(app, Grid(tmp_path), config)


def test_without_a_seed_a_node_needs_its_ledger(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    made = study(tmp_path, privacy="")
    app = build(made, tmp_path / "app") / PACKAGE
    grid = Grid(tmp_path)
    config = {"out": str(tmp_path / "run"), "label": "1", "patience": 20.0, "linger": 20.0}
    grid.dies = 6  # after the first refusals
    with pytest.raises(CrashError):
        serve(app, grid, config)
    assert "this party cannot go on" in caplog.text
    for party in ("ash", "birch"):
        assert not read_journal(tmp_path / f"{party}.state")  # nothing left it


def test_a_node_whose_replies_are_lost_is_charged_once(tmp_path: Path) -> None:
    """Every message is answered by a process of its own, and some of these die before their reply is out."""
    made = study(tmp_path, privacy="")
    app = build(made, tmp_path / "app") / PACKAGE
    lost = {"replies": 0}

    class Losing(Grid):
        def pull_messages(self, message_ids: Any) -> list[Message]:
            replies = []
            for reply, sent in (
                (reply, self.by_id[reply.metadata.reply_to_message_id]) for reply in self.pulled(message_ids)
            ):
                if sent.metadata.message_type == "train" and lost["replies"] % 3 < 2:
                    reply = Message(Error(code=8, reason="killed"), reply_to=sent)
                lost["replies"] += 1
                replies.append(reply)
            return replies

        def pulled(self, message_ids: Any) -> list[Message]:
            self.by_id = {message.metadata.message_id: message for message in self.sent}
            return super().pull_messages(message_ids)

    grid = Losing(tmp_path)
    budget = Budget(observer="eavesdropper", unit="record", adjacency="replace-one", epsilon=1000.0, delta=1e-5)
    for config in grid.configs.values():
        ledger = tmp_path / f"{config['party']}.ledger"
        Ledger.create(ledger, dataset=config["party"], budgets=[budget])
        config["ledger"] = str(ledger)
    serve(app, grid, {"out": str(tmp_path / "run"), "label": "1", "patience": 20.0, "linger": 20.0})
    assert lost["replies"] > 3 * 2 + 2  # some were asked for again
    for party in ("ash", "birch"):
        (charged,) = Ledger.open(tmp_path / f"{party}.ledger").runs()
        assert charged.state == "committed"
        steps = [row["round"] for row in read_journal(tmp_path / f"{party}.state") if row["what"] == "step"]
        assert steps == [0, 1, 2]
