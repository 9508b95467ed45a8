from consenso.estimators.bounds import PrivateBounds as PrivateBounds, private_bounds as private_bounds
from consenso.estimators.least_squares import (
    PrivateElasticNet as PrivateElasticNet,
    PrivateLasso as PrivateLasso,
    PrivateRidge as PrivateRidge,
)
from consenso.estimators.linear import ShorteningWarning as ShorteningWarning
from consenso.estimators.logistic import PrivateLogisticRegression as PrivateLogisticRegression
from consenso.estimators.pipelines import PipelineWarning as PipelineWarning
from consenso.estimators.private import SpendingWarning as SpendingWarning
from consenso.estimators.robust import (
    PrivateHuberRegressor as PrivateHuberRegressor,
    PrivateLADRegressor as PrivateLADRegressor,
)
from consenso.estimators.scaler import PrivateScaler as PrivateScaler
from consenso.estimators.svc import PrivateLinearSVC as PrivateLinearSVC
from consenso.estimators.threshold import ThresholdWarning as ThresholdWarning
from consenso.estimators.uncertain import ChoiceWarning as ChoiceWarning
