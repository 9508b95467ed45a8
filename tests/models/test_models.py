"""Model files come back bit for bit, refuse what is no model, and say the same in other programs' forms."""

from __future__ import annotations

import dataclasses
import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from consenso.errors import InputError, TamperError
from consenso.losses import (
    Absolute,
    EpsilonInsensitive,
    Hinge,
    Huber,
    Logistic,
    Loss,
    SmoothedHinge,
    Softmax,
    Squared,
)
from consenso.models import Model, load_model, save_model
from consenso.schema import Schema

LOSSES: list[Loss] = [
    Logistic(),
    Softmax(classes=3),
    Hinge(),
    SmoothedHinge(smoothing=0.5),
    Squared(),
    Huber(threshold=0.7),
    Absolute(),
    EpsilonInsensitive(width=0.1),
]
SCHEMA = """
[columns.age]
kind = "numeric"
low = 0
high = 100
missing = "drop-row"
[columns.job]
kind = "category"
categories = ["cook", "nurse"]
[columns.who]
kind = "user"
[columns.ill]
kind = "label"
classes = ["no", "yes"]
"""


def made(loss: Loss, *, intercept: bool = True, row_bound: float = 1.0) -> Model:
    rng = np.random.default_rng(1)
    classes = {"real": None, "sign": ("no", "yes"), "class": ("a", "b", "c")}[loss.targets]
    return Model(
        loss=loss,
        coefficients=rng.normal(size=(4, loss.outputs)),
        intercept=rng.normal(size=loss.outputs) if intercept else None,
        features=("w", "x", "y", "z"),
        classes=classes,
        row_bound=row_bound,
    )


def rows(count: int = 200, *, norm: float = 3.0) -> np.ndarray[Any, Any]:
    X = np.random.default_rng(2).normal(size=(count, 4))
    return X * (norm * np.random.default_rng(3).random((count, 1)) / np.linalg.norm(X, axis=1, keepdims=True))


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.name)
@pytest.mark.parametrize("intercept", [True, False])
def test_a_file_gives_the_same_model(loss: Loss, intercept: bool, tmp_path: Path) -> None:
    model = made(loss, intercept=intercept)
    assert save_model(model, tmp_path) == tmp_path / "model.json"
    again = load_model(tmp_path)
    assert (again.loss, again.features, again.classes, again.row_bound) == (
        model.loss,
        model.features,
        model.classes,
        model.row_bound,
    )
    np.testing.assert_array_equal(again.coefficients, model.coefficients)
    np.testing.assert_array_equal(again.scores(rows()), model.scores(rows()))
    assert again.versions["consenso"]
    np.testing.assert_allclose(model.scores(sparse.csr_array(rows())), model.scores(rows()), rtol=1e-12)


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.name)
@pytest.mark.parametrize("intercept", [True, False])
def test_onnx_says_the_same(loss: Loss, intercept: bool, tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the packages import what others are about to drop
        import onnxruntime

        path = made(loss, intercept=intercept).to_onnx(tmp_path / "model.onnx")
        session = onnxruntime.InferenceSession(path.read_bytes())
    model, X = made(loss, intercept=intercept), rows()
    X[0] = 0.0
    names = [output.name for output in session.get_outputs()]
    said = dict(zip(names, session.run(None, {"X": X}), strict=True))
    if model.classes is None:
        np.testing.assert_allclose(said["prediction"][:, 0], model.predict(X), rtol=1e-12)
        return
    assert list(said["label"]) == list(model.predict(X))
    if model.has_probabilities:
        np.testing.assert_allclose(said["probabilities"], model.predict_proba(X), rtol=1e-10, atol=1e-15)
    else:
        np.testing.assert_allclose(said["scores"][:, 1], model.scores(X)[:, 0], rtol=1e-12)


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.name)
@pytest.mark.parametrize("intercept", [True, False])
def test_scikit_learn_says_the_same_within_the_bound(loss: Loss, intercept: bool) -> None:
    model = made(loss, intercept=intercept, row_bound=3.0)
    other, X = model.to_sklearn(), rows()
    np.testing.assert_array_equal(other.predict(X), model.predict(X))
    if model.has_probabilities:
        np.testing.assert_allclose(other.predict_proba(X), model.predict_proba(X), rtol=1e-9)
    assert type(other).__module__.startswith("sklearn.")


@pytest.mark.parametrize("loss", [Logistic(), Softmax(classes=3), Hinge(), Squared(), Huber(), Absolute()])
def test_the_estimator_says_the_same_within_the_bound(loss: Loss) -> None:
    model = made(loss, row_bound=3.0)
    estimator, X = model.estimator(), rows()
    np.testing.assert_array_equal(estimator.predict(X), model.predict(X))
    if model.classes is not None:
        model = dataclasses.replace(model, classes=model.classes[::-1])
        estimator = model.estimator()
        assert list(estimator.classes_) == sorted(model.classes), "as a fit has them"
        np.testing.assert_array_equal(estimator.predict(X), model.predict(X))
    with pytest.raises(InputError, match="no estimator has the smoothed hinge loss"):
        made(SmoothedHinge(smoothing=0.5)).estimator()


def test_rows_are_scaled_to_the_bound_as_in_training() -> None:
    model = made(Squared(), intercept=True)
    X = rows(norm=9.0)
    norms = np.linalg.norm(X, axis=1, keepdims=True)
    np.testing.assert_allclose(model.scores(X), model.scores(X / np.maximum(norms, 1.0)), rtol=1e-12)
    assert norms.max() > 2


def test_a_table_is_mapped_by_the_schema_and_dropped_records_have_no_prediction(tmp_path: Path) -> None:
    model = Model(
        loss=Logistic(),
        coefficients=np.array([[1.0], [-1.0], [0.5], [0.0]]),
        intercept=np.array([-0.2]),
        features=("age", "job=cook", "job=nurse", "job=(other)"),
        classes=("no", "yes"),
        row_bound=2.0,
        schema=Schema.parse(SCHEMA),
    )
    (tmp_path / "new.csv").write_text("who,age,job\n1,90,nurse\n2,,cook\n3,10,cook\n")
    model.save(tmp_path)
    found = load_model(tmp_path).predict_table(tmp_path / "new.csv")
    assert found.rows.tolist() == [0, 2]
    assert found.predictions.tolist() == ["yes", "no"]
    assert found.probabilities is not None
    np.testing.assert_allclose(found.probabilities[:, 1], 1 / (1 + np.exp([-(0.9 + 0.5 - 0.2), -(0.1 - 1 - 0.2)])))
    (tmp_path / "bad.csv").write_text("who,age\n1,90\n")
    with pytest.raises(InputError, match="the schema has a column 'job'"):
        model.predict_table(tmp_path / "bad.csv")


def test_a_model_without_a_schema_takes_columns_of_numbers(tmp_path: Path) -> None:
    np.savez(tmp_path / "rows.npz", X=rows(5))
    model = made(Logistic())
    assert model.predict_table(tmp_path / "rows.npz").predictions.tolist() == model.predict(rows(5)).tolist()
    (tmp_path / "text.csv").write_text("w,x,y,z\n1,2,3,four\n")
    with pytest.raises(InputError, match="a feature is a number"):
        model.predict_table(tmp_path / "text.csv")


def test_what_is_no_model_is_refused(tmp_path: Path) -> None:
    path = save_model(made(Logistic()), tmp_path / "model.json")
    stored = json.loads(path.read_text())
    changed = {**stored, "coefficients": [[9.0]] * 4}
    path.write_text(json.dumps(changed))
    with pytest.raises(TamperError, match="changed after it was written"):
        load_model(path)
    from consenso.models.file import _digest

    for change, message in (
        ({"loss": {"kind": "os.system"}}, "not known to this version"),
        ({"loss": {"kind": "Logistic", "evil": 1}}, "not those of a model"),
        ({"coefficients": [[1.0]]}, "has coefficients of shape"),
        ({"coefficients": "none"}, "numbers along 2 axes"),
        ({"features": [1, 2, 3, 4]}, "list of texts"),
        ({"classes": ["one"]}, "has 2 classes"),
        ({"row_bound": -1}, "positive and finite"),
        ({"format": 99}, "reads model format"),
        ({"extra": 1}, "has no field 'extra'"),
        ({"schema": "draft"}, "not TOML"),
    ):
        content = {name: value for name, value in {**stored, **change}.items() if name != "digest"}
        path.write_text(json.dumps({**content, "digest": _digest(content)}))
        with pytest.raises(InputError, match=message):
            load_model(path)
    for text, message in (("[]", "not a model"), ("{", "JSON document"), ('{"a": NaN}', "JSON document")):
        path.write_text(text)
        with pytest.raises(InputError, match=message):
            load_model(path)
    with pytest.raises(InputError, match="no such file"):
        load_model(tmp_path / "none.json")


def test_a_file_that_is_too_large_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "model.json"
    with path.open("wb") as file:
        file.truncate((256 << 20) + 1)
    with pytest.raises(InputError, match="at most 256 MB"):
        load_model(path)
