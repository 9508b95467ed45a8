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

import importlib
from typing import TYPE_CHECKING

from consenso.version import __version__

_HOMES = {
    "consenso.estimators": (
        "PrivateElasticNet",
        "PrivateHuberRegressor",
        "PrivateLADRegressor",
        "PrivateLasso",
        "PrivateLinearSVC",
        "PrivateLogisticRegression",
        "PrivateRidge",
        "PrivateScaler",
        "private_bounds",
    ),
    "consenso.estimators.categories": ("private_categories",),
    "consenso.estimators.frames": ("SchemaTransformer",),
    "consenso.estimators.search": ("PrivateSearchCV",),
    "consenso.planning.plan": ("Plan", "plan"),
    "consenso.engine.run": ("Result", "run"),
    "consenso.engine.ledger_charge": ("LedgerCharge",),
    "consenso.problem": ("Problem",),
    "consenso.shards": ("Shards",),
    "consenso.losses": (
        "Absolute",
        "EpsilonInsensitive",
        "Hinge",
        "Huber",
        "Logistic",
        "SmoothedHinge",
        "Softmax",
        "Squared",
    ),
    "consenso.regularizers": (
        "Ball",
        "Box",
        "ElasticNet",
        "GroupL1",
        "L1",
        "L2",
        "NoPenalty",
        "Simplex",
        "Sum",
        "Unpenalized",
    ),
    "consenso.privacy.noise": (
        "Constant",
        "GammaNormNoise",
        "GaussianNoise",
        "Geometric",
        "LaplaceNoise",
        "NoNoise",
        "PerRound",
        "Polynomial",
    ),
    "consenso.privacy.samplers": ("Safe", "Seeded"),
    "consenso.privacy.calibrate": ("EpsilonDelta", "Mu", "PureEpsilon", "Rho"),
    "consenso.privacy.observers": ("Coalition", "Eavesdropper", "Peer", "Public", "Server"),
    "consenso.privacy.guarantee": ("Guarantee",),
    "consenso.privacy.card": ("Card",),
    "consenso.privacy.ledger": ("Budget", "Ledger"),
    "consenso.schedules": (
        "Cyclic",
        "Everyone",
        "FixedSubset",
        "PoissonSubset",
        "RandomOrder",
        "RandomStopping",
        "RandomWalk",
    ),
    "consenso.topology": ("Topology",),
    "consenso.study": ("Study",),
    "consenso.comparison": ("compare",),
}
_LAZY = {name: home for home, names in _HOMES.items() for name in names}

__all__ = ["__version__", *sorted(_LAZY)]

if TYPE_CHECKING:
    from consenso.comparison import (
        compare as compare,
    )
    from consenso.engine.ledger_charge import (
        LedgerCharge as LedgerCharge,
    )
    from consenso.engine.run import (
        Result as Result,
    )
    from consenso.engine.run import (
        run as run,
    )
    from consenso.estimators import (
        PrivateElasticNet as PrivateElasticNet,
    )
    from consenso.estimators import (
        PrivateHuberRegressor as PrivateHuberRegressor,
    )
    from consenso.estimators import (
        PrivateLADRegressor as PrivateLADRegressor,
    )
    from consenso.estimators import (
        PrivateLasso as PrivateLasso,
    )
    from consenso.estimators import (
        PrivateLinearSVC as PrivateLinearSVC,
    )
    from consenso.estimators import (
        PrivateLogisticRegression as PrivateLogisticRegression,
    )
    from consenso.estimators import (
        PrivateRidge as PrivateRidge,
    )
    from consenso.estimators import (
        PrivateScaler as PrivateScaler,
    )
    from consenso.estimators import (
        private_bounds as private_bounds,
    )
    from consenso.estimators.categories import (
        private_categories as private_categories,
    )
    from consenso.estimators.frames import (
        SchemaTransformer as SchemaTransformer,
    )
    from consenso.estimators.search import (
        PrivateSearchCV as PrivateSearchCV,
    )
    from consenso.losses import (
        Absolute as Absolute,
    )
    from consenso.losses import (
        EpsilonInsensitive as EpsilonInsensitive,
    )
    from consenso.losses import (
        Hinge as Hinge,
    )
    from consenso.losses import (
        Huber as Huber,
    )
    from consenso.losses import (
        Logistic as Logistic,
    )
    from consenso.losses import (
        SmoothedHinge as SmoothedHinge,
    )
    from consenso.losses import (
        Softmax as Softmax,
    )
    from consenso.losses import (
        Squared as Squared,
    )
    from consenso.planning.plan import (
        Plan as Plan,
    )
    from consenso.planning.plan import (
        plan as plan,
    )
    from consenso.privacy.calibrate import (
        EpsilonDelta as EpsilonDelta,
    )
    from consenso.privacy.calibrate import (
        Mu as Mu,
    )
    from consenso.privacy.calibrate import (
        PureEpsilon as PureEpsilon,
    )
    from consenso.privacy.calibrate import (
        Rho as Rho,
    )
    from consenso.privacy.card import (
        Card as Card,
    )
    from consenso.privacy.guarantee import (
        Guarantee as Guarantee,
    )
    from consenso.privacy.ledger import (
        Budget as Budget,
    )
    from consenso.privacy.ledger import (
        Ledger as Ledger,
    )
    from consenso.privacy.noise import (
        Constant as Constant,
    )
    from consenso.privacy.noise import (
        GammaNormNoise as GammaNormNoise,
    )
    from consenso.privacy.noise import (
        GaussianNoise as GaussianNoise,
    )
    from consenso.privacy.noise import (
        Geometric as Geometric,
    )
    from consenso.privacy.noise import (
        LaplaceNoise as LaplaceNoise,
    )
    from consenso.privacy.noise import (
        NoNoise as NoNoise,
    )
    from consenso.privacy.noise import (
        PerRound as PerRound,
    )
    from consenso.privacy.noise import (
        Polynomial as Polynomial,
    )
    from consenso.privacy.observers import (
        Coalition as Coalition,
    )
    from consenso.privacy.observers import (
        Eavesdropper as Eavesdropper,
    )
    from consenso.privacy.observers import (
        Peer as Peer,
    )
    from consenso.privacy.observers import (
        Public as Public,
    )
    from consenso.privacy.observers import (
        Server as Server,
    )
    from consenso.privacy.samplers import (
        Safe as Safe,
    )
    from consenso.privacy.samplers import (
        Seeded as Seeded,
    )
    from consenso.problem import (
        Problem as Problem,
    )
    from consenso.regularizers import (
        L1 as L1,
    )
    from consenso.regularizers import (
        L2 as L2,
    )
    from consenso.regularizers import (
        Ball as Ball,
    )
    from consenso.regularizers import (
        Box as Box,
    )
    from consenso.regularizers import (
        ElasticNet as ElasticNet,
    )
    from consenso.regularizers import (
        GroupL1 as GroupL1,
    )
    from consenso.regularizers import (
        NoPenalty as NoPenalty,
    )
    from consenso.regularizers import (
        Simplex as Simplex,
    )
    from consenso.regularizers import (
        Sum as Sum,
    )
    from consenso.regularizers import (
        Unpenalized as Unpenalized,
    )
    from consenso.schedules import (
        Cyclic as Cyclic,
    )
    from consenso.schedules import (
        Everyone as Everyone,
    )
    from consenso.schedules import (
        FixedSubset as FixedSubset,
    )
    from consenso.schedules import (
        PoissonSubset as PoissonSubset,
    )
    from consenso.schedules import (
        RandomOrder as RandomOrder,
    )
    from consenso.schedules import (
        RandomStopping as RandomStopping,
    )
    from consenso.schedules import (
        RandomWalk as RandomWalk,
    )
    from consenso.shards import (
        Shards as Shards,
    )
    from consenso.study import (
        Study as Study,
    )
    from consenso.topology import (
        Topology as Topology,
    )


def __getattr__(name: str) -> object:
    """Load what is heavy when it is first asked for."""
    if name in _LAZY:
        return getattr(importlib.import_module(_LAZY[name]), name)
    raise AttributeError(f"module 'consenso' has no attribute {name!r}")


def __dir__() -> list[str]:
    """The public names, also those that are not loaded yet."""
    return list(__all__)
