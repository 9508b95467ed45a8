"""Private quantiles: what they cost, what one record can do to them, and how good they are."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import sparse, stats

from consenso import PrivateScaler, private_bounds
from consenso.errors import BudgetError, InputError, PrivacyError
from consenso.estimators.histograms import _claim, _count_of
from consenso.estimators.privacy_params import PrivacyParams
from consenso.estimators.quantiles import POSITIVE_EDGES, SIGNED_EDGES, _counts, count_exactly, search
from consenso.privacy.earlier import Earlier
from consenso.privacy.ledger import Budget, Ledger
from consenso.privacy.relations import claims_of
from consenso.privacy.samplers import Seeded

RNG = np.random.default_rng(0)
N = 20_000
X = np.stack(
    [RNG.normal(size=N), 1990 + 30 * RNG.random(N), RNG.lognormal(3, 1, N), RNG.random(N) < 0.3, np.full(N, 7.0)],
    axis=1,
)


def claim(quantities, times, adjacency="replace-one", seed=0):
    """What is promised of histograms within epsilon 1."""
    asked = terms(adjacency, seed=seed)
    planned = Earlier.plan(asked.whole_mu, adjacency, asked.sampler, **_count_of(quantities, times))
    return _claim(planned, quantities, adjacency, 1e-5, simulation=not asked.sampler.private)


def terms(adjacency="replace-one", epsilon=1.0, seed=0):
    return PrivacyParams(
        owner="test",
        epsilon=epsilon,
        delta=1e-5,
        adjacency=adjacency,
        records=100,
        seed=seed,
        ledger=None,
    )


@pytest.mark.parametrize(
    "edges", [SIGNED_EDGES, POSITIVE_EDGES, np.linspace(-1, 1, 33)], ids=["signed", "positive", "fine"]
)
def test_one_record_moves_the_counts_by_no_more_than_declared(edges) -> None:
    """Searched over many neighbours, wild values included; the bounds are attained."""
    rng = np.random.default_rng(2)
    quantities = 3
    declared = _count_of(quantities, 2)
    wild = np.array([0.0, -0.0, 1e-300, -1e300, 1e300, np.inf, -np.inf, 1.0, -1.0, 2.0**30, 2.0**-30])

    def histogram(values):
        return np.concatenate([_counts(values[:, k], edges) for k in range(quantities)])

    most = {"add-remove": 0.0, "replace-one": 0.0}
    for _ in range(300):
        values = rng.choice(wild, size=(6, quantities)) * rng.choice([1.0, 0.3], size=(6, quantities))
        changed = values.copy()
        changed[0] = rng.choice(wild, size=quantities)
        moved = {"add-remove": histogram(values[1:]), "replace-one": histogram(changed)}
        for adjacency, neighbour in moved.items():
            gap = float(np.linalg.norm(histogram(values) - neighbour))
            most[adjacency] = max(most[adjacency], gap)
            assert gap <= declared[adjacency.replace("-", "_")] + 1e-12
    assert most["add-remove"] == pytest.approx(declared["add_remove"])
    assert most["replace-one"] == pytest.approx(declared["replace_one"])


@pytest.mark.parametrize("seed", [0, None], ids=["seeded", "safe"])
@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
def test_the_noise_keeps_to_the_budget_and_uses_it(adjacency, seed) -> None:
    counts = claim(4, 2, adjacency, seed)
    assert 0.999 < counts.prove().epsilon(1e-5) <= 1.0
    # Replacing costs sqrt(2) in sensitivity, not 2.
    other, _ = claims_of(adjacency, "record")
    ratio = counts.prove(adjacency="replace-one").gdp(), counts.prove(adjacency=other).gdp()
    if ratio[0] is not None:
        assert ratio[0] / ratio[1] == pytest.approx(math.sqrt(2), rel=1e-6)


def test_the_noise_on_the_counts_is_what_is_stated() -> None:
    """4000 empty bins: a standard deviation off by 5 % has a chance of 1e-5 (4.4 standard errors)."""
    counts = claim(1, 1)
    empty = np.zeros((1, 4000))
    noisy = counts.planned.release(0, empty, "replace-one", Seeded(0), lambda record: None)
    assert np.std(noisy) == pytest.approx(counts.scale, rel=0.05)
    assert counts.scale == pytest.approx(math.sqrt(2) * 1.0 / counts.prove().gdp(), rel=1e-6)


@pytest.mark.parametrize("seed", [0, None])
def test_bounds_are_near_the_quantiles(seed) -> None:
    found = private_bounds(X, X[:, 2], epsilon=1.0, random_state=seed)
    lengths = np.linalg.norm(X, axis=1)
    assert np.quantile(lengths, 0.9) <= found.row_bound <= 1.1 * np.quantile(lengths, 0.99)
    assert np.quantile(X[:, 2], 0.85) <= found.target_bound <= 1.1 * np.quantile(X[:, 2], 0.99)
    assert found.guarantee.epsilon(0.1 / N) <= 1.0
    assert 0 < found.count_noise < 50
    assert private_bounds(X, epsilon=1.0, random_state=seed).target_bound is None


def test_compressed_rows_have_the_same_bounds() -> None:
    one = private_bounds(X, epsilon=1.0, random_state=0)
    other = private_bounds(sparse.csr_array(X), epsilon=1.0, random_state=0)
    assert one.row_bound == other.row_bound


def test_without_privacy_they_are_the_quantiles() -> None:
    found = private_bounds(X, X[:, 2], epsilon=math.inf)
    assert found.row_bound == pytest.approx(np.quantile(np.linalg.norm(X, axis=1), 0.95))
    assert found.target_bound == pytest.approx(np.quantile(X[:, 2], 0.95))
    assert found.guarantee.epsilon(1e-5) == math.inf


@pytest.mark.parametrize("seed", [0, None])
def test_the_scaler_finds_columns_of_any_scale(seed) -> None:
    scaler = PrivateScaler(epsilon=1.0, tail=0.01, random_state=seed).fit(X)
    low, high = np.quantile(X, [0.01, 0.99], axis=0)
    spread = np.maximum(high - low, 1.0)
    assert (scaler.lower_ <= np.quantile(X, 0.05, axis=0) + 0.1 * spread).all()
    assert (scaler.upper_ >= np.quantile(X, 0.95, axis=0) - 0.1 * spread).all()
    assert (scaler.upper_ - scaler.lower_ <= 3 * spread).all()
    scaled = scaler.transform(X)
    assert np.linalg.norm(scaled, axis=1).max() <= 1.0 + 1e-12
    assert scaler.guarantee_.epsilon(0.1 / N) <= 1.0
    np.testing.assert_array_equal(scaler.transform(np.full((1, 5), 1e300)), np.full((1, 5), 1 / math.sqrt(5)))


def test_public_ranges_leave_the_whole_budget_for_the_quantiles() -> None:
    blind = PrivateScaler(epsilon=0.2, random_state=0).fit(X[:, :1])
    told = PrivateScaler(epsilon=0.2, ranges=(-4.0, 4.0), random_state=0).fit(X[:, :1])
    assert told.count_noise_ < blind.count_noise_
    assert -4.0 <= told.lower_[0] < -1.5
    assert 1.5 < told.upper_[0] <= 4.0
    np.testing.assert_array_equal(
        told.lower_, PrivateScaler(epsilon=0.2, ranges=([-4.0], [4.0]), random_state=0).fit(X[:, :1]).lower_
    )


def test_few_records_still_give_a_bound() -> None:
    for seed in range(20):
        found = private_bounds(X[:3], epsilon=0.01, random_state=seed)
        assert 0 < found.row_bound < math.inf
        scaler = PrivateScaler(epsilon=0.01, random_state=seed).fit(X[:3])
        assert (scaler.lower_ < scaler.upper_).all()
        assert np.isfinite(scaler.transform(X)).all()


def test_under_add_remove_the_number_of_records_is_not_needed() -> None:
    found = private_bounds(X, epsilon=1.0, delta=1e-5, adjacency="add-remove", random_state=0)
    assert found.guarantee.adjacency == "add-remove"
    assert private_bounds(X, epsilon=1.0, adjacency="add-remove", random_state=0).guarantee.epsilon(1e-5) <= 1.0
    scaler = PrivateScaler(epsilon=1.0, delta=1e-5, adjacency="add-remove", random_state=0).fit(X)
    assert scaler.guarantee_.epsilon(1e-5) <= 1.0


@pytest.fixture
def ledger(tmp_path) -> Ledger:
    budget = Budget(observer="public", unit="record", adjacency="replace-one", epsilon=1.0, delta=1e-5)
    return Ledger.create(tmp_path / "a.ledger", dataset="a", budgets=[budget])


def test_an_add_remove_run_is_charged_under_both_adjacencies_what_its_card_states(ledger) -> None:
    found = private_bounds(X, epsilon=0.5, delta=1e-5, adjacency="add-remove", ledger=ledger)
    (balance,) = ledger.balances()
    stated = max(entry.epsilon for entry in found.card.entries if entry.adjacency == "replace-one")
    assert stated <= balance.spent <= 1.001 * stated


def test_a_ledger_is_charged_and_refuses_what_it_cannot_pay(ledger) -> None:
    private_bounds(X, epsilon=0.6, delta=1e-5, ledger=ledger)
    (balance,) = ledger.balances()
    assert balance.spent == pytest.approx(0.6, rel=1e-3)
    PrivateScaler(epsilon=0.3, delta=1e-5, ledger=ledger).fit(X)
    assert [run.state for run in ledger.runs()] == ["committed", "committed"]
    head = ledger.head()
    with pytest.raises(BudgetError):
        PrivateScaler(epsilon=0.9, delta=1e-5, ledger=ledger).fit(X)
    with pytest.raises(PrivacyError, match="leave random_state out"):
        private_bounds(X, epsilon=0.1, ledger=ledger, random_state=0)
    with pytest.raises(ValueError, match="NaN"):
        private_bounds(X * np.nan, epsilon=0.1, ledger=ledger)
    assert ledger.head() == head


def test_what_fails_before_anything_is_released_is_given_back(ledger, monkeypatch) -> None:
    def broken(*args):
        raise MemoryError

    monkeypatch.setattr("consenso.estimators.quantiles._counts", broken)
    with pytest.raises(MemoryError):
        private_bounds(X, epsilon=0.5, delta=1e-5, ledger=ledger)
    (run,) = ledger.runs()
    assert run.state == "released"
    assert ledger.balances()[0].spent == 0


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ({"epsilon": 0}, "epsilon is a number above 0"),
        ({"epsilon": 1, "delta": 1}, "a delta lies in"),
        ({"epsilon": 1, "quantile": 0}, "a quantile lies in"),
        ({"epsilon": 1, "quantile": math.nan}, "a quantile lies in"),
        ({"epsilon": 1, "adjacency": "x"}, "neighbouring data sets"),
    ],
    ids=str,
)
def test_bad_parameters_of_private_bounds(bad, message) -> None:
    with pytest.raises(InputError, match=message):
        private_bounds(None, **bad)


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ({"epsilon": -1}, "epsilon is a number above 0"),
        ({"tail": 0.5}, "lies in"),
        ({"tail": None}, "lies in"),
        ({"row_bound": 0}, "a bound on the 2-norm of rows"),
        ({"row_bound": None}, "a bound for the scaled rows"),
        ({"ranges": (1, 0)}, "every low below its high"),
        ({"ranges": 3}, "every low below its high"),
        ({"ranges": ([0, 0], [1, 1])}, "every low below its high"),
        ({"ranges": ("a", "b")}, "every low below its high"),
    ],
    ids=str,
)
def test_bad_parameters_of_the_scaler(bad, message) -> None:
    with pytest.raises(InputError, match=message):
        PrivateScaler(random_state=0, **bad).fit(X)


def test_targets_are_clipped_where_their_tails_are_expected_to_end() -> None:
    from consenso.estimators.private_rows import FAR_REACH, NEAR_REACH, _stretch

    def reach(law, most=FAR_REACH):
        inner, outer = (float(law.isf(part) - law.median()) for part in (0.05, 0.005))
        return _stretch(inner, outer, most) / outer

    for law in (stats.norm(), stats.uniform(), stats.beta(2, 5)):
        assert reach(law) == pytest.approx(NEAR_REACH), "it is over before, and noise may have moved the range in"
    assert NEAR_REACH < reach(stats.gennorm(1.2)) < FAR_REACH
    for law in (stats.lognorm(1.0), stats.t(2.0), stats.cauchy()):
        assert reach(law) == FAR_REACH, "nobody knows where it ends"
    assert _stretch(0.0, 1.0, 3.0) == 3.0
    assert reach(stats.norm(), most=1.0) == 1.0


def test_quantiles_within_the_range_are_found_in_the_same_counts() -> None:
    rng = np.random.default_rng(3)
    values = np.stack([rng.normal(5, 2, 200_000), rng.exponential(3, 200_000)], axis=1)
    found = search(lambda _, edges: count_exactly(values, edges), 1e-9, 2, (0.005, 0.995), ranges=None, positive=False)
    for end, level in zip(found.inner, (0.05, 0.95), strict=True):
        np.testing.assert_allclose(end, np.quantile(values, level, axis=0), atol=0.5 * found.bin.max())
