"""Samplers: the generator against its published answers, the laws that are drawn, the proofs of `Safe` in numbers."""

from __future__ import annotations

import math
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from consenso.errors import InputError, PreconditionError, PrivacyError
from consenso.privacy import threefry
from consenso.privacy.samplers import Key, Safe, Seeded
from consenso.privacy.samplers.safe import (
    SMOOTHING,
    _measurement,
    add_discrete,
    scale_to_draw,
    smoothing_excess,
)

# Seeded tests always see the same numbers; a right sampler would fail one of them with this probability when the
# seed is changed. Tests of Safe() see fresh entropy: this is the probability that a run fails by chance.
FALSE_ALARM = 1e-9
DRAWS = ("gaussian", "laplace", "gamma_norm")


def key_of(parties, round=0, release=0, repetition=0, stream=0):  # noqa: A002
    return Key(
        parties=np.asarray(parties, dtype=np.int64), round=round, release=release, repetition=repetition, stream=stream
    )


def draw(sampler, kind, values, scale, key, sensitivity=1.0):
    return getattr(sampler, kind)(values, scale, key, sensitivity=sensitivity)


# --- Threefry --------------------------------------------------------------------------------------------------------

PI = (0x243F6A8885A308D3, 0x13198A2E03707344, 0xA4093822299F31D0, 0x082EFA98EC4E6C89)
# Random123, file kat_vectors, generator threefry4x64, 20 rounds: counter, key, answer.
KNOWN_ANSWERS = [
    (
        (0, 0, 0, 0),
        (0, 0, 0, 0),
        (0x09218EBDE6C85537, 0x55941F5266D86105, 0x4BD25E16282434DC, 0xEE29EC846BD2E40B),
    ),
    (
        (0xFFFFFFFFFFFFFFFF,) * 4,
        (0xFFFFFFFFFFFFFFFF,) * 4,
        (0x29C24097942BBA1B, 0x0371BBFB0F6F4E11, 0x3C231FFA33F83A1C, 0xCD29113FDE32D168),
    ),
    (
        PI,
        (0x452821E638D01377, 0xBE5466CF34E90C6C, 0xBE5466CF34E90C6C, 0xC0AC29B7C97C50DD),
        (0xA7E8FDE591651BD9, 0xBAAFD0C30138319B, 0x84A5C1A729E685B9, 0x901D406CCEBC1BA4),
    ),
    (PI, (1, 0, 0, 0), (0x7BBBCBF0F617F950, 0x8EDA8917EE3A6A15, 0x56BF5DF8BFD1060E, 0xDF7A6D2BF0396704)),
]


def words(values):
    return tuple(np.uint64(value) for value in values)


@pytest.mark.parametrize(("counter", "key", "answer"), KNOWN_ANSWERS)
def test_threefry_gives_the_published_answers(counter, key, answer):
    assert tuple(int(word) for word in threefry.block(words(counter), words(key))) == answer
    assert in_whole_numbers(counter, key) == answer


TURNS = ((14, 16), (52, 57), (23, 40), (5, 37), (25, 33), (46, 12), (58, 22), (32, 32))


def in_whole_numbers(counter, key):
    """Threefry4x64-20 as its authors define it, in Python's integers."""
    keys = [*key, key[0] ^ key[1] ^ key[2] ^ key[3] ^ 0x1BD11BDAA9FC1A22]
    state = [(word + part) % 2**64 for word, part in zip(counter, key, strict=True)]
    for round_ in range(20):
        first, second = (1, 3) if round_ % 2 == 0 else (3, 1)
        for at, other, turn in ((0, first, TURNS[round_ % 8][0]), (2, second, TURNS[round_ % 8][1])):
            state[at] = (state[at] + state[other]) % 2**64
            state[other] = ((state[other] << turn) | (state[other] >> (64 - turn))) % 2**64 ^ state[at]
        if round_ % 4 == 3:
            times = round_ // 4 + 1
            state = [(word + keys[(times + place) % 5]) % 2**64 for place, word in enumerate(state)]
            state[3] = (state[3] + times) % 2**64
    return tuple(state)


WORD = st.integers(0, 2**64 - 1)


@given(st.tuples(WORD, WORD, WORD, WORD), st.tuples(WORD, WORD, WORD, WORD))
def test_threefry_agrees_with_its_definition(counter, key):
    ours = threefry.block(words(counter), words(key))
    assert tuple(int(word) for word in ours) == in_whole_numbers(counter, key)


@pytest.mark.parametrize("count", [6, 700])
def test_a_key_is_laid_out_in_the_generators_key_and_counter(count):
    key = key_of([5, -4], round=3, release=7, repetition=11, stream=2)
    drawn = Seeded(13).uniform(key, count)
    for row, party in zip(drawn, (5, 2**64 - 4), strict=True):
        for coordinate in range(count):
            counter = (coordinate // 4, (11 << 3) | threefry.UNIFORM, 0, 0)
            word = in_whole_numbers(counter, (13, party, 3, (2 << 32) | 7))[coordinate % 4]
            assert row[coordinate] == max(word >> 11, 0.5) * 2.0**-53


@given(*(st.tuples(*(st.sampled_from([0, 1, 2, 7, 8, 2**31, 2**32 - 1]) for _ in range(4))) for _ in range(2)))
def test_different_keys_have_different_counters(first, second):
    counters = [key_of([0], round=n[0], release=n[1], repetition=n[2], stream=n[3]).counter for n in (first, second)]
    assert (counters[0] == counters[1]) == (first == second)
    assert counters[0][2] % 8 == 0


# --- Seeded: the same noise in every cohort --------------------------------------------------------------------------


@given(
    parties=st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=12, unique=True),
    dim=st.integers(1, 9),
    cut=st.integers(0, 12),
    kind=st.sampled_from(DRAWS),
    shuffle=st.randoms(use_true_random=False),
)
def test_noise_does_not_depend_on_the_cohort(parties, dim, cut, kind, shuffle):
    sampler = Seeded(3)
    values = np.linspace(-2.0, 5.0, len(parties) * dim).reshape(len(parties), dim)
    scales = np.linspace(0.5, 2.0, len(parties))
    whole = draw(sampler, kind, values, scales, key_of(parties, round=4))
    order = list(range(len(parties)))
    shuffle.shuffle(order)
    for rows in (order[:cut], order[cut:]):
        if rows:
            part = draw(sampler, kind, values[rows], scales[rows], key_of(np.array(parties)[rows], round=4))
            assert part.tobytes() == whole[rows].tobytes()


@pytest.mark.parametrize("purpose", [threefry.GAUSSIAN, threefry.LAPLACE, threefry.GAMMA_NORM, threefry.UNIFORM])
def test_threads_do_not_change_a_bit(purpose, monkeypatch):
    parties, values = np.arange(700), np.random.default_rng(0).normal(size=(700, 13))
    arguments = (purpose, 5, parties, (1, 2, 8), values, np.linspace(0.0, 3.0, 700))
    monkeypatch.setattr("numba.config.NUMBA_NUM_THREADS", 3)
    alone = threefry.draw(*arguments, piece=2**60)
    together = threefry.draw(*arguments, piece=100)
    assert alone.tobytes() == together.tobytes()


def test_a_large_cohort_is_drawn_by_threads_and_equals_its_parts():
    parties = np.arange(threefry.PIECE // 4)
    values = np.zeros((parties.size, 8))
    whole = Seeded(1).gaussian(values, 1.0, key_of(parties), sensitivity=1.0)
    part = Seeded(1).gaussian(values[100:130], 1.0, key_of(parties[100:130]), sensitivity=1.0)
    assert whole[100:130].tobytes() == part.tobytes()


def test_equal_keys_repeat_and_every_part_of_a_key_matters():
    values = np.zeros((1, 20_000))
    base = {"round": 0, "release": 0, "repetition": 0, "stream": 0}
    first = Seeded(0).gaussian(values, 1.0, key_of([0], **base), sensitivity=1.0)
    assert first.tobytes() == Seeded(0).gaussian(values, 1.0, key_of([0], **base), sensitivity=1.0).tobytes()
    streams = [first, *(Seeded(seed).gaussian(values, 1.0, key_of([0]), sensitivity=1.0) for seed in (1, 2**63))]
    streams += [Seeded(0).gaussian(values, 1.0, key_of([party]), sensitivity=1.0) for party in (1, -1)]
    streams += [Seeded(0).gaussian(values, 1.0, key_of([0], **{**base, name: 1}), sensitivity=1.0) for name in base]
    streams.append(Seeded(0).laplace(values, 1.0, key_of([0]), sensitivity=1.0) / math.sqrt(2.0))
    rows = np.concatenate(streams)
    correlations = np.corrcoef(rows)[np.triu_indices(len(rows), 1)]
    lagged = np.array([np.corrcoef(row[:-1], row[1:])[0, 1] for row in rows])
    # 45 + 10 correlations, each nearly normal with variance 1/20000.
    bound = stats.norm.isf(FALSE_ALARM / 2 / 55) / math.sqrt(values.size)
    assert np.abs(correlations).max() < bound
    assert np.abs(lagged).max() < bound


# --- the laws --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dim", [1, 2, 3, 5])
def test_seeded_gaussian_is_standard_normal(dim):
    noise = Seeded(dim).gaussian(np.zeros((60_000, dim)), 1.0, key_of(range(60_000)), sensitivity=1.0)
    assert stats.kstest(noise.ravel(), "norm").pvalue > FALSE_ALARM
    deviate = stats.norm.isf(FALSE_ALARM / 2)
    count = noise.size
    assert abs(noise.mean()) < deviate / math.sqrt(count)
    assert abs((noise**2).mean() - 1.0) < deviate * math.sqrt(2.0 / count)
    assert abs((noise**4).mean() - 3.0) < deviate * math.sqrt(96.0 / count)


def box_muller(first, second):
    """Two normals from two words by the textbook, in the library's reading of the words: 64 bits of radius."""
    uniform = np.minimum(first.astype(np.float64) * 2.0**-64 + 2.0**-65, 1.0 - 2.0**-53)
    quadrant, fraction = second >> np.uint64(62), (second << np.uint64(2)) >> np.uint64(12)
    angle = np.pi / 2 * ((fraction.astype(np.float64) + 0.5) * 2.0**-52 - 0.5) + np.pi / 2 * quadrant
    radius = np.sqrt(-2.0 * np.log(uniform))
    return radius * np.cos(angle), radius * np.sin(angle)


def test_normals_are_those_of_box_and_muller_to_rounding():
    dim = 40_000
    drawn = Seeded(7).gaussian(np.zeros((1, dim)), 1.0, key_of([3], round=2), sensitivity=1.0)[0].reshape(-1, 4)
    counters = np.array([in_whole_numbers((b, threefry.GAUSSIAN, 0, 0), (7, 3, 2, 0)) for b in range(dim // 4)])
    counters = counters.astype(np.uint64)
    for place in (0, 2):
        expected = box_muller(counters[:, place], counters[:, place + 1])
        for normals, like in zip(drawn[:, place : place + 2].T, expected, strict=True):
            # The angle of the textbook formula is rounded; the library's is not, and its small normals are exact.
            np.testing.assert_allclose(normals, like, rtol=4e-15, atol=4e-15)


@pytest.mark.parametrize("word", [0, 1, 2**11, 2**53, 2**63, 2**64 - 2**11, 2**64 - 1])
def test_no_word_gives_a_normal_that_is_zero_or_infinite(word):
    words = np.array([word], dtype=np.uint64)
    for other in (0, 2**62, 2**63 - 1, 2**63, 2**64 - 1):
        pair = threefry._normals(words[0], np.uint64(other))
        assert all(np.isfinite(normal) and normal != 0.0 for normal in pair)
        np.testing.assert_allclose(
            pair, np.ravel(box_muller(words, np.array([other], dtype=np.uint64))), rtol=1e-14, atol=1e-14
        )
    # The longest radius: a 64-bit uniform reaches 9.5 standard deviations.
    assert math.hypot(*threefry._normals(np.uint64(0), np.uint64(123))) == pytest.approx(math.sqrt(130 * math.log(2)))


def test_the_tails_of_seeded_normals_are_those_of_the_law():
    """Counts beyond 1, 2, 3, 4 and 5 on both sides of 1.6e7 normals, each binomial: ten tests."""
    noise = Seeded(21).gaussian(np.zeros((250_000, 64)), 1.0, key_of(range(250_000)), sensitivity=1.0)
    for deviations in (1.0, 2.0, 3.0, 4.0, 5.0):
        for side in (noise > deviations, noise < -deviations):
            counted = stats.binomtest(int(side.sum()), noise.size, stats.norm.sf(deviations))
            assert counted.pvalue > FALSE_ALARM / 10
    # Under the law the largest of so many is below 8 but for a chance of 2e-8 and above 4.5 but for one of e^-54.
    assert 4.5 < np.abs(noise).max() < 8.0
    # Radii and angles of pairs are independent, and sums of squares of a row are chi-squared with 64 degrees.
    squares = (noise**2).sum(axis=1)
    assert stats.kstest(squares, "chi2", args=(64,)).pvalue > FALSE_ALARM
    pairs = noise[:20_000].reshape(-1, 2)
    assert stats.kstest(np.arctan2(pairs[:, 1], pairs[:, 0]) / (2 * np.pi) + 0.5, "uniform").pvalue > FALSE_ALARM
    assert stats.kstest((pairs**2).sum(axis=1), "chi2", args=(2,)).pvalue > FALSE_ALARM


def test_seeded_laplace_is_laplace():
    noise = Seeded(1).laplace(np.zeros((50_000, 3)), 2.5, key_of(range(50_000)), sensitivity=1.0)
    assert stats.kstest(noise.ravel() / 2.5, "laplace").pvalue > FALSE_ALARM
    assert abs(np.abs(noise).mean() / 2.5 - 1.0) < stats.norm.isf(FALSE_ALARM / 2) / math.sqrt(noise.size)


@pytest.mark.parametrize("dim", [1, 2, 7])
def test_seeded_gamma_norm_has_a_gamma_radius_and_a_uniform_direction(dim):
    count = 40_000
    noise = Seeded(2).gamma_norm(np.zeros((count, dim)), 0.7, key_of(range(count)), sensitivity=1.0)
    radius = np.linalg.norm(noise, axis=1)
    direction = noise / radius[:, None]
    assert stats.kstest(radius, "gamma", args=(dim, 0.0, 0.7)).pvalue > FALSE_ALARM
    deviate = stats.norm.isf(FALSE_ALARM / 2 / (2 * dim)) / math.sqrt(count)
    # E x_j = 0 and E x_j^2 = 1/dim on the sphere; both have a variance of at most 1/dim.
    assert np.abs(direction.mean(axis=0)).max() < deviate / math.sqrt(dim)
    if dim > 1:
        assert stats.kstest(direction[:, 0] ** 2, "beta", args=(0.5, (dim - 1) / 2)).pvalue > FALSE_ALARM
        assert np.abs([np.corrcoef(radius, axis)[0, 1] for axis in direction.T]).max() < deviate


def test_seeded_uniforms_fill_the_open_interval():
    uniforms = Seeded(4).uniform(key_of(range(1000)), 97)
    assert uniforms.shape == (1000, 97)
    assert uniforms.min() > 0.0
    assert uniforms.max() < 1.0
    assert stats.chisquare(np.histogram(uniforms, bins=200, range=(0.0, 1.0))[0]).pvalue > FALSE_ALARM


@pytest.mark.parametrize(("kind", "law"), [("gaussian", "norm"), ("laplace", "laplace")])
def test_safe_draws_the_law_it_states(kind, law):
    values = np.full((5, 4000), 3.25)
    noise = (draw(Safe(), kind, values, 0.8, key_of(range(5)), sensitivity=0.4) - values).ravel() / 0.8
    assert stats.kstest(noise, law).pvalue > FALSE_ALARM
    # The variance of x^2 is 2 for the normal, 24 - 4 for Laplace.
    second, spread = (1.0, 2.0) if kind == "gaussian" else (2.0, 20.0)
    assert abs((noise**2).mean() - second) < stats.norm.isf(FALSE_ALARM / 2) * math.sqrt(spread / noise.size)


def pmf(kind, scale, width):
    support = np.arange(-width, width + 1)
    weights = np.exp(-0.5 * (support / scale) ** 2) if kind == "gaussian" else np.exp(-np.abs(support) / scale)
    return support, weights / weights.sum()


@pytest.mark.parametrize("kind", ["gaussian", "laplace"])
@pytest.mark.parametrize("scale", [0.8, 2.3])
def test_the_discrete_samplers_are_exact(kind, scale):
    count = 30_000
    drawn = add_discrete(kind, np.zeros(count, dtype=np.int64), scale)
    support, law = pmf(kind, scale, 200)
    common = law * count > 20.0
    observed = np.array([(drawn == value).sum() for value in support[common]])
    observed = np.append(observed, count - observed.sum())
    expected = np.append(law[common], 1.0 - law[common].sum()) * count
    assert stats.chisquare(observed, expected).pvalue > FALSE_ALARM


@pytest.mark.parametrize(("shift", "scale"), [(1.0, 3.0), (5.0, 2.0**37 * 1.3), (2.0**37, 2.0**45)])
def test_opendp_states_the_same_cost_for_its_noise(shift, scale):
    assert _measurement("gaussian", scale).map(shift) == pytest.approx(shift**2 / (2.0 * scale**2), rel=1e-12)
    assert _measurement("laplace", scale).map(int(shift)) == pytest.approx(shift / scale, rel=1e-12)


# --- Safe: what is proved, in numbers --------------------------------------------------------------------------------


def hockey_stick(law, shift, epsilons):
    """sum_k max(P(k) - e^eps P(k - shift), 0) on a window that is wide enough."""
    moved = np.concatenate([np.zeros(shift), law[:-shift]])
    return np.array([np.maximum(law - math.exp(eps) * moved, 0.0).sum() for eps in epsilons])


def laplace_delta(ratio, epsilons):
    return np.maximum(1.0 - np.exp((epsilons - ratio) / 2.0), 0.0)


@pytest.mark.parametrize("scale", [0.2, 1.0, 3.7, 25.0])
@pytest.mark.parametrize("shift", [1, 2, 9])
def test_laplace_of_the_event_dominates_what_is_drawn(scale, shift):
    epsilons = np.linspace(0.0, 1.2 * shift / scale, 60)
    _, law = pmf("laplace", scale_to_draw("laplace", scale), 1500)
    stated = laplace_delta(shift / scale, epsilons)
    assert (hockey_stick(law, shift, epsilons) <= stated + 1e-13).all()


def test_a_discrete_laplace_of_the_same_scale_is_not_dominated():
    # So the quarter of a step is needed, and the test above can fail.
    epsilons = np.linspace(0.0, 1.0, 60)
    _, law = pmf("laplace", 1.0, 1500)
    assert (hockey_stick(law, 1, epsilons) - laplace_delta(1.0, epsilons)).max() > 0.05


def gaussian_delta(ratio, epsilons):
    return stats.norm.cdf(ratio / 2 - epsilons / ratio) - np.exp(epsilons) * stats.norm.cdf(
        -ratio / 2 - epsilons / ratio
    )


@pytest.mark.parametrize("scale", [0.5, 4.0, 30.0])
@pytest.mark.parametrize("shift", [1, 3, 20])
def test_gaussian_of_the_event_dominates_what_is_drawn(scale, shift):
    epsilons = np.linspace(0.0, 3.0, 40)
    _, law = pmf("gaussian", scale_to_draw("gaussian", scale), 2000)
    assert (hockey_stick(law, shift, epsilons) <= gaussian_delta(shift / scale, epsilons) + 1e-13).all()


def smoothed(std, smoothing, mean, support):
    """The pmf of N(mean, std^2) after the random map of the proof, by the trapezoidal rule."""
    points = np.arange(support[0] - 10.0, support[-1] + 10.0, 1.0 / 256.0)
    map_weights = np.exp(-0.5 * ((support[:, None] - points) / smoothing) ** 2)
    everywhere = np.arange(support[0] - 30, support[-1] + 31)
    normaliser = np.exp(-0.5 * ((everywhere[:, None] - points) / smoothing) ** 2).sum(axis=0)
    return (map_weights / normaliser * stats.norm.pdf(points, mean, std)).sum(axis=1) / 256.0


@pytest.mark.sweep
@pytest.mark.parametrize("smoothing", [0.35, 0.45, 0.6])
@pytest.mark.parametrize("std", [0.7, 2.5])
@pytest.mark.parametrize("mean", [0, 3])
def test_total_variation_of_the_smoothed_gaussian_is_within_its_bound(smoothing, std, mean):
    support = np.arange(-40, 41)
    law = np.exp(-0.5 * (support - mean) ** 2 / (std**2 + smoothing**2))
    law /= law.sum()
    drawn = smoothed(std, smoothing, mean, support)
    assert 0.5 * np.abs(drawn - law).sum() <= smoothing_excess(smoothing)


def test_the_smoothing_is_part_of_the_variance():
    # Without it the law that is drawn would lie outside the bound, so the test above can fail.
    support, law = pmf("gaussian", 2.5, 40)
    assert 0.5 * np.abs(smoothed(2.5, 0.6, 0, support) - law).sum() > 5.0 * smoothing_excess(0.6)


@pytest.mark.parametrize("variance", [0.4, 0.8])
def test_shares_add_up_to_a_discrete_gaussian(variance):
    _, share = pmf("gaussian", math.sqrt(variance), 60)
    total, bound = share, 1.0
    for count in range(2, 6):
        total = np.convolve(total, share)
        harmonic = variance * (count - 1) / count
        eta = 2.0 * math.exp(-2.0 * math.pi**2 * harmonic) / (1.0 - math.exp(-6.0 * math.pi**2 * harmonic))
        bound *= ((1.0 + eta) / (1.0 - eta)) ** 2
        _, law = pmf("gaussian", math.sqrt(count * variance), 60 * count)
        middle = law > 1e-12
        assert (np.abs(np.log(total[middle] / law[middle])) <= math.log(bound) + 1e-9).all()
    # The slack of a tenth covers 2^64 shares at the smallest scale that a grid allows, c >= 2^10: in logarithms.
    assert 64 * math.log(2.0) + math.log(8.0) - math.pi**2 * 2.0**20 < math.log(0.1 * smoothing_excess(SMOOTHING))


def test_the_random_map_stays_near_its_argument():
    # P(|j - x| > r) for the worst x, by direct summation, against a part in a million of the excess: in logarithms.
    radius = Safe().displacement(1.0, 1.0, 1) / (Safe().widening(1.0, 1.0, 1, 2) * 2.0)
    far = np.arange(math.floor(radius), math.floor(radius) + 400)
    log_weights = -0.5 * (far / SMOOTHING) ** 2
    log_tail = np.logaddexp.reduce(log_weights) + math.log(2.0 / (SMOOTHING * math.sqrt(2.0 * math.pi)))
    assert log_tail < math.log(smoothing_excess(SMOOTHING)) - math.log(1e6)
    assert Safe().displacement(2.0, 1.0, 9) == pytest.approx(3.0 * Safe().displacement(2.0, 1.0, 1))
    assert Seeded(0).displacement(1.0, 1.0, 9) == 0.0


def test_the_excess_is_negligible_and_grows_with_the_entries():
    safe = Safe()
    assert 0.0 < safe.excess(1.0, 1.0, 10**6, "gaussian") < 1e-200
    assert safe.excess(1.0, 1.0, 20, "gaussian") == pytest.approx(20 * safe.excess(1.0, 1.0, 1, "gaussian"))
    assert safe.excess(1.0, 1.0, 20, "laplace") == 0.0
    assert safe.excess(0.0, 1.0, 20, "gaussian") == 0.0
    assert Seeded(0).excess(1.0, 1.0, 20, "gaussian") == 0.0


# --- Safe: the grid --------------------------------------------------------------------------------------------------

SIZE = st.floats(1e-6, 1e6)


@given(sensitivity=SIZE, multiplier=st.floats(1e-3, 1e3), dim=st.integers(1, 20_000))
def test_the_grid_is_a_fine_power_of_two_with_room_for_large_values(sensitivity, multiplier, dim):
    safe, scale = Safe(), multiplier * sensitivity
    step = safe.grid(scale, sensitivity, dim)
    assert math.frexp(step)[0] == 0.5
    assert safe.widening(scale, sensitivity, dim, 2) >= math.sqrt(dim) * step / 2
    assert safe.widening(scale, sensitivity, dim, 1) >= dim * step / 2
    assert safe.widening(scale, sensitivity, dim, 1) <= 1e-6 * sensitivity
    assert safe.widening(scale, sensitivity, 10**6, 2) <= 1e-7 * sensitivity
    assert safe.reach(scale, sensitivity, dim) > 1e7 * sensitivity
    # The noise is never narrower than stated, and not visibly wider.
    stated = scale / step
    assert math.hypot(stated, SMOOTHING) < scale_to_draw("gaussian", stated) < stated * (1 + 1e-8)
    assert stated + 0.25 < scale_to_draw("laplace", stated) < stated * (1 + 1e-8)
    # Values of 2^15 sensitivities with noise of a hundred scales are whole numbers that a double holds.
    assert 2.0**15 * sensitivity / step + 100.0 * scale_to_draw("gaussian", stated) < 2.0**53


@given(sensitivity=SIZE, factor=SIZE, multiplier=st.floats(1e-9, 1e6))
def test_the_cost_of_rounding_depends_on_the_multiplier_alone(sensitivity, factor, multiplier):
    safe = Safe()
    small = safe.widening(multiplier * sensitivity, sensitivity, 7, 2) / sensitivity
    large = safe.widening(multiplier * sensitivity * factor, sensitivity * factor, 7, 2) / (sensitivity * factor)
    assert small == pytest.approx(large, rel=1e-12)


@pytest.mark.parametrize("kind", ["gaussian", "laplace"])
def test_safe_releases_lie_on_the_grid(kind):
    rng = np.random.default_rng(0)
    values = rng.normal(size=(4, 50)) * 10.0 ** rng.uniform(-20, 5, size=(4, 50))
    scales, sensitivities = np.array([0.1, 0.1, 7.0, 123.4]), np.array([1.0, 1.0, 1.0, 0.02])
    released = draw(Safe(), kind, values, scales, key_of(range(4)), sensitivity=sensitivities)
    assert (released != values).all()
    for row, scale, sensitivity in zip(released, scales, sensitivities, strict=True):
        steps = row / Safe().grid(scale, sensitivity, 50)
        assert (steps == np.rint(steps)).all()


def test_safe_scales_are_those_of_each_party():
    values, scales = np.zeros((6, 3000)), np.array([1.0, 5.0, 0.0, 5.0, 1.0, 0.3])
    noise = Safe().gaussian(values, scales, key_of(range(6)), sensitivity=1.0)
    assert (noise[2] == 0.0).all()
    drawn = np.delete(noise, 2, axis=0) / np.delete(scales, 2)[:, None]
    deviate = stats.norm.isf(FALSE_ALARM / 2 / 5) * math.sqrt(2.0 / 3000)
    assert (np.abs((drawn**2).mean(axis=1) - 1.0) < deviate).all()


def test_seeded_scales_are_those_of_each_party():
    scales = np.array([0.0, 1e-3, 1.0, 1e3])
    noise = Seeded(9).gaussian(np.ones((4, 10)), scales, key_of(range(4)), sensitivity=1.0) - 1.0
    unit = Seeded(9).gaussian(np.zeros((4, 10)), 1.0, key_of(range(4)), sensitivity=1.0)
    np.testing.assert_allclose(noise, scales[:, None] * unit, rtol=1e-12, atol=1e-15)


def test_values_beyond_the_reach_are_clamped_not_wrapped():
    safe = Safe()
    reach = safe.reach(1.0, 1.0, 3)
    released = safe.gaussian(np.array([[1e300, -1e300, 2.0 * reach]]), 1.0, key_of([0]), sensitivity=1.0)
    # A normal exceeds 8 with probability 1.2e-15.
    np.testing.assert_allclose(released, [[reach, -reach, reach]], rtol=0.0, atol=8.0)
    assert np.isfinite(released).all()


def test_safe_noise_is_fresh_and_ignores_the_key():
    values = np.zeros((1, 64))
    first, second = (Safe().gaussian(values, 1.0, key_of([0]), sensitivity=1.0) for _ in range(2))
    assert (first != second).all()


def test_forked_processes_do_not_share_noise():
    script = """
import os
import numpy as np
from consenso.privacy.samplers import Key, Safe
key, values = Key(parties=np.array([0]), round=0, release=0, repetition=0), np.zeros((1, 4))
Safe().gaussian(values, 1.0, key, sensitivity=1.0)
reader, writer = os.pipe()
if os.fork() == 0:
    os.write(writer, Safe().gaussian(values, 1.0, key, sensitivity=1.0).tobytes())
    os._exit(0)
os.wait()
assert os.read(reader, 32) != Safe().gaussian(values, 1.0, key, sensitivity=1.0).tobytes()
"""
    subprocess.run([sys.executable, "-c", script], check=True)


# --- what is refused -------------------------------------------------------------------------------------------------


def test_safe_takes_no_seed():
    with pytest.raises(PrivacyError, match="no seed is taken"):
        Safe(seed=3)
    with pytest.raises(TypeError):
        Safe(3)


def test_a_missing_opendp_is_named(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(InputError, match=r"pip install 'consenso\[safe\]'"):
        Safe()


def test_safe_has_no_gamma_norm():
    with pytest.raises(PreconditionError, match="simulation only"):
        Safe().gamma_norm(np.zeros((1, 2)), 1.0, key_of([0]), sensitivity=1.0)
    with pytest.raises(PreconditionError, match="simulation only"):
        Safe().excess(1.0, 1.0, 2, "gamma-norm")


@pytest.mark.parametrize("sampler", [Seeded(0), Safe()], ids=["seeded", "safe"])
@pytest.mark.parametrize("kind", ["gaussian", "laplace"])
def test_bad_values_and_scales_are_refused(sampler, kind):
    for value in (math.nan, math.inf, -math.inf):
        with pytest.raises(InputError, match="NaN or infinity"):
            draw(sampler, kind, np.array([[0.0, value]]), 1.0, key_of([0]))
    for scale in (-1.0, math.nan, math.inf):
        with pytest.raises(InputError, match="at least 0"):
            draw(sampler, kind, np.zeros((1, 2)), scale, key_of([0]))
    with pytest.raises(InputError, match="a row for each of the 2 parties"):
        draw(sampler, kind, np.zeros((3, 2)), 1.0, key_of([0, 1]))
    with pytest.raises(InputError, match="a row for each of the 2 parties"):
        draw(sampler, kind, np.zeros(2), 1.0, key_of([0, 1]))
    with pytest.raises(InputError, match="one for each of 2 parties"):
        draw(sampler, kind, np.zeros((2, 2)), np.ones(3), key_of([0, 1]))


def test_safe_refuses_scales_that_doubles_cannot_hold():
    for scale in (1e-300, 1e300):
        with pytest.raises(InputError, match="rescale"):
            Safe().gaussian(np.zeros((1, 1)), scale, key_of([0]), sensitivity=scale)


@pytest.mark.parametrize(
    "change",
    [
        {"round": -1},
        {"release": 2**32},
        {"stream": True},
        {"repetition": 2**60},
        {"round": 1.0},
        {"parties": [1, 2, 1]},
    ],
)
def test_bad_keys_are_refused(change):
    arguments = {"parties": [0], "round": 0, "release": 0, "repetition": 0, **change}
    with pytest.raises(InputError, match=next(iter(change))):
        key_of(**arguments)


@pytest.mark.parametrize("parties", [np.zeros((1, 1), dtype=np.int64), np.array([0.0])])
def test_parties_are_a_list_of_integers(parties):
    with pytest.raises(InputError, match="signed integers"):
        Key(parties=parties, round=0, release=0, repetition=0)


@pytest.mark.parametrize("seed", [-1, 2**64, 1.5, "1", True])
def test_bad_seeds_are_refused(seed):
    with pytest.raises(InputError, match="seed"):
        Seeded(seed)


def test_a_seed_is_not_shown():
    assert "8675309" not in repr(Seeded(8675309))


def test_the_card_tells_the_samplers_apart():
    assert Safe().private
    assert "OpenDP 0.16" in Safe().name
    assert not Seeded(0).private
    assert "not private" in Seeded(0).name


def test_empty_cohorts_are_empty():
    for sampler in (Seeded(0), Safe()):
        assert sampler.gaussian(np.zeros((0, 3)), 1.0, key_of([]), sensitivity=1.0).shape == (0, 3)
        assert sampler.gaussian(np.zeros((2, 0)), 1.0, key_of([0, 1]), sensitivity=1.0).shape == (2, 0)


def test_importing_the_samplers_loads_neither_numba_nor_opendp():
    script = "import sys, consenso.privacy.noise; assert not {'numba', 'opendp', 'scipy'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", script], check=True)
