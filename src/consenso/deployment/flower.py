"""A study as a Flower app: `build` writes its folder, `serve` is its ServerApp and `answer` its ClientApp.

Flower sends the app from whoever starts a run to every node. A party does not rely on what came with it: it makes its
plan from the copy of the study that its own operator accepted, and refuses questions of any other.
"""

from __future__ import annotations

import copy
import logging
import re
import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from consenso.deployment.engines import RemoteEngine, server_parts
from consenso.deployment.identity import disk_of, guard_of, names_of, place_of, run_of
from consenso.deployment.outcome import prepare, write
from consenso.deployment.sum_protocols import Parts, parts_of
from consenso.errors import InputError
from consenso.federation.hub import HubRun
from consenso.federation.party import Party
from consenso.study import Study
from consenso.study.study import LOCAL, SCHEMA
from consenso.study.writing import write_toml
from consenso.transport.flower import HUB, FlowerHub, answer_message, key_hash

log = logging.getLogger(__name__)

ENGINE = RemoteEngine("`consenso flower`", server_parts)
PACKAGE = "consenso_app"
STUDY, KEYS = "study.toml", "keys.toml"
# What Flower allows as the name of an app and of its folder.
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9-]{0,31}")
# What a node's operator states with flower-supernode --node-config.
NODE_CONFIG = ("study", "party", "data", "state", "out", "ledger", "label")

SERVER_APP = '''"""The server of this study as a Flower ServerApp."""

from pathlib import Path

from flwr.serverapp import ServerApp

from consenso.deployment.flower import serve

app = ServerApp()


@app.main()
def main(grid, context):
    """Run the study."""
    serve(Path(__file__).parent, grid, context.run_config)
'''

CLIENT_APP = '''"""A party of this study as a Flower ClientApp."""

from flwr.clientapp import ClientApp

from consenso.deployment.flower import answer

app = ClientApp()


@app.train()
def train(message, context):
    """Answer a question of the server."""
    return answer(message, context.node_config)


@app.query()
def query(message, context):
    """Say which party this is."""
    return answer(message, context.node_config)
'''

PYPROJECT = """[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"

[project]
name = "{name}"
version = "1.0.0"
description = "A private study by consenso"
license = "Apache-2.0"
dependencies = ["consenso[flower]=={version}"]

[tool.hatch.build.targets.wheel]
packages = ["{package}"]

[tool.flwr.app]
publisher = "{publisher}"

[tool.flwr.app.components]
serverapp = "{package}.server_app:app"
clientapp = "{package}.client_app:app"

# out: folder of the run on the machine of the SuperLink. label: tells repeated runs of one study apart; nodes state the
# same. patience: seconds that a message lives, and that a sampled round waits. linger: seconds to hand out the model.
[tool.flwr.app.config]
out = "{out}"
label = "1"
patience = 120.0
linger = 120.0
"""


def build(study: Study, out: Path, *, name: str | None = None, keys: Path | None = None) -> Path:
    """Write the folder of the app; what Flower cannot run is refused, and nothing is written.

    keys: a TOML file `party = "path of the node's public key"`; with it a node is believed only with its key.
    """
    from consenso.version import __version__

    check(study)
    name = _name(name or out.name)
    if not _NAME.fullmatch(out.name):
        raise InputError(f"--out {out}: Flower wants a folder of letters, digits and hyphens, 32 at most; rename it.")
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise InputError(f"--out {out}: it exists and is not an empty folder; name another.")
    known = {} if keys is None else _read_keys(study, keys)
    folder = out / PACKAGE
    try:
        folder.mkdir(parents=True)
        for file, text in {
            out / "pyproject.toml": PYPROJECT.format(
                name=name, version=__version__, package=PACKAGE, publisher="consenso", out=f"runs/{name}"
            ),
            folder / "__init__.py": "",
            folder / "server_app.py": SERVER_APP,
            folder / "client_app.py": CLIENT_APP,
            folder / STUDY: _portable(study),
        }.items():
            file.write_text(text, encoding="utf-8")
        if study.data.schema is not None:
            (folder / SCHEMA).write_text(study.data.schema.to_toml(), encoding="utf-8")
        if known:
            lines = "".join(f'"{party}" = "{value}"\n' for party, value in sorted(known.items()))
            (folder / KEYS).write_text(lines, encoding="utf-8")
    except OSError as error:
        raise InputError(f"--out {out}: cannot be written ({error.strerror}); choose another place.") from None
    if Study.load(folder / STUDY).digest != study.digest:
        raise InputError(f"--out {out}: the study does not survive being copied; report this.")
    return out


def check(study: Study) -> None:
    """Refuse what a ServerApp and its ClientApps cannot run, before anything starts."""
    server_parts(study.plan())
    if HUB in study.parties:
        raise InputError(f"party {HUB!r}: that is the server's own name; rename the party.")


def serve(app: Path, grid: Any, config: Mapping[str, Any]) -> Path:
    """The ServerApp: run the study in the app's folder over a grid; `config` is the run's configuration."""
    study = Study.load(app / STUDY)
    check(study)
    plan, label = study.plan(), str(config["label"])
    parts, names, run = parts_of(plan), names_of(study), run_of(study, label)
    folder = prepare(Path(str(config["out"])))
    keys = tomllib.loads((app / KEYS).read_text(encoding="utf-8")) if (app / KEYS).exists() else None
    line = FlowerHub(grid, names, run=run, limit=parts.limit, patience=float(config["patience"]), keys=keys)
    disk = disk_of(study, folder.checkpoint, owner=HUB, label=label)
    try:
        hub = HubRun(plan, disk, summation=parts.summation)
        for done in hub.rounds(line):
            away = ", ".join(names[party] for party in done.missing)
            log.info("round %d of %d%s", done.round + 1, plan.rounds, f", without {away}" if away else "")
        missing: dict[str, list[int]] = {}
        for row in disk.journal():
            for party in row.get("missing", ()):
                missing.setdefault(names[party], []).append(row["round"])
        out = write(study, folder, hub.model(), rounds=hub.round, run=run, missing=missing)
        heard = line.end(hub.model_bytes(), seconds=float(config["linger"]))
        for party in set(names) - set(heard):
            log.warning("%s did not take the model in time", names[party])
    finally:
        disk.close()
    folder.discard()
    return out


def answer(message: Any, node_config: Mapping[str, Any]) -> Any:
    """The ClientApp: the reply to one message; `node_config` is the configuration of the node, see `NODE_CONFIG`."""
    config = _check_config(node_config)
    study, name, label = Study.load(config["study"]), config["party"], config.get("label", "1")
    index, run = place_of(study, name), run_of(study, label)
    built: list[Party] = []

    @cache
    def parts() -> Parts:
        return parts_of(study.plan())

    def party() -> Party:
        disk = disk_of(study, Path(config["state"]), owner=name, label=label)
        try:
            ledger = Path(config["ledger"]) if "ledger" in config else None
            guard = guard_of(study, disk, ledger, label=label)
            shards = study.party_shards(name, Path(config["data"]) if "data" in config else None)
            contributor = parts().contributor
            built.append(Party(study.plan(), shards, index, disk, guard=guard, contributor=contributor))
        except BaseException:
            disk.close()
            raise
        return built[-1]

    reply = answer_message(message, name, run=run, limit=lambda: parts().limit, party=party)
    for here in built:
        if here.finished and here.model is not None and "out" in config:
            folder = prepare(Path(config["out"]), again=run)
            if not folder.complete:
                write(study, folder, here.model, rounds=here.round + 1, run=run, missing={})
    return reply


def _check_config(given: Mapping[str, Any]) -> dict[str, str]:
    unknown = [name for name in given if name not in NODE_CONFIG and name not in ("partition-id", "num-partitions")]
    if unknown:
        raise InputError(
            f"--node-config {unknown[0]}=...: a node states {', '.join(NODE_CONFIG)}; remove it or correct its name."
        )
    config = {name: str(value) for name, value in given.items() if name in NODE_CONFIG}
    for name in ("study", "party", "state"):
        if name not in config:
            raise InputError(f'--node-config: {name}="..." is missing; state study, party and state at least.')
    return config


def _portable(study: Study) -> str:
    """The study without the files of any machine, as text; its digest is the same."""
    tables = copy.deepcopy(dict(study.move(study.folder).tables))
    for section, name in LOCAL:
        tables.get(section, {}).pop(name, None)
    return write_toml(tables)


def _name(wanted: str) -> str:
    """A name that Flower accepts."""
    plain = re.sub(r"[^A-Za-z0-9]+", "-", wanted).strip("-")[:32]
    if not _NAME.fullmatch(plain):
        raise InputError(f"--name {wanted}: an app is named by letters, digits and hyphens, a letter first; rename it.")
    return plain


def _read_keys(study: Study, path: Path) -> dict[str, str]:
    """The hash of each party's public key."""
    try:
        files = tomllib.loads(path.read_text(encoding="utf-8"))
        unknown = sorted(set(files) ^ set(study.parties))
        if unknown:
            raise InputError(
                f"--keys {path}: {unknown[0]!r} is in the study or in the file and not in both; name all parties."
            )
        return {name: key_hash((path.parent / str(file)).read_bytes()) for name, file in files.items()}
    except (OSError, tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f'--keys {path}: {error}; write a line party = "node.pub" for each party.') from None
