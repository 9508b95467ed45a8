"""Which checks of scikit-learn contradict privacy, and why: for `check_estimator(..., expected_failed_checks=...)`."""

from __future__ import annotations

import math
from typing import Any

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


def expected_failed_checks(estimator: Any) -> dict[str, str]:
    """The checks that an estimator cannot pass, with the reason; empty unless it declares labels [0, 1, 2].

    At epsilon=inf and with classes="public" there are none. Estimators without the bounds that they need are not
    fitted at all; `check_estimator` is for instances that have them.
    """
    classes = getattr(estimator, "classes", None)
    if math.isinf(estimator.epsilon) or classes is None or isinstance(classes, str):
        return {}
    return dict(_DECLARED)
