"""Laplace perturbation of linearised subproblems (DP-IADMM): global 1-norm sensitivities and the total of a run."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Literal

from consenso.conventions import Unit
from consenso.privacy.events import Adjacency, Event, Laplace, repeat
from consenso.privacy.theorems.preconditions import require, require_count, require_positive
from consenso.privacy.theorems.theorem import GAUSSIAN_RUN, Assumption


def softmax_gradient_gap(*, row_bound_1: float, records: int, adjacency: Adjacency, labels_only: bool = False) -> float:
    """1-norm by which one record moves the mean softmax gradient, for rows of 1-norm at most `row_bound_1`.

    A record's gradient x (h - y)' has 1-norm |x|_1 2 (1 - h_y). Replacing only a label moves it by 2 |x|_1.
    """
    require_positive("softmax_gradient_gap", row_bound_1=row_bound_1)
    require_count("softmax_gradient_gap", records=records)
    worlds = 1 if adjacency == "add-remove" or labels_only else 2
    return worlds * 2 * row_bound_1 / records


def softmax_gradient_gap_2(*, row_bound: float, records: int, adjacency: Adjacency) -> float:
    """2-norm by which one record moves the mean softmax gradient, for rows of 2-norm at most `row_bound`."""
    require_positive("softmax_gradient_gap_2", row_bound=row_bound)
    require_count("softmax_gradient_gap_2", records=records)
    return (1 if adjacency == "add-remove" else 2) * math.sqrt(2) * row_bound / records


def row_bound_1(*, features: int, row_bound: float | None = None, entry_bound: float | None = None) -> float:
    """1-norm of rows with `features` entries, of 2-norm at most `row_bound` or each entry at most `entry_bound`."""
    bounds = [math.sqrt(features) * row_bound] if row_bound is not None else []
    bounds += [features * entry_bound] if entry_bound is not None else []
    require(
        bool(bounds),
        "row_bound_1(row_bound=None, entry_bound=None): rows must be bounded; give a 2-norm or a bound on every entry.",
    )
    return min(bounds)


@dataclass(frozen=True, kw_only=True)
class LaplaceTotal:
    """`iterations` uses of independent Laplace(scale) noise on values whose 1-norm moves by at most `sensitivity`.

    Subproblems, trust regions, duals and consensus are post-processing. Count every release: a loop that also releases
    before its first step has one more.
    """

    citation: ClassVar[str] = "Ryu and Kim, DP-IADMM, with a global sensitivity; Mironov 2017 for the total"
    section: ClassVar[str] = "laplace-iterations"

    scale: float
    sensitivity: float
    iterations: int
    adjacency: Adjacency = "replace-one"
    unit: Unit = "record"
    scale_from: Literal["public", "data"] = "public"

    def __post_init__(self) -> None:
        require_positive("LaplaceTotal", scale=self.scale, sensitivity=self.sensitivity)
        require_count("LaplaceTotal", iterations=self.iterations)
        require(
            self.scale_from == "public",
            "LaplaceTotal(scale_from='data'): a noise scale measured on the records tells them apart by itself; use a "
            "global bound such as softmax_gradient_gap.",
        )

    def event(self) -> Event:
        """One Laplace mechanism per iteration."""
        return repeat(Laplace(self.scale, self.sensitivity), self.iterations)

    def assumptions(self) -> tuple[Assumption, ...]:
        """Enforced bounds on rows and disjoint agents."""
        return (
            Assumption("The bound on rows is enforced by clipping them, and is not measured.", "laplace-iterations"),
            Assumption("Agents hold disjoint data, so that they compose in parallel.", "laplace-iterations"),
            *GAUSSIAN_RUN,
        )
