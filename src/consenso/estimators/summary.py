"""A table of coefficients with their uncertainty: text for a terminal, HTML for a notebook."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape

from scipy.special import ndtr

from consenso.arrays import Array
from consenso.estimators.uncertainty import Estimate, reach_of

WIDTH = 96


@dataclass(frozen=True, kw_only=True)
class Coefficient:
    """One line: what the model has, the estimate without shrinkage, and how far that may be off.

    chance: that an estimate is as far from 0, or further, if the coefficient is 0 (two-sided).
    """

    name: str
    coefficient: float
    estimate: float
    standard_error: float
    chance: float
    low: float
    high: float


@dataclass(frozen=True, kw_only=True)
class Summary:
    """What a model learnt and how certain that is. Without standard errors `rows` is empty, and a note says why."""

    facts: Mapping[str, str]
    heads: tuple[str, ...]
    cells: tuple[tuple[str, ...], ...]
    rows: tuple[Coefficient, ...] = ()
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        lines = [self.heads, *self.cells]
        widths = [max(len(line[place]) for line in lines) for place in range(len(self.heads))]
        table = [
            line[0].ljust(widths[0])
            + "".join(cell.rjust(width + 2) for cell, width in zip(line[1:], widths[1:], strict=True))
            for line in lines
        ]
        facts = [f"{name}: {value}" for name, value in self.facts.items()]
        notes = [text for note in self.notes for text in textwrap.wrap(note, WIDTH)]
        rule = "-" * len(table[0])
        return "\n".join([*facts, rule, table[0], rule, *table[1:], rule, *notes])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        facts = "".join(f"<p>{escape(name)}: {escape(value)}</p>" for name, value in self.facts.items())
        head = "".join(f"<th>{escape(name)}</th>" for name in self.heads)
        body = "".join(
            f"<tr><th>{escape(line[0])}</th>" + "".join(f"<td>{escape(cell)}</td>" for cell in line[1:]) + "</tr>"
            for line in self.cells
        )
        notes = "".join(f"<p>{escape(note)}</p>" for note in self.notes)
        return f"{facts}<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{notes}"


def make_summary(
    facts: Mapping[str, str], names: Sequence[str], values: Array, found: Estimate, level: float
) -> Summary:
    """The summary of coefficients `values` with these names."""
    reach = reach_of(level)
    rows = tuple(
        Coefficient(
            name=name,
            coefficient=float(value),
            estimate=float(own),
            standard_error=float(error),
            chance=float(2 * ndtr(-abs(own) / error)),
            low=float(own - reach * error),
            high=float(own + reach * error),
        )
        for name, value, own, error in zip(names, values, found.coefficients, found.standard_errors, strict=True)
    )
    tail = (1 - level) / 2
    heads = ("", "coef_", "estimate", "std err", "z", "P>|z|", f"[{tail:.3g}", f"{1 - tail:.3g}]")
    cells = tuple(
        (
            row.name,
            *(f"{value:.4g}" for value in (row.coefficient, row.estimate, row.standard_error)),
            f"{row.estimate / row.standard_error:.2f}",
            f"{row.chance:.3f}",
            *(f"{value:.4g}" for value in (row.low, row.high)),
        )
        for row in rows
    )
    return Summary(facts=facts, heads=heads, cells=cells, rows=rows)


def list_coefficients(
    facts: Mapping[str, str], names: Sequence[str], outputs: Sequence[str], values: Array, notes: Sequence[str]
) -> Summary:
    """The summary of coefficients (names, outputs) that have no standard errors."""
    cells = tuple(
        (name, *(f"{value:.4g}" for value in line)) for name, line in zip(names, values.tolist(), strict=True)
    )
    return Summary(facts=facts, heads=("", *outputs), cells=cells, notes=tuple(notes))
