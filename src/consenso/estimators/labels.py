"""Which labels there are: public where the type says so or they were declared, else released (docs/privacy.md#labels).

    truth values     False and True, by their type
    public pairs     0 and 1, -1 and 1, "no" and "yes", ...: only noisy numbers of their records are released
    all others       a label is told if its noisy number of records is above a level that a label of one unit alone
                     passes with a probability of `Earlier.tells`

Where only one label is told, and it is of a public pair, both of the pair are classes: a rare class is not lost in
noise. Records whose label is not told count as records of the most frequent class, in later fits that keep the labels,
too: refusing such a record would tell that it is there.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from consenso.arrays import Array, IntArray
from consenso.errors import InputError, name_row
from consenso.estimators.privacy_params import PrivacyParams
from consenso.estimators.stages import Stages

# Of the squared budget. At epsilon 1 and delta 1e-5 a number of records has a standard deviation of 24, and a label
# that is no candidate is told from about 160 records on.
LABELS_SHARE = 0.05
# Of delta: that a label which only one unit has is told. Ten times less moves the level by a tenth.
TELLS_SHARE = 0.01
# More labels than any table has rows. A smaller limit would have to be checked, and whether labels pass it is private.
MOST_LABELS = 2**31
# Labels that everybody can think of, by two: numbers, and texts.
NUMBERS: tuple[tuple[Any, Any], ...] = ((0, 1), (-1, 1))
_WORDS = (("no", "yes"), ("n", "y"), ("false", "true"), ("f", "t"), ("negative", "positive"), ("neg", "pos"))
TEXTS = (
    *((write(one), write(other)) for one, other in _WORDS for write in (str.lower, str.capitalize, str.upper)),
    ("0", "1"),
    ("-1", "1"),
)
# How often chance alone tells a candidate that no record has.
FALSE_ALARM = 1 / 250
# The tail of a discrete law is that of the continuous one a step of its grid further in, which is far less than this.
_ROOM = 1e-3
_NAME = "numbers of records of labels"


class LabelsError(InputError):
    """Labels that were found, and paid for, do not allow the fit.

    classes: those that were told, which are public from now on and can be declared without paying for them again.
    """

    def __init__(self, message: str, classes: NDArray[Any]) -> None:
        super().__init__(message)
        self.classes = classes

    def __reduce__(self) -> tuple[type[LabelsError], tuple[str, NDArray[Any]]]:
        return type(self), (str(self), self.classes)


@dataclass(frozen=True, kw_only=True, eq=False)
class Labels:
    """The classes in the order of scores, (classes,), and the place of each row's label among them, (rows,).

    others: the class as which all other labels count; None where those are refused.
    """

    classes: NDArray[Any]
    codes: IntArray
    others: Any = None

    @property
    def targets(self) -> NDArray[Any]:
        """What a loss of margins takes: -1 and 1, or the places."""
        return np.where(self.codes == 1, 1.0, -1.0) if len(self.classes) == 2 else self.codes.astype(np.int64)

    def keep(self, rows: IntArray | slice) -> Labels:
        """Those of some rows."""
        return replace(self, codes=self.codes[rows])


def encode_labels(owner: str, y: NDArray[Any], declared: NDArray[Any] | None, others: Any = None) -> Labels:
    """Labels among the declared ones; among those that occur where nothing is declared. others: as in Labels."""
    seen, codes = np.unique(y, return_inverse=True)
    classes = seen if declared is None else np.unique(declared)
    if len(classes) < 2:
        raise InputError(
            f"{owner}.fit(y=...): labels of at least two classes are needed, and y has one class only; give records of "
            "others, or declare all with classes=[...]."
        )
    if declared is not None:
        place = {label: position for position, label in enumerate(classes.tolist())}
        strange = [label not in place for label in seen.tolist()]
        if any(strange) and others is None:
            row = int(np.argmax(np.isin(codes.reshape(-1), np.flatnonzero(strange))))
            raise InputError(
                f"{owner}.fit(y=...): y has labels that are not among classes={classes.tolist()}, the first in "
                f"{name_row(row)}; declare every label that may occur."
            )
        codes = np.array([place.get(label, place.get(others)) for label in seen.tolist()])[codes]
    return Labels(classes=classes, codes=codes.reshape(-1), others=others)


def are_public(y: NDArray[Any]) -> bool:
    """Whether the type of labels says which there can be."""
    return y.dtype.kind == "b"


def read_by_type(y: NDArray[Any]) -> Labels:
    """Truth values: both are classes, whichever occur."""
    return Labels(classes=np.array([False, True]), codes=y.astype(np.int64))


def prepare_terms(terms: PrivacyParams) -> PrivacyParams:
    """Terms that set aside what telling labels costs of delta."""
    return replace(terms, tells=TELLS_SHARE * terms.delta)


def find_labels(y: NDArray[Any], stages: Stages, own: Array | None) -> tuple[Labels, str]:
    """Release which labels there are, for LABELS_SHARE of the squared budget; and a sentence that says what was found.

    own: what each row counts where a unit has several, at most 1 together, (rows,).
    """
    terms = stages.terms
    seen, codes = np.unique(_write_alike(y), return_inverse=True)
    pairs = _public_pairs(seen)
    candidates = np.unique(pairs)
    names = np.union1d(seen, candidates)
    place = np.searchsorted(names, seen)[codes.reshape(-1)]
    counts = np.bincount(place, own, minlength=len(names)).astype(np.float64)
    planned = stages.plan(
        LABELS_SHARE,
        name=_NAME,
        add_remove=1.0,
        replace_one=math.sqrt(2.0),
        size=MOST_LABELS,
        tells=terms.tells,
    )
    noisy = stages.release(planned, 0, counts)
    scale = planned.scale(terms.adjacency)
    is_candidate = np.isin(names, candidates)
    clear = -float(special.ndtri(FALSE_ALARM / len(candidates))) * scale
    enough = telling_count(scale, terms.tells, 2 * terms.rows_per_unit)
    told = noisy > np.where(is_candidate, clear, enough)
    classes = _forget_lengths(_complete(names, noisy, told, pairs))
    if len(classes) < 2:
        many = "people" if terms.unit == "person" else "records"
        raise LabelsError(
            f"{terms.owner}.fit(y=...): fewer than two labels have so many {many}, about {enough:.0f} each, that "
            "they can be told within this budget, which is spent; pass classes=[...], all labels there can be, or take "
            "a regressor if these are measurements.",
            classes,
        )
    common = int(np.argmax(np.where(np.isin(names, classes), noisy, -np.inf)))
    found = np.searchsorted(classes, np.where(np.isin(names, classes), names, names[common]))
    note = (
        f"No classes were given: {len(classes)} labels were found for {LABELS_SHARE:.0%} of the squared budget; "
        "records with others count as records of the most frequent one."
    )
    return Labels(classes=classes, codes=found[place], others=names.tolist()[common]), note


def _write_alike(y: NDArray[Any]) -> NDArray[Any]:
    """Labels of which equal ones have the same bits: the ones that are told are taken from the cell of one record.

    Zero has two signs, and a text may be of a type of its own.
    """
    if y.dtype.kind == "f":
        positive: NDArray[Any] = y + y.dtype.type(0)
        return positive
    return np.array([str.__str__(one) for one in y], dtype=object) if y.dtype.kind == "O" else y


def _forget_lengths(classes: NDArray[Any]) -> NDArray[Any]:
    """The labels in a type of their own: that of texts is as long as the longest label of the table, told or not."""
    return np.array(classes.tolist(), dtype=classes.dtype.kind) if classes.dtype.kind in "US" else classes


def telling_count(scale: float, tells: float, most: int) -> float:
    """A noisy count above which a label is told: one of a single unit passes with a probability of `tells` at most.

    most: labels that one unit can have, in both worlds together.
    """
    return 1.0 + scale * (_ROOM - float(special.ndtri(tells / most)))


def _public_pairs(seen: NDArray[Any]) -> NDArray[Any]:
    """The pairs of labels that everybody can think of, in the type of the labels, (pairs, 2)."""
    kind = seen.dtype.kind
    if kind in "iuf":
        return np.array([pair for pair in NUMBERS if kind != "u" or min(pair) >= 0], dtype=seen.dtype)
    # Not in the type of the labels itself, which is as long as the longest label of the table.
    return np.array(TEXTS, dtype=kind)


def _complete(names: NDArray[Any], noisy: Array, told: NDArray[np.bool_], pairs: NDArray[Any]) -> NDArray[Any]:
    """The labels that were told; both of a public pair where only one of it is.

    Where no number is told they are the most frequent candidate and its partner; texts may be any.
    """
    found = names[told]
    counts = dict(zip(names.tolist(), noisy.tolist(), strict=True))
    if not len(found) and pairs.dtype.kind in "iuf":
        found = np.array([max(pairs.ravel(), key=lambda one: counts[one])])
    if len(found) != 1 or found[0] not in pairs:
        return found
    others = [other for pair in pairs.tolist() if found[0] in pair for other in pair if other != found[0]]
    return np.unique(np.array([found[0], max(others, key=lambda one: counts[one])], dtype=names.dtype))
