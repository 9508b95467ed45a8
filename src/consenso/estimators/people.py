"""People with several rows: what each of them may add, and the weights that keep to it (docs/privacy.md#people).

    n_i   rows of person i, of which k_i = min(n_i, KEPT * cap) are kept, evenly spaced in their order
    w_i   weight of each kept row, min(n_i, cap) / (cap k_i), rounded down: at most 1 together

With cap = 1 every person counts the same. A larger cap lets people with more rows count more, up to the cap, and those
with fewer count less. All rows are used, with less weight, where dropping would leave `cap` of them: the expected sum
is the same and its noise over the draw of rows is smaller, at the same bound. A cap that is left out is chosen from
noisy numbers of people by how many rows they have.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from consenso.arrays import Array, IntArray
from consenso.errors import InputError, name_row
from consenso.estimators.privacy_params import PrivacyParams
from consenso.estimators.reading import say_more
from consenso.estimators.stages import Stages

# Rows of a person that are kept, for each row of the cap: more add cost and rounding, and say little that is new.
KEPT = 64
# Weights are multiples of this: sums of them are exact, and those of a person are never above 1.
GRID = 2.0**-30
# Caps that are tried, and the squared budget that the choice costs.
CAPS = 2.0 ** np.arange(6)
CAP_SHARE = 0.01


@dataclass(frozen=True, kw_only=True, eq=False)
class RowWeights:
    """Weights of rows: those of one unit are at most the problem's weight_bound together.

    values: (rows,). contributions: the same before classes or records were given weights, at most 1 together for a
    unit; None where every row is a unit of its own. units: how many there are, which is private under add-remove.
    """

    values: Array
    contributions: Array | None
    units: int


@dataclass(frozen=True, kw_only=True, eq=False)
class People:
    """Which rows are kept, the weight of each of those, and how many people there are."""

    kept: IntArray
    contributions: Array
    count: int

    def weights(self) -> RowWeights:
        """Of the rows that are kept."""
        return RowWeights(values=self.contributions, contributions=self.contributions, units=self.count)

    def spread(self, rows: int) -> Array:
        """Weights of all rows, (rows,): 0 for those that are not kept."""
        weights = np.zeros(rows)
        weights[self.kept] = self.contributions
        return weights


def read_people(owner: str, users: Any, rows: int, cap: int) -> People:
    """People from one id a row: whole numbers or texts. No id leaves, not even in an error."""
    check_cap(owner, cap, users)
    return weigh_people(read_ids(f"{owner}.fit", users, rows), int(cap))


def check_cap(owner: str, cap: Any, users: Any) -> None:
    """A cap is a public number, of the rows of a person, or None."""
    if cap is None:
        return
    if users is None:
        raise InputError(
            f"{owner}.fit(rows_per_person={cap!r}, users=None): a cap is on the rows of a person, and nobody said "
            "whose rows these are; pass users=, an id for each row, or leave the cap out."
        )
    if isinstance(cap, bool) or not isinstance(cap, int | np.integer) or cap < 1:
        raise InputError(
            f"{owner}.fit(rows_per_person={cap!r}): a public cap on rows is a whole number above 0; leave it out to "
            "have it chosen within the budget."
        )


def read_ids(call: str, users: Any, rows: int) -> IntArray:
    """The number of the person of each row, (rows,), from one id a row. call: the function that an error names."""
    if isinstance(users, str):
        raise InputError(
            f"{call}(users={users!r}): ids of rows in memory are given themselves: users=frame[{users!r}]."
        )
    ids = users.to_numpy() if hasattr(users, "to_numpy") else np.asarray(users)
    if ids.shape != (rows,):
        raise InputError(
            f"{call}(users=...): one id for each of the {rows} rows is needed, along one axis, and the shape is "
            f"{ids.shape}."
        )
    # A column of whole numbers with missing ones is read as floating-point numbers.
    gone: list[int] = np.flatnonzero(np.isnan(ids)).tolist() if ids.dtype.kind == "f" else []
    if ids.dtype.kind in "OUST":
        texts = enumerate(ids.tolist())
        gone = [place for place, one in texts if not _is_id(one)]
    if gone:
        raise InputError(
            f"{call}(users=...): {name_row(gone[0])}{say_more(len(gone))} has no id; every id is a whole number or a "
            "text that is not empty, so drop such rows or give each its own id."
        )
    if ids.dtype.kind not in "iuOUST":
        raise InputError(f"{call}(users=...): ids are whole numbers or texts, and these are {ids.dtype}; convert them.")
    _, person = np.unique(ids.astype(str) if ids.dtype.kind == "O" else ids, return_inverse=True)
    return person.reshape(-1)


def _is_id(given: Any) -> bool:
    """Whether a cell of a list or a column of mixed types is an id."""
    return isinstance(given, int | np.integer | str) and not isinstance(given, bool) and given != ""


def choose_cap(person: IntArray, columns: int, stages: Stages) -> tuple[int, str]:
    """The cap of the least expected error of a mean gradient, and a sentence.

    In units of what a row can add, spread over the columns, a sum over rows has the variance sum w_i^2 / (n_i columns)
    over the draw of rows (person i having the weight w_i over all n_i of them) and that of the noise of one release,
    while it grows like sum w_i. A cap of 1 has the least noise over that, larger caps waste fewer rows. Where noise is
    the larger part even if everybody had one row, nothing is asked: the cap is 1.
    """
    terms = stages.terms
    noise = (1.0 if terms.adjacency == "add-remove" else 2.0) / terms.mu
    if not pays_for_cap(terms, columns):
        return 1, "Everybody counts once: noise outweighs what more rows of a person could tell."
    many = np.bincount(person)
    place = np.searchsorted(CAPS, many)  # 1, 2, 3 to 4, ...
    counts = np.bincount(np.minimum(place, len(CAPS)), minlength=len(CAPS) + 1).astype(np.float64)
    told = {"name": "numbers of people by rows", "add_remove": 1.0, "replace_one": math.sqrt(2.0)}
    noisy = stages.release(stages.plan(CAP_SHARE, size=len(counts), **told), 0, counts)
    people, own = np.maximum(noisy, 0.0), np.append(CAPS, 2.0 * CAPS[-1])
    weights = np.minimum(own, CAPS[:, None]) / CAPS[:, None]  # (caps, bins)
    errors = (weights**2 / own @ people / columns + noise**2) / np.maximum(weights @ people, 1.0) ** 2
    cap = int(CAPS[int(np.argmin(errors))])
    return cap, (
        f"A person counts as many times as rows, at most {cap}; rows of those with more weigh less. The cap was chosen "
        f"for {CAP_SHARE:.0%} of the squared budget."
    )


def pays_for_cap(terms: PrivacyParams, columns: int) -> bool:
    """Whether rows could tell more than noise hides, by public facts; a number of people that is private is none."""
    worlds = 1.0 if terms.adjacency == "add-remove" else 2.0
    return terms.is_private and not terms.counts and terms.records / columns > (worlds / terms.whole_mu) ** 2


def weigh_people(person: IntArray, cap: int) -> People:
    """Which rows are kept, and their weights. person: the number of the person of each row, (rows,)."""
    many = np.bincount(person)
    order = np.argsort(person, kind="stable")
    starts = np.cumsum(many) - many
    most = KEPT * cap
    # Row j of n is kept if another multiple of n/most begins in it: evenly spaced, and all where n is small.
    place = np.arange(len(person)) - np.repeat(starts, many)
    of = np.repeat(many, many)
    kept = (place * most) // of != ((place - 1) * most) // of
    chosen = np.sort(order[kept])
    own = many[person[chosen]]
    weights = np.minimum(own, cap) / (cap * np.minimum(own, most))
    # A billionth less, for the rounding of what is multiplied with it.
    return People(kept=chosen, contributions=np.floor(weights * (1 - GRID) / GRID) * GRID, count=len(many))
