"""An estimator is one file, and a line in the list of the package where it is ours."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import consenso
from consenso import estimators
from consenso.estimators.linear import PrivateLinearModel
from consenso.estimators.regression import PrivateRegressor
from consenso.losses import EpsilonInsensitive
from consenso.models import Model, load_model


@dataclass(kw_only=True, eq=False, repr=False)
class PrivateTubeRegressor(PrivateRegressor):
    """Residuals within a tube do not count."""

    made_from = (EpsilonInsensitive,)

    width: float = 0.1

    @classmethod
    def read_loss(cls, loss: Any) -> dict[str, Any]:
        return {"width": loss.width}

    def _loss(self, terms: Any) -> Any:
        return EpsilonInsensitive(width=self.width), 1.0


def test_one_class_fits_states_its_cost_and_is_what_models_of_its_loss_become(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(400, 3))
    y = X @ [1.0, -1.0, 0.5]
    fitted = PrivateTubeRegressor(epsilon=20.0, row_bound=2.0, target_bound=2.5, random_state=0).fit(X, y)
    assert fitted.score(X, y) > 0.8
    assert fitted.card_.data["loss"]["kind"] == "losses.EpsilonInsensitive"
    assert fitted.guarantee_.epsilon(fitted.card_.delta) <= 20.0 * (1 + 1e-9)
    model = Model(
        loss=EpsilonInsensitive(width=0.2),
        coefficients=fitted.coef_[:, None],
        intercept=np.array([fitted.intercept_]),
        features=("a", "b", "c"),
        classes=None,
        row_bound=2.0,
        card=fitted.card_,
    )
    again = load_model(model.save(tmp_path)).estimator()
    assert isinstance(again, PrivateTubeRegressor)
    assert again.width == 0.2
    np.testing.assert_array_equal(again.predict(X), fitted.predict(X))


def test_the_list_of_the_package_has_every_estimator_and_every_name_in_it_loads() -> None:
    assert all(getattr(consenso, name) is not None for name in consenso.__all__)
    assert set(dir(estimators)) <= set(dir(consenso))

    def leaves(kind: type[Any]) -> list[type[Any]]:
        inner = kind.__subclasses__()
        return [leaf for each in inner for leaf in leaves(each)] if inner else [kind]

    found = [kind for kind in leaves(PrivateLinearModel) if kind.__module__.startswith("consenso.")]
    own = {kind.__name__ for kind in found if not kind.__name__.startswith("_")}
    assert own
    assert own <= set(dir(consenso))
