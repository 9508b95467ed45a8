"""Faults of a study that no section shows on its own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from consenso.errors import ConsensoError
from consenso.privacy.observers import Server
from consenso.study.graph import check_graph
from consenso.study.keys import Faults, Keys
from consenso.study.model import TASKS
from consenso.study.parties import check_parties

if TYPE_CHECKING:
    from consenso.study.study import Study


def check_together(study: Study, inner: Mapping[str, Keys], faults: Faults) -> None:
    """Faults that no section shows on its own."""
    data, model, privacy, setting = study.data, study.model, study.privacy, study.setting
    fits = TASKS[model.loss.targets]
    if fits != data.task:
        known = {"binary": "logistic or hinge", "multiclass": "softmax", "regression": "squared or huber"}
        more = ", or name the classes that count as +1 in data.positive" if fits == "binary" else ""
        inner["model"].wrong(
            "loss", f"it is for a {fits} target and the data have a {data.task} one; take {known[data.task]}{more}"
        )
    drops = (
        [] if data.schema is None else [c.name for c in data.schema.columns if getattr(c, "missing", "") == "drop-row"]
    )
    if drops and privacy.adjacency == "replace-one":
        inner["privacy"].wrong(
            "adjacency",
            f"the column {drops[0]!r} drops records with missing values, so their number is not public; use "
            '"add-remove", or another rule for missing values in the schema',
        )
    check_parties(data, privacy, setting, faults)
    if faults.sentences:
        return
    if setting.topology is not None:
        check_graph(inner["setting"], setting.topology, study.parties)
    _check_observer(study, inner["privacy"])


def _check_observer(study: Study, keys: Keys) -> None:
    try:
        observer = study.observer
    except (ConsensoError, OverflowError):
        keys.wrong(
            "observer",
            "an observer is eavesdropper, server, public, peer:3, peer:name or coalition:1,4; name one of these",
        )
        return
    kind, insiders = study.setting.kind, observer.insiders
    if isinstance(observer, Server) and kind != "federated":
        keys.wrong("observer", f"a {kind} setting has no server; name eavesdropper or public")
    elif insiders and kind == "central":
        keys.wrong("observer", "the one party of a central setting has all data; name eavesdropper or public")
    elif insiders and (max(insiders) >= len(study.parties) or len(insiders) == len(study.parties)):
        keys.wrong("observer", f"parties are numbered from 0 to {len(study.parties) - 1}, and not all of them look on")
