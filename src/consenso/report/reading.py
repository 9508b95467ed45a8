"""What a page is made from: the public files of a run's folder, and the plan made anew from its card."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from consenso.arrays import Array
from consenso.errors import InputError
from consenso.planning.parties import find_alike
from consenso.planning.plan import Plan
from consenso.planning.replan import replan
from consenso.privacy.card import Card
from consenso.privacy.card.entry import Entry
from consenso.privacy.noise import NoNoise
from consenso.privacy.run_spec import largest_bounds
from consenso.study.audited import AUDIT
from consenso.study.folder import METRICS, MODEL, STUDY, TRACE

# Where the findings of an audit of the run's study are looked for.
ATTACKS = Path("audit") / "findings.json"
ROUNDS_DRAWN = 200  # points of a curve over rounds


@dataclass(frozen=True, kw_only=True)
class NoiseCurve:
    """One release over the rounds: the noise added to it, and the most that one unit can change it."""

    name: str
    rounds: tuple[int, ...]
    scales: tuple[float, ...]
    bounds: tuple[float, ...]


@dataclass(frozen=True, kw_only=True)
class RunFiles:
    """A run as its public files tell it. Files that a run does not have are None."""

    folder: Path
    card: Card
    study: str | None = None
    title: str | None = None
    ledger: Path | None = None  # that the study names, wherever it is
    trace: Mapping[str, Any] | None = None
    metrics: Mapping[str, Any] | None = None
    model: Mapping[str, Any] | None = None
    attacks: tuple[Mapping[str, Any], ...] = ()  # findings of an audit in the folder "audit" of the run
    canaries: Mapping[str, Any] | None = None  # what the run itself proved, where canaries were among its records

    @cached_property
    def plan(self) -> Plan:
        """The plan of the run, made anew from its card."""
        return replan(self.card)

    def entries(self) -> list[Entry]:
        """The promises for the problem's own unit and adjacency, one per observer."""
        scope = (self.card.data["unit"], self.card.data["adjacency"])
        return [entry for entry in self.card.entries if (entry.unit, entry.adjacency) == scope]

    def noise_curves(self) -> list[NoiseCurve]:
        """Noise against the most that one unit can change, for every release, from the plan."""
        algorithm = self.plan.algorithm
        rounds = np.unique(np.linspace(0, self.plan.rounds - 1, min(self.plan.rounds, ROUNDS_DRAWN)).astype(int))
        found: dict[str, list[tuple[int, float, float]]] = {}
        for round_ in rounds.tolist():
            largest = largest_bounds(self.plan, algorithm.releases, round_)
            facts = self.plan.representatives().at(round_)
            for release in self.plan.remember(algorithm.releases)(facts):
                noise = self.plan.noise_for(release.name)
                bound = largest[release.name]
                if isinstance(noise, NoNoise) or not math.isfinite(bound):
                    continue
                sensitivity = self.plan.sensitivity(release, facts, bound)
                scale = float(np.max(noise.scale(sensitivity, round_)))
                found.setdefault(release.name, []).append((round_ + 1, scale, bound))
        return [
            NoiseCurve(
                name=name,
                rounds=tuple(point[0] for point in points),
                scales=tuple(point[1] for point in points),
                bounds=tuple(point[2] for point in points),
            )
            for name, points in found.items()
        ]

    def node_epsilons(self, entry: Entry) -> Array:
        """Epsilon of every party's data against one observer, (parties,); NaN for the observer itself."""
        out = np.full(self.plan.parties, np.nan)
        if entry.spread is None:
            out[:] = entry.epsilon
            return out
        for kind in sorted(entry.spread.kinds, key=lambda kind: kind.parties, reverse=True):
            alike = find_alike(self.plan, kind.party) if kind.parties > 1 else np.array([kind.party])
            out[alike] = kind.epsilon
        return out


def read_run(folder: str | Path) -> RunFiles:
    """The run in a folder that `consenso train` wrote."""
    path = Path(folder)
    if not path.is_dir():
        raise InputError(f"{folder}: a run is a folder with a card.json in it; name one.")
    study = path / STUDY
    text = study.read_text(encoding="utf-8") if study.exists() else None
    said = _read_toml(text)
    ledger = said.get("privacy", {}).get("ledger")
    return RunFiles(
        folder=path,
        card=Card.load(path),
        study=text,
        title=str(said.get("title") or "") or None,
        ledger=None if ledger is None else path / str(ledger),
        trace=_json(path / TRACE),
        metrics=_json(path / METRICS),
        model=_json(path / MODEL),
        attacks=_findings(path / ATTACKS),
        canaries=_json(path / AUDIT),
    )


def _read_toml(study: str | None) -> dict[str, Any]:
    import tomllib

    if study is None:
        return {}
    try:
        return tomllib.loads(study)
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{STUDY}: not TOML: {error}; restore the file that the run was written with.") from None


def _findings(path: Path) -> tuple[Mapping[str, Any], ...]:
    """What `consenso audit --out` wrote."""
    if not path.exists():
        return ()
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except ValueError:
        content = None
    names = {"observer", "claimed", "lower", "share", "trials", "refuted", "delta", "confidence"}
    if not isinstance(content, list) or not all(isinstance(each, dict) and names <= each.keys() for each in content):
        raise InputError(f"{path}: not the findings of an audit; write them again with consenso audit --out.")
    return tuple(content)


def _json(path: Path) -> Mapping[str, Any] | None:
    if not path.exists():
        return None
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise InputError(f"{path}: not JSON ({error}); restore the file that the run was written with.") from None
    if not isinstance(content, dict):
        raise InputError(f"{path}: not a document of a run; restore the file that the run was written with.")
    return content
