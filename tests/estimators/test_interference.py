"""Given what was released, nothing else that a fit keeps, says or writes depends on the table; and between neighbours
what is released moves by no more than is stated for the whole fit, releases before and after it included.
"""

from __future__ import annotations

import json
import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import consenso
from consenso.privacy.accountants import gdp
from consenso.privacy.noise import GaussianNoise
from consenso.schema import Numeric, Schema

COLUMNS, PEOPLE = 3, 40
Table = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]
LABELLED = ("PrivateLogisticRegression", "PrivateLinearSVC")
SEED = 3
# Options of the estimator, of the table, and whether the number of rows may differ.
OPTIONS = {
    "public bounds": ({"row_bound": 2.0, "target_bound": 3.0}, {}, False),
    "bounds that are found": ({}, {}, False),
    "no public number": ({"adjacency": "add-remove"}, {}, True),
    "an upper bound": ({"adjacency": "add-remove", "records": 90, "row_bound": 2.0, "target_bound": 3.0}, {}, True),
    "people": ({"row_bound": 2.0, "target_bound": 3.0}, {"users": True, "rows_per_person": 2}, True),
    "people and a cap": ({"epsilon": 3.0}, {"users": True}, True),
    "people who come and go": ({"adjacency": "add-remove"}, {"users": True}, True),
    "weights": ({"adjacency": "add-remove"}, {"weights": True}, True),
    "balanced classes": ({"class_weight": "balanced"}, {}, False),
    "a threshold": ({"target_recall": 0.7, "adjacency": "add-remove"}, {}, True),
    "compressed rows": ({}, {"sparse": True}, False),
    "truth values": ({"classes": None}, {}, False),
    "wide": ({"solver": "wide", "row_bound": 2.0, "target_bound": 3.0}, {}, False),
    "several calls": ({"adjacency": "add-remove"}, {"calls": 3}, True),
    "labels that are found": ({"classes": None}, {"numbers": True}, False),
    "three classes": ({"classes": ["no", "perhaps", "yes"]}, {}, False),
    "public weights of classes": ({"class_weight": {"no": 1, "yes": 5}, "row_bound": 2.0}, {}, False),
    "a released start": ({}, {"start": True}, False),
    "rows of a schema": ({}, {"schema": True}, False),
    "single precision": ({}, {"single": True}, False),
}
SCHEMA = Schema(columns=tuple(Numeric(name=f"x{place}", low=-2, high=2) for place in range(COLUMNS)))


@pytest.fixture
def nothing_but_noise(monkeypatch) -> None:
    """Every release is noise alone."""
    sample = GaussianNoise.sample
    monkeypatch.setattr(GaussianNoise, "sample", lambda self, value, *rest: sample(self, np.zeros_like(value), *rest))


def table(world: int, *, grows: bool, users: bool) -> Table:
    """Rows, whether they are positive, whose they are, and weights: of very different tables."""
    rng = np.random.default_rng(world)
    rows = 80 + 7 * world * grows
    X = rng.normal(size=(rows, COLUMNS)) * (1.0, 1e3)[world] + (0.0, 50.0)[world]
    ids = rng.permutation(np.arange(rows) % PEOPLE) if users else np.arange(rows)
    return X, rng.random(rows) < (0.5, 0.95)[world], ids, np.linspace(0, 1 + world, rows)


def fit(name: str, options: dict, asked: dict, given: Table, world: int = 0):
    X, positive, ids, weights = given
    own = {key: value for key, value in options.items() if key in getattr(consenso, name)().get_params()}
    if name in LABELLED:
        own = {"classes": ["no", "yes"]} | own
        y = positive if own["classes"] is None else np.where(positive, "yes", "no")
        y = y.astype(int) if "numbers" in asked else y
    else:
        y = X[:, 0] * (1 + world) + positive
    model = getattr(consenso, name)(**({"epsilon": 1.0, "delta": 1e-5, "random_state": SEED} | own))
    extra = {key: value for key, value in asked.items() if key == "rows_per_person"}
    if "users" in asked:
        extra["users"] = ids
    if "weights" in asked:
        extra |= {"sample_weight": weights, "weight_bound": 2.0}
    if "start" in asked:  # the same in all worlds
        extra["start"] = _fit_start(name, options)
    rows = _change(X, asked)
    for _ in range(asked.get("calls", 1)):
        (model.partial_fit if "calls" in asked else model.fit)(rows, y, **extra)
    return model


def _fit_start(name: str, options: dict):
    return fit(name, options, {}, table(0, grows=False, users=False))


def _change(X: np.ndarray, asked: dict):
    """The same rows in another form."""
    if "schema" in asked:
        frame = pd.DataFrame(np.clip(X, -1e9, 1e9), columns=[f"x{place}" for place in range(COLUMNS)])
        return consenso.SchemaTransformer(SCHEMA).fit_transform(frame)
    if "single" in asked:
        return X.astype(np.float32)
    return sparse.csr_array(X) if "sparse" in asked else X


def show(model) -> dict[str, bytes | str]:
    """All that a fitted object keeps, byte by byte, and all that it says; but for what tells its clones apart."""
    kept = {name: pickle.dumps(value) for name, value in vars(model).items() if name != "_lineage"}
    try:
        kept["summary"] = str(model.summary())
    except consenso.errors.InputError as error:
        kept["summary"] = str(error)
    return kept | {"card": json.dumps(model.card_.to_json())}


CASES = [("PrivateLogisticRegression", options) for options in OPTIONS]
CASES += [("PrivateRidge", options) for options in ("bounds that are found", "no public number", "several calls")]
CASES += [("PrivateLADRegressor", "people who come and go"), ("PrivateLinearSVC", "a threshold")]
CASES += [("PrivateRidge", "a released start"), ("PrivateRidge", "rows of a schema"), ("PrivateRidge", "weights")]
CASES += [(name, "bounds that are found") for name in ("PrivateHuberRegressor", "PrivateLasso")]


def differ(name: str, options: str) -> list[str]:
    """What differs between the fits to two tables."""
    own, asked, grows = OPTIONS[options]
    shown = []
    for world in (0, 1):
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            model = fit(name, own, asked, table(world, grows=grows, users="users" in asked), world)
        said = [str(each.message) for each in told if issubclass(each.category, UserWarning | RuntimeWarning)]
        shown.append(show(model) | {"warnings": str(said)})
    assert shown[0].keys() == shown[1].keys()
    return [part for part in shown[0] if shown[0][part] != shown[1][part]]


@pytest.mark.parametrize(("name", "options"), CASES)
def test_given_the_releases_a_fit_does_not_depend_on_its_table(name, options, nothing_but_noise) -> None:
    assert differ(name, options) == []


def test_a_planted_leak_is_seen(nothing_but_noise, monkeypatch) -> None:
    """The exact share of rows that were shortened, in place of a noisy one."""
    from consenso.estimators import learning

    def count(planned, records, bound, stages):
        noisy = count_shortened(planned, records, bound, stages)
        return noisy + float(np.mean(np.linalg.norm(records.X, axis=1) > bound))

    count_shortened = learning.count_shortened
    monkeypatch.setattr(learning, "count_shortened", count)
    assert "_shortened" in differ("PrivateLogisticRegression", "public bounds")


def _scale(X, positive):
    return consenso.PrivateScaler(epsilon=1.0, random_state=SEED).fit(X)


def _bound(X, positive):
    return consenso.private_bounds(X, X[:, 0], epsilon=1.0, random_state=SEED)


def _tell(X, positive):
    wards = np.where(positive, "north", "a ward that few know" if X[0, 0] > 10 else "south")
    return consenso.private_categories({"ward": wards}, epsilon=1.0, random_state=SEED)


def _search(X, positive):
    model = consenso.PrivateLogisticRegression(classes=[False, True])
    grid = {"alpha": [1e-3, 1.0], "row_bound": [None, 2.0]}
    return consenso.PrivateSearchCV(model, grid, epsilon=1.0, draws=3, random_state=SEED).fit(X, positive)


# What tells clones apart, and what holds it.
_WITH_LINEAGE = ("_lineage", "estimator", "best_estimator_")


@pytest.mark.parametrize("release", [_scale, _bound, _tell, _search])
def test_given_the_releases_what_stands_by_itself_does_not_depend_on_its_table(release, nothing_but_noise) -> None:
    shown = []
    for world in (0, 1):
        X, positive, *_ = table(world, grows=False, users=False)
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            found = release(X, positive)
        card = found.card if hasattr(found, "card") else found.card_
        kept = {name: pickle.dumps(value) for name, value in vars(found).items() if name not in _WITH_LINEAGE}
        kept |= {"card": json.dumps(card.to_json()), "warnings": str([str(each.message) for each in told])}
        shown.append(kept | {"best": str(show(found.best_estimator_)) if release is _search else ""})
    assert shown[0].keys() == shown[1].keys()
    assert [part for part in shown[0] if shown[0][part] != shown[1][part]] == []


class Tape:
    """All that a fit released, for another fit to be answered with; and what telling the two apart costs."""

    def __init__(self, monkeypatch) -> None:
        self.heard, self.place, self.cost = [], None, 0.0
        sample = GaussianNoise.sample

        def answer(noise, values, sensitivity, round_, key, sampler):
            scale = np.asarray(noise.scale(sensitivity, round_))
            if self.place is None:
                self.heard.append((values.copy(), scale, sample(noise, values, sensitivity, round_, key, sampler)))
                return self.heard[-1][2].copy()
            exact, before, told = self.heard[self.place]
            self.place += 1
            assert (scale == before).all()
            assert values.shape == exact.shape
            self.cost += float(np.sum(np.sum((values - exact) ** 2, axis=-1) / scale**2))
            return told.copy()

        monkeypatch.setattr(GaussianNoise, "sample", answer)


def list_neighbours(given: Table, adjacency: str, asked: dict) -> list[Table]:
    """A unit that is taken away, or is as far from the others as one can be, with one row and with many."""
    _, positive, ids, _ = given
    others = ids != ids[5]
    if adjacency == "add-remove":
        return [tuple(part[others] for part in given)]
    found = []
    for row, many in ((np.zeros(COLUMNS), 1), (np.full(COLUMNS, -1e9), 1), (np.eye(COLUMNS)[0] * 3, 90)):
        count = many if "users" in asked else 1
        new = np.tile(row, (count, 1)), np.full(count, not positive[5]), np.full(count, ids[5]), np.full(count, 2.0)
        where = np.flatnonzero(~others)[0]
        found.append(
            tuple(np.concatenate([a[others][:where], b, a[others][where:]]) for a, b in zip(given, new, strict=True))
        )
    return found


@pytest.mark.parametrize(("name", "options"), CASES)
def test_neighbours_are_told_apart_by_no_more_than_is_stated(name, options, monkeypatch) -> None:
    own, asked, _ = OPTIONS[options]
    given = table(0, grows=False, users="users" in asked)
    given[0][5], given[3][5] = 40.0, 2.0  # the unit that is taken away: long, and of most weight
    tape = Tape(monkeypatch)
    warnings.simplefilter("ignore")
    model = fit(name, own, asked, given)
    stated = gdp(model.guarantee_.event) ** 2
    shown, worst = show(model), 0.0
    for other in list_neighbours(given, own.get("adjacency", "replace-one"), asked):
        tape.place, tape.cost = 0, 0.0
        again = show(fit(name, own, asked, other))
        assert tape.place == len(tape.heard)
        assert [part for part in shown if shown[part] != again[part] and part != "_claims"] == []
        assert tape.cost <= stated * (1 + 1e-9)
        worst = max(worst, tape.cost)
    assert worst > 0.2 * stated  # so that the search is worth something


def test_a_release_before_a_fit_with_too_little_noise_is_seen(monkeypatch) -> None:
    from consenso.estimators.stages import Stages

    plan = Stages.plan
    halve = {"add_remove": 0.2, "replace_one": 0.2}
    monkeypatch.setattr(Stages, "plan", lambda self, share, **told: plan(self, share, **(told | halve)))
    with pytest.raises(AssertionError):
        test_neighbours_are_told_apart_by_no_more_than_is_stated(
            "PrivateLogisticRegression", "bounds that are found", monkeypatch
        )
