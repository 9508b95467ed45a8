"""Model files: one JSON document, read without executing anything, checked against its digest and in its sizes."""

from __future__ import annotations

import hashlib
import json
import platform
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from consenso import registry
from consenso.arrays import Array
from consenso.errors import ConsensoError, InputError, TamperError
from consenso.losses import Loss
from consenso.models.model import Model
from consenso.privacy.card import Card
from consenso.privacy.card.plain import plain
from consenso.schema import Schema
from consenso.version import __version__, find_version

FORMAT = 1
FILE = "model.json"
LARGEST = 256 << 20  # bytes of a file
MOST_NUMBERS = 10_000_000
KEYS = {
    *("format", "loss", "coefficients", "intercept", "features", "classes", "row_bound", "schema", "card", "study"),
    *("versions", "digest", "estimates", "standard_errors"),
}


def save_model(model: Model, path: str | Path) -> Path:
    """Write a model; into a folder as `model.json`."""
    target = Path(path) / FILE if Path(path).is_dir() else Path(path)
    content = to_json(model)
    target.write_text(json.dumps({**content, "digest": _digest(content)}, indent=1) + "\n", encoding="utf-8")
    return target


def to_json(model: Model) -> dict[str, Any]:
    """A model as plain JSON values; numbers come back bit for bit."""
    return {
        "format": FORMAT,
        "loss": plain(model.loss, "loss"),
        "coefficients": model.coefficients.tolist(),
        "intercept": None if model.intercept is None else model.intercept.tolist(),
        "features": list(model.features),
        "classes": None if model.classes is None else list(model.classes),
        "row_bound": model.row_bound,
        "schema": None if model.schema is None else model.schema.to_toml(),
        "card": None if model.card is None else model.card.to_json(),
        "study": model.study,
        "versions": model.versions or current_versions(),
        "estimates": None if model.estimates is None else model.estimates.tolist(),
        "standard_errors": None if model.standard_errors is None else model.standard_errors.tolist(),
    }


def load_model(path: str | Path) -> Model:
    """The model in a file, or in the `model.json` of a run's folder.

    InputError where it is no model, TamperError where it was changed after it was written.
    """
    target = Path(path) / FILE if Path(path).is_dir() else Path(path)
    stored = _read(target)
    content = {name: value for name, value in stored.items() if name != "digest"}
    if _digest(content) != stored.get("digest"):
        raise TamperError(f"{target}: the digest is not that of the model, which was changed after it was written.")
    try:
        return _from_json(content)
    except TamperError:
        raise
    except ConsensoError as error:
        raise InputError(f"{target}: {error}") from None
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise InputError(f"{target}: the fields are not those of a model ({error}); write it anew.") from None


def _from_json(content: Mapping[str, Any]) -> Model:
    if content["format"] != FORMAT:
        raise InputError(f"this version reads model format {FORMAT}, and the file has {content['format']!r}.")
    unknown = sorted(content.keys() - KEYS)
    if unknown:
        raise InputError(f"a model has no field {unknown[0]!r}; write it anew.")
    features, classes = content["features"], content["classes"]
    schema = content["schema"]
    return Model(
        loss=_loss(content["loss"]),
        coefficients=_numbers(content["coefficients"], 2),
        intercept=None if content["intercept"] is None else _numbers(content["intercept"], 1),
        features=_texts(features, "features"),
        classes=None if classes is None else _texts(classes, "classes"),
        row_bound=float(content["row_bound"]),
        schema=None if schema is None else Schema.parse(schema),
        card=None if content["card"] is None else Card.from_json(content["card"]),
        study=None if content["study"] is None else str(content["study"]),
        versions={str(name): str(value) for name, value in content["versions"].items()},
        # Files from before there were standard errors have none.
        estimates=_read_optional(content.get("estimates")),
        standard_errors=_read_optional(content.get("standard_errors")),
    )


def current_versions() -> dict[str, str]:
    """What a model is written with."""
    packages = {name: find_version(name) for name in ("numpy", "scikit-learn")}
    return {"consenso": __version__, "python": platform.python_version(), **packages}


def _read(target: Path) -> dict[str, Any]:
    try:
        size = target.stat().st_size
        if size > LARGEST:
            raise InputError(f"{target}: a model has at most {LARGEST >> 20} MB, and the file has {size >> 20}.")
        stored = json.loads(target.read_text(encoding="utf-8"), parse_constant=_refuse)
    except FileNotFoundError:
        raise InputError(f"{target}: there is no such file; name a model or a run's folder.") from None
    except OSError as error:
        raise InputError(f"{target}: cannot be read ({error.strerror}); name a model or a run's folder.") from None
    except InputError:
        raise
    except (ValueError, RecursionError):
        raise InputError(f"{target}: a model is a JSON document, and this is none; name a model.") from None
    if not isinstance(stored, dict):
        raise InputError(f"{target}: the file is not a model; name one.")
    return stored


def _refuse(name: str) -> None:
    raise ValueError(f"{name} is not a JSON number")


def _digest(content: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def _loss(spelled: Mapping[str, Any]) -> Loss:
    kind = registry.find(str(spelled["kind"]), ("losses",))
    made: Loss = kind(**{name: value for name, value in spelled.items() if name != "kind"})
    return made


def _numbers(value: Any, axes: int) -> Array:
    array = np.array(value)
    if array.ndim != axes or array.dtype.kind not in "fi" or array.size > MOST_NUMBERS:
        raise InputError(f"coefficients are numbers along {axes} axes, at most {MOST_NUMBERS:,} of them.")
    return array.astype(np.float64)


def _read_optional(value: Any) -> Array | None:
    return None if value is None else _numbers(value, 1)


def _texts(value: Any, what: str) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise InputError(f"{what} are a list of texts.")
    return tuple(value)
