from consenso.comparison import compare as compare
from consenso.engine.ledger_charge import LedgerCharge as LedgerCharge
from consenso.engine.run import Result as Result, run as run
from consenso.estimators import *
from consenso.estimators.categories import private_categories as private_categories
from consenso.estimators.frames import SchemaTransformer as SchemaTransformer
from consenso.estimators.search import PrivateSearchCV as PrivateSearchCV
from consenso.losses import (
    Absolute as Absolute,
    EpsilonInsensitive as EpsilonInsensitive,
    Hinge as Hinge,
    Huber as Huber,
    Logistic as Logistic,
    SmoothedHinge as SmoothedHinge,
    Softmax as Softmax,
    Squared as Squared,
)
from consenso.planning.plan import Plan as Plan, plan as plan
from consenso.privacy.calibrate import EpsilonDelta as EpsilonDelta, Mu as Mu, PureEpsilon as PureEpsilon, Rho as Rho
from consenso.privacy.card import Card as Card
from consenso.privacy.guarantee import Guarantee as Guarantee
from consenso.privacy.ledger import Budget as Budget, Ledger as Ledger
from consenso.privacy.noise import (
    Constant as Constant,
    GammaNormNoise as GammaNormNoise,
    GaussianNoise as GaussianNoise,
    Geometric as Geometric,
    LaplaceNoise as LaplaceNoise,
    NoNoise as NoNoise,
    PerRound as PerRound,
    Polynomial as Polynomial,
)
from consenso.privacy.observers import (
    Coalition as Coalition,
    Eavesdropper as Eavesdropper,
    Peer as Peer,
    Public as Public,
    Server as Server,
)
from consenso.privacy.samplers import Safe as Safe, Seeded as Seeded
from consenso.problem import Problem as Problem
from consenso.regularizers import (
    L1 as L1,
    L2 as L2,
    Ball as Ball,
    Box as Box,
    ElasticNet as ElasticNet,
    GroupL1 as GroupL1,
    NoPenalty as NoPenalty,
    Simplex as Simplex,
    Sum as Sum,
    Unpenalized as Unpenalized,
)
from consenso.schedules import (
    Cyclic as Cyclic,
    Everyone as Everyone,
    FixedSubset as FixedSubset,
    PoissonSubset as PoissonSubset,
    RandomOrder as RandomOrder,
    RandomStopping as RandomStopping,
    RandomWalk as RandomWalk,
)
from consenso.shards import Shards as Shards
from consenso.study import Study as Study
from consenso.topology import Topology as Topology
from consenso.version import __version__ as __version__
