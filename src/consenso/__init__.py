"""Private ADMM: convex models on sensitive data, with guarantees that are true for every observer.

Start with an estimator; they follow scikit-learn, and all that is private is paid for by `epsilon`:

    from consenso import PrivateLogisticRegression, datasets
    patients, benign = datasets.load_breast_cancer().frame()
    model = PrivateLogisticRegression(epsilon=1).fit(patients, benign)
    print(model.card_)  # what it cost

    PrivateLogisticRegression   two classes, or several
    PrivateLinearSVC            two classes, hinge loss
    PrivateRidge, PrivateLasso, PrivateElasticNet   least squares
    PrivateHuberRegressor, PrivateLADRegressor      targets with outliers
    PrivateScaler, private_bounds                   ranges that nobody knows
    SchemaTransformer, private_categories           columns that are no numbers
    PrivateSearchCV                                 parameters chosen within a budget

Or describe a `Problem`, `plan` a run for a target and an observer, build `Shards` from the parties' rows, and `run` the
plan; `compare` puts methods beside each other:

    from consenso import EpsilonDelta, L2, Logistic, Problem, Safe, Shards, algorithms, plan, run

`consenso --help` lists the commands. What is listed here loads when it is first used.
"""

from __future__ import annotations

from consenso.lazy import find_homes, load_from
from consenso.version import __version__ as __version__

_HOMES = find_homes(__name__)
__all__ = sorted(_HOMES)


def __getattr__(name: str) -> object:
    """Load what is heavy when it is first asked for."""
    return load_from(_HOMES, __name__, name)


def __dir__() -> list[str]:
    """The public names, also those that are not loaded yet."""
    return list(__all__)
