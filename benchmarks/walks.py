"""How far a reader walks: functions, files and packages between `fit` and `coef_`, in a federated round, in training.

Run `python -m benchmarks walks`. The notes have what this module counted in version 0.1.0 (commit 7652fed; the round
was counted by hand). A wrapper is a record, made on the way, that holds another record of the package.
"""

from __future__ import annotations

import contextlib
import dataclasses
import io
import os
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from itertools import zip_longest
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import numpy as np

import consenso
from benchmarks.measure import Figure

ROOT = Path(consenso.__file__).parent
WRAPPING = ("estimators", "engine", "planning", "privacy", "problem", "public_facts", "solvers")
STUDY = """
[data]
dataset = "breast_cancer"
[model]
loss = "logistic"
regularizer = {kind = "l2", strength = 0.01}
[privacy]
epsilon = 2.0
delta = 1e-4
seed = 0
[setting]
kind = "central"
"""


class Walk:
    """What of the package a call passes through."""

    def __init__(self, call: Callable[[], Any]) -> None:
        self.calls: Counter[CodeType] = Counter()
        self.made: set[type] = set()
        self.switches = self.depth = 0
        self._frames: list[str] = []
        sys.setprofile(self._notice)
        try:
            call()
        finally:
            sys.setprofile(None)

    @property
    def functions(self) -> int:
        """Different functions."""
        return len(self.calls)

    @property
    def files(self) -> int:
        """Different files."""
        return len({code.co_filename for code in self.calls})

    def count(self, name: str, room: str) -> int:
        """Calls of all functions of one name in one package."""
        return sum(
            times
            for code, times in self.calls.items()
            if code.co_name == name and Path(code.co_filename).is_relative_to(ROOT / room)
        )

    @property
    def wrappers(self) -> list[str]:
        """Names of the kinds of wrappers."""
        return sorted(kind.__name__ for kind in self.made)

    def _notice(self, frame: FrameType, event: str, argument: Any) -> None:
        code = frame.f_code
        inside = code.co_filename.startswith(str(ROOT)) or code.co_filename == "<string>"
        if not inside or event not in ("call", "return"):
            return
        if code.co_filename == "<string>":  # the __init__ that dataclasses write
            if event == "return" and code.co_name == "__init__":
                self._notice_record(frame.f_locals.get("self"))
            return
        package = Path(code.co_filename).relative_to(ROOT).parts[0].removesuffix(".py")
        if event == "return":
            if self._frames:
                self._frames.pop()
            return
        self.calls[code] += 1
        self.switches += bool(self._frames) and self._frames[-1] != package
        self._frames.append(package)
        self.depth = max(self.depth, len(self._frames))

    def _notice_record(self, record: Any) -> None:
        kind = type(record)
        parts = kind.__module__.split(".")
        if parts[0] != "consenso" or parts[1] not in WRAPPING or not dataclasses.is_dataclass(kind):
            return
        held = (getattr(record, each.name, None) for each in dataclasses.fields(kind))
        if any(dataclasses.is_dataclass(each) and type(each).__module__.startswith("consenso.") for each in held):
            self.made.add(kind)


def run() -> list[Figure]:
    """Three walks, each after one that imported and compiled everything."""
    fit, train, talk = (_walk(call) for call in (_fit, _train, _talk))
    return [
        *_figures("fit to coef_", fit, (339, 55, 28, 7998)),
        Figure("fit to coef_: calls of releases()", fit.count("releases", "algorithms"), "", note="0.1.0: 799"),
        Figure("fit to coef_: wrappers", len(fit.wrappers), "", note=f"0.1.0: 21; now {', '.join(fit.wrappers)}"),
        *_figures("one round of six parties", talk, (194, 35)),
        Figure("one round of six parties: encoded", talk.count("encode", "engine"), "", note="0.1.0: 14"),
        Figure("one round of six parties: decoded", talk.count("decode", "engine"), "", note="0.1.0: 25"),
        *_figures("consenso train", train, (649, 110, 34, 27436)),
        Figure("consenso train: calls of releases()", train.count("releases", "algorithms"), "", note="0.1.0: 2728"),
    ]


def _figures(name: str, walk: Walk, before: tuple[int, ...]) -> list[Figure]:
    figures = {
        "functions": walk.functions,
        "files": walk.files,
        "depth": walk.depth,
        "switches between packages": walk.switches,
    }
    return [
        Figure(f"{name}: {what}", value, "", note=f"0.1.0: {then}" if then else "")
        for (what, value), then in zip_longest(figures.items(), before)
    ]


def _walk(make: Callable[[Path], Callable[[], Any]]) -> Walk:
    state = os.environ.get("CONSENSO_STATE")
    with tempfile.TemporaryDirectory() as name, contextlib.redirect_stdout(io.StringIO()):
        os.environ["CONSENSO_STATE"] = str(Path(name) / "state")
        try:
            make(Path(name) / "first")()
            return Walk(make(Path(name) / "second"))
        finally:
            os.environ.pop("CONSENSO_STATE")
            if state is not None:
                os.environ["CONSENSO_STATE"] = state


def _fit(folder: Path) -> Callable[[], Any]:
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, (500, 5)) / 5**0.5
    y = np.where(x[:, 0] > 0, "yes", "no")
    model = consenso.PrivateLogisticRegression(epsilon=1.0, row_bound=1.0, classes=["no", "yes"], random_state=0)
    return lambda: model.fit(x, y).coef_


def _train(folder: Path) -> Callable[[], Any]:
    from consenso.cli import main

    folder.mkdir()
    study = folder / "study.toml"
    study.write_text(STUDY, encoding="utf-8")

    def call() -> None:
        given, sys.argv = sys.argv, ["consenso", "train", str(study), "--out", str(folder / "run")]
        try:
            main()
        except SystemExit as ended:
            if ended.code:
                raise RuntimeError("consenso train failed") from ended
        finally:
            sys.argv = given

    return call


def _talk(folder: Path) -> Callable[[], Any]:
    from consenso.algorithms.consensus import ConsensusADMM
    from consenso.federation.disk import Disk
    from consenso.federation.hub import HubRun
    from consenso.federation.party import Party
    from consenso.shards import Shards
    from consenso.testing.plans import plan_example
    from consenso.testing.worlds import draw

    made = plan_example(ConsensusADMM.example())
    data = draw(made.problem, np.random.default_rng(0))

    def keep(owner: str) -> Disk:
        return Disk(folder / owner, owner=owner, run="ab" * 32, fingerprint="f")

    hub = HubRun(made, keep("hub"))
    parties = {
        party: Party(made, Shards.from_parties(made.problem, [rows], parties=[party]), party, keep(f"party {party}"))
        for party, rows in enumerate(data)
    }

    class Star:
        """Questions and answers that travel as bytes, in one process."""

        def ask(self, questions: Any, check: Any, *, partial: bool) -> dict[int, bytes]:
            answers = {}
            for party, each in questions.items():
                answers[party] = parties[party].answer(
                    round_=each.round, stage=each.stage, body=each.body, counted=each.counted
                )
                check(party, answers[party])
            return answers

    rounds = hub.rounds(Star())
    next(rounds)  # the first one says who is there
    return lambda: next(rounds)
