"""Which checks of scikit-learn contradict privacy, and why: for `check_estimator(..., expected_failed_checks=...)`."""

from __future__ import annotations

import math
from typing import Any

from sklearn.utils.validation import has_fit_parameter

_OTHER_LABELS = "its labels are not the declared public ones, which are refused"
_DECLARED_SHAPE = "it expects classes_ to be the labels that occur, and they are the declared public ones"
_ONE_LABEL = "whether only one label occurs is private, so that it is neither refused nor the only one predicted"

# With a list of public labels. classes="public" and epsilon=inf have no exceptions.
_DECLARED: dict[str, str] = {
    "check_classifiers_classes": _OTHER_LABELS,
    "check_classifiers_one_label": _ONE_LABEL,
    "check_classifiers_train": _DECLARED_SHAPE,
    "check_decision_proba_consistency": "it expects one score for two labels, and three are declared",
    "check_dtype_object": _OTHER_LABELS,
    "check_estimator_sparse_array": _OTHER_LABELS,
    "check_estimator_sparse_matrix": _OTHER_LABELS,
}


_WITH_WEIGHTS: dict[str, str] = dict.fromkeys(
    (
        "check_sample_weights_list",
        "check_sample_weights_not_overwritten",
        "check_sample_weight_equivalence_on_dense_data",
        "check_sample_weight_equivalence_on_sparse_data",
    ),
    "its weights are above weight_bound, which is 1 unless fit is given another",
)
_NO_SCALE = "its rows can be fitted exactly, so that residuals have no scale; it is so with HuberRegressor, too"


def expected_failed_checks(estimator: Any) -> dict[str, str]:
    """The checks that an estimator cannot pass, with the reason.

    At epsilon=inf there are none, but for the joint fit of a scale. Estimators without the bounds that they need are
    not fitted at all; `check_estimator` is for instances that have them, and classes="public" or labels [0, 1, 2].
    """
    classes, takes_weights = getattr(estimator, "classes", None), has_fit_parameter(estimator, "sample_weight")
    if math.isinf(estimator.epsilon):
        joint = "threshold" in estimator.get_params() and estimator.scale is None
        return {name: _NO_SCALE for name in _WITH_WEIGHTS if "equivalence" in name} if joint else {}
    listed = dict(_WITH_WEIGHTS) if takes_weights else {}
    if classes is None or isinstance(classes, str):
        return listed
    return listed | _DECLARED
