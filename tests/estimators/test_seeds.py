"""Whose seed a fit has: the owner's or nobody's, and it does not travel with what was fitted."""

from __future__ import annotations

import copy
import dataclasses
import io
import pickle
import pickletools
import warnings

import numpy as np
import pytest
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.ensemble import AdaBoostRegressor, BaggingClassifier, BaggingRegressor
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import RANSACRegressor
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from tests.estimators.discovery import NAMES, X, make, targets_of
from typer.testing import CliRunner

import consenso
from consenso.cli import build
from consenso.errors import PrivacyError
from consenso.estimators.histograms import differences
from consenso.privacy.guarantee import SIMULATED
from consenso.privacy.verify import first_failure, verify

# Nine digits that nothing else in a pickle is likely to have.
SEED = 714_025_913


class Untouchable:
    """Data that may not be looked at."""

    def __getattr__(self, name):
        raise AssertionError(f"looked at {name}")


def fit_of(estimator):
    """Fit under every program of scikit-learn that seeds what it clones, by name."""
    ways = {}
    # With replacement a record would be in a bag several times, which is a weight above 1 and refused.
    bag = {"n_estimators": 2, "bootstrap": False, "max_samples": 0.5}
    if is_classifier(estimator):
        labels = (X[:, 0] > 0).astype(int)
        ways["bagging"] = lambda: BaggingClassifier(estimator, **bag).fit(X, labels)
        ways["bagged pipeline"] = lambda: BaggingClassifier(make_pipeline(estimator), **bag).fit(X, labels)
    if is_regressor(estimator):
        ways["bagging"] = lambda: BaggingRegressor(estimator, **bag).fit(X, X[:, 0])
        ways["boosting"] = lambda: AdaBoostRegressor(estimator, n_estimators=2).fit(X, X[:, 0])
        ways["ransac"] = lambda: RANSACRegressor(estimator, min_samples=20, max_trials=2).fit(X, X[:, 0])
    grid = {"random_state": [SEED]}
    y = targets_of(type(estimator).__name__)
    ways["search"] = lambda: GridSearchCV(estimator, grid, cv=2, error_score="raise", scoring=lambda *_: 0.0).fit(X, y)
    return ways


def test_every_estimator_is_found() -> None:
    # A search is made of another estimator; its seeds are tested with it.
    named = {name for name in dir(consenso) if name.startswith("Private")}
    assert {*NAMES, "PrivateSearchCV"} == {name for name in named if hasattr(getattr(consenso, name), "fit")}


WAYS = [(name, way) for name in NAMES for way in fit_of(make(name))]


@pytest.mark.parametrize(("name", "way"), WAYS)
def test_a_seed_that_another_program_set_is_refused(name, way) -> None:
    with pytest.raises(PrivacyError, match=r"made without one.*give random_state when you make the estimator"):
        fit_of(make(name))[way]()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("name", "way"), [(name, way) for name, way in WAYS if way != "boosting"])
def test_the_seed_of_the_owner_is_accepted_whoever_replaces_it(name, way) -> None:
    fit_of(make(name, random_state=0))[way]()


@pytest.mark.parametrize("name", NAMES)
def test_a_set_seed_is_refused_before_data_are_looked_at_and_in_every_copy(name) -> None:
    seeded = make(name)
    seeded.set_params(random_state=SEED)
    assigned = clone(make(name))
    assigned.random_state = np.random.RandomState(0)
    for one in (seeded, assigned, clone(clone(seeded)), copy.deepcopy(seeded), pickle.loads(pickle.dumps(assigned))):
        with pytest.raises(PrivacyError) as caught:
            one.fit(Untouchable(), Untouchable())
        assert str(SEED) not in str(caught.value)
    # The owner can take it back, or mean it; without privacy there is nothing to seed.
    seeded.set_params(random_state=None).fit(X, targets_of(name))
    make(name, random_state=1).set_params(random_state=2).fit(X, targets_of(name))
    free = clone(make(name, epsilon=float("inf"))).set_params(random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        free.fit(X, targets_of(name))


def numbers_in(pickled: bytes) -> set[object]:
    return {argument for _, argument, _ in pickletools.genops(io.BytesIO(pickled)) if isinstance(argument, int)}


def objects_below(thing, seen):
    """Everything that can be reached from the attributes of an object."""
    if id(thing) in seen:
        return
    seen[id(thing)] = thing
    if isinstance(thing, dict):
        inner = [*thing.keys(), *thing.values()]
    elif isinstance(thing, list | tuple | set | frozenset):
        inner = list(thing)
    else:
        inner = list(getattr(thing, "__dict__", {}).values())
    for each in inner:
        objects_below(each, seen)


@pytest.mark.parametrize("seed", [SEED, np.random.RandomState(0)], ids=["number", "generator"])
@pytest.mark.parametrize("name", NAMES)
def test_a_fitted_object_holds_no_seed(name, seed) -> None:
    model = make(name, random_state=seed)
    drawn_seed = seed if isinstance(seed, int) else int(copy.deepcopy(seed).randint(np.iinfo(np.int32).max))
    assert not isinstance(seed, int) or SEED in numbers_in(pickle.dumps(model)), "an unfitted one goes to workers"
    model.fit(X, targets_of(name))
    card = model.card_
    stored = pickle.dumps(model)
    assert drawn_seed not in numbers_in(stored)
    back = pickle.loads(stored)
    assert back.random_state is None
    seen: dict[int, object] = {}
    learnt = {key: value for key, value in vars(model).items() if key not in model.get_params()}
    objects_below(learnt, seen)
    assert not any(isinstance(thing, int) and thing == drawn_seed for thing in seen.values())
    assert not any(isinstance(thing, np.random.RandomState) for thing in seen.values())
    texts = [repr(model.guarantee_), card.text(), str(card.to_json()), repr(back), repr(learnt)]
    assert not any(str(drawn_seed) in text for text in texts)
    # Whoever has the pickle and the table draws other noise.
    again = clone(back).fit(X, targets_of(name))
    assert not again.guarantee_.simulation
    assert model.guarantee_.simulation


@pytest.mark.parametrize("name", NAMES)
def test_a_simulation_says_so_everywhere(name) -> None:
    simulated = make(name, random_state=0).fit(X, targets_of(name))
    private = make(name).fit(X, targets_of(name))
    back = pickle.loads(pickle.dumps(simulated))
    for model in (simulated, back):
        assert model.guarantee_.simulation
        assert model.card_.simulation
        whole = private.guarantee_.compose(model.guarantee_)
        for guarantee in (model.guarantee_, whole, whole.compose(private.guarantee_)):
            assert guarantee.simulation
            assert guarantee.sentence(1e-5).startswith(SIMULATED)
            assert guarantee.sentence().startswith(SIMULATED)
        assert all(entry.sentence.startswith(SIMULATED) for entry in model.card_.entries)
    assert not private.guarantee_.simulation
    assert "imulation" not in private.guarantee_.compose(private.guarantee_).sentence(1e-5)
    assert not any("imulation" in entry.sentence for entry in private.card_.entries)


@pytest.mark.parametrize("seed", [None, 0])
@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
def test_scaler_and_bounds_have_cards_that_can_be_verified(seed, adjacency, tmp_path) -> None:
    known = {"epsilon": 0.5, "delta": 1e-5, "adjacency": adjacency, "random_state": seed}
    scaler = consenso.PrivateScaler(**known).fit(X)
    bounds = consenso.private_bounds(X, X[:, 0], **known)
    for card, guarantee in ((scaler.card_, scaler.guarantee_), (bounds.card, bounds.guarantee)):
        assert card.simulation is guarantee.simulation is (seed is not None)
        stated = {(entry.observer, entry.adjacency): entry.epsilon for entry in card.entries}
        assert stated["public", adjacency] == guarantee.epsilon(1e-5)
        assert ("public", "add-remove") not in stated or adjacency == "add-remove"
        assert first_failure(verify(card.to_json())) is None
        assert differences(card) == []
        path = card.save(tmp_path / "card.json")
        assert CliRunner().invoke(build(), ["verify", str(path)]).exit_code == 0
        louder = {**card.parameters, "noise": {**card.parameters["noise"], "multiplier": 1e3}}
        dataclasses.replace(card, parameters=louder).save(path)
        assert CliRunner().invoke(build(), ["verify", str(path)]).exit_code == 1
    bare = consenso.PrivateScaler(epsilon=float("inf")).fit(X)
    assert first_failure(verify(bare.card_.to_json())) is None
    assert all(entry.epsilon == float("inf") for entry in bare.card_.entries)
