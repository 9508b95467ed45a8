"""Pipelines that learn from private data before a private model does, and those that are told everything."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline, make_pipeline, make_union
from sklearn.preprocessing import FunctionTransformer, MinMaxScaler, OneHotEncoder, StandardScaler

from consenso import PrivateLogisticRegression, PrivateScaler
from consenso.estimators import PipelineWarning

X = np.random.default_rng(0).uniform(-1, 1, size=(400, 2))
y = X[:, 0] > 0
PUBLIC_CODES = OneHotEncoder(categories=[[0.0, 1.0], [0.0, 1.0]], handle_unknown="ignore", sparse_output=False)


def _model(epsilon: float = 1.0) -> PrivateLogisticRegression:
    return PrivateLogisticRegression(epsilon=epsilon, row_bound=2.0, classes=[False, True], random_state=0)


@pytest.mark.parametrize(
    ("step", "named"),
    [
        (StandardScaler(), "StandardScaler"),
        (SimpleImputer(), "SimpleImputer"),
        (OneHotEncoder(handle_unknown="ignore"), "OneHotEncoder"),
        (make_union(FunctionTransformer(), MinMaxScaler()), "MinMaxScaler"),
        (ColumnTransformer([("a", StandardScaler(), [0]), ("b", "passthrough", [1])]), "StandardScaler"),
        (make_pipeline(FunctionTransformer(), StandardScaler()), "StandardScaler"),
    ],
)
def test_a_learner_before_a_private_model_is_a_warning(step: Any, named: str) -> None:
    with pytest.warns(PipelineWarning, match=named):
        make_pipeline(step, _model()).fit(X, y)


@pytest.mark.parametrize(
    "pipeline",
    [
        make_pipeline(SimpleImputer(strategy="constant", fill_value=0.0), _model()),
        make_pipeline(PUBLIC_CODES, _model()),
        make_pipeline(PrivateScaler(epsilon=1.0, random_state=0), _model()),
        make_pipeline(FunctionTransformer(), _model()),
        make_pipeline(StandardScaler(), _model(epsilon=float("inf"))),
        Pipeline([("none", "passthrough"), ("model", _model())]),
    ],
)
def test_what_is_told_everything_is_none(pipeline: Pipeline) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pipeline.fit(X, y)
