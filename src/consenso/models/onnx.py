"""Models as ONNX: rows of features in, predictions and scores out, in double precision as the model computes.

The input X is (rows, features), and the scores are min(1, row_bound / |X|) X W + b. A classifier gives `label` (rows,)
as texts, and `probabilities` (rows, classes) or `scores`; a regression gives `prediction` (rows, 1).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from consenso.errors import InputError
from consenso.models.model import Model
from consenso.version import __version__

OPSET = 17


def write_onnx(model: Model, path: str | Path) -> Path:
    """Write a model as an ONNX file."""
    target = Path(path)
    made = to_onnx(model)
    try:
        target.write_bytes(made.SerializeToString())
    except OSError as error:
        raise InputError(f"{target}: cannot be written ({error.strerror}); choose another place.") from None
    return target


def to_onnx(model: Model) -> Any:
    """The ONNX graph of a model."""
    try:
        import onnx
    except ImportError:
        raise InputError("to_onnx: the package onnx is needed; run pip install 'consenso[onnx]'.") from None
    from onnx import TensorProto, helper, numpy_helper

    constants: list[Any] = []

    def constant(name: str, values: Any) -> str:
        constants.append(numpy_helper.from_array(np.asarray(values), name))
        return name

    weights = constant("weights", np.ascontiguousarray(model.coefficients))
    name_of_scores = "prediction" if model.classes is None else "score"
    node = helper.make_node
    nodes = [
        node("Mul", ["X", "X"], ["squares"]),
        node("ReduceSum", ["squares", constant("axis", np.array([1]))], ["squared"], keepdims=1),
        node("Max", ["squared", constant("least", np.array([np.finfo(float).tiny]))], ["positive"]),
        node("Sqrt", ["positive"], ["norm"]),
        node("Div", [constant("bound", np.array([model.row_bound])), "norm"], ["ratio"]),
        node("Min", ["ratio", constant("one", np.array([1.0]))], ["shrink"]),
        node("MatMul", ["X", weights], ["product"]),
        node("Mul", ["product", "shrink"], ["raw"]),
        node("Add", ["raw", constant("intercept", _row(model))], [name_of_scores]),
    ]
    rows = "rows"
    outputs: list[Any] = []
    if model.classes is None:
        outputs.append(helper.make_tensor_value_info("prediction", TensorProto.DOUBLE, [rows, 1]))
    else:
        nodes += _decision(model, node, constant)
        width = len(model.classes)
        name = "probabilities" if model.has_probabilities else "scores"
        outputs.append(helper.make_tensor_value_info("label", TensorProto.STRING, [rows]))
        outputs.append(helper.make_tensor_value_info(name, TensorProto.DOUBLE, [rows, width]))
    graph = helper.make_graph(
        nodes,
        "consenso",
        [helper.make_tensor_value_info("X", TensorProto.DOUBLE, [rows, len(model.features)])],
        outputs,
        constants,
    )
    made = helper.make_model(
        graph,
        producer_name="consenso",
        producer_version=__version__,
        opset_imports=[helper.make_opsetid("", OPSET)],
        ir_version=8,
    )
    helper.set_model_props(made, {"features": json.dumps(model.features), "classes": json.dumps(model.classes)})
    onnx.checker.check_model(made)
    return made


def _row(model: Model) -> Any:
    return np.zeros(model.outputs) if model.intercept is None else np.ascontiguousarray(model.intercept)


def _decision(model: Model, node: Any, constant: Any) -> list[Any]:
    """From scores to one column per class, and to the name of the class."""
    assert model.classes is not None
    nodes = []
    columns = "score"
    if model.outputs == 1:
        # Two classes: the columns are -score and score, whose softmax would be that of twice the score.
        nodes += [node("Neg", ["score"], ["against"]), node("Concat", ["against", "score"], ["both"], axis=1)]
        columns = "both"
    if model.has_probabilities:
        kind = "Sigmoid" if model.outputs == 1 else "Softmax"
        nodes.append(node(kind, [columns], ["probabilities"], **({} if model.outputs == 1 else {"axis": 1})))
    else:
        nodes.append(node("Identity", [columns], ["scores"]))
    nodes += [
        # The first of equal scores wins, as in the model: a score of zero is the first class.
        node("ArgMax", [columns], ["place"], axis=1, keepdims=0, select_last_index=0),
        node("Gather", [constant("classes", np.array(model.classes, dtype=object)), "place"], ["label"], axis=0),
    ]
    return nodes
