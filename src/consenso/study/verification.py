"""Whether the files of a run belong together: the card to the study, the model to both."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from consenso.errors import ConsensoError, TamperError
from consenso.models import load_model
from consenso.privacy.card import Card
from consenso.study.folder import MODEL, STUDY
from consenso.study.study import Study

TOLERANCE = 1e-5  # of calibrated noise, which is searched for and may differ in its last digits between machines


def folder_faults(folder: Path) -> Iterator[str]:
    """What does not belong together in the folder of a run, one sentence each; a card that is alone is no fault."""
    card = Card.load(folder)
    if (folder / MODEL).exists():
        try:
            model = load_model(folder)
        except TamperError as error:
            yield str(error)
            return
        if model.card is None or model.card.to_json() != card.to_json():
            yield f"{MODEL}: the card inside it is not the card of the run"
        if (folder / STUDY).exists() and model.study != Study.load(folder / STUDY).digest:
            yield f"{STUDY}: it is not the study that the model was trained with"
    if (folder / STUDY).exists():
        study = Study.load(folder / STUDY)
        try:
            planned = study.plan().card(card.delta)
        except ConsensoError as error:
            yield f"{STUDY}: it cannot be planned ({error})"
            return
        for name in ("algorithm", "trust", "sampler", "data", "parameters"):
            if not _agree(getattr(planned, name), getattr(card, name)):
                yield f"card.json: {name} is not what the study plans"


def _agree(first: Any, second: Any) -> bool:
    if isinstance(first, dict) and isinstance(second, dict):
        return first.keys() == second.keys() and all(_agree(first[name], second[name]) for name in first)
    if isinstance(first, list) and isinstance(second, list):
        return len(first) == len(second) and all(map(_agree, first, second))
    if isinstance(first, float) and isinstance(second, float):
        return math.isclose(first, second, rel_tol=TOLERANCE)
    return bool(first == second)
