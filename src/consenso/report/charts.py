"""Small charts as inline SVG: no library, no network, readable on a phone, in print and by the colour-blind."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

import numpy as np

from consenso.arrays import Array

# Okabe and Ito's colours: told apart by the colour-blind. Dashes tell them apart without any colour.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "currentColor")
DASHES = ("", "7 4", "2 3", "9 3 2 3", "12 4", "4 2 1 2", "1 2")
QUIET = ("3 4", "9 4 1 4", "1 5")  # of reference lines
WIDTH, HEIGHT = 480, 300
LEFT, RIGHT, TOP, BOTTOM = 68, 14, 12, 46
ACROSS = 24  # letters of a name that fit on one side of the zero line
LEGEND, ROW = 42, 20  # letters of a line of a legend, so few that it fits on a phone; pixels of a line


@dataclass(frozen=True, kw_only=True)
class Series:
    """One line of a chart."""

    name: str
    x: Sequence[float]
    y: Sequence[float]
    quiet: bool = False  # a reference line, in grey
    low: Sequence[float] | None = None  # the ends of a band around the line
    high: Sequence[float] | None = None
    mark: int | None = None  # which point the lines are about, drawn as a disc; they are solid then


@dataclass(frozen=True, kw_only=True)
class Axis:
    """What an axis shows, in which unit, and how it is scaled."""

    label: str
    log: bool = False
    limits: tuple[float, float] | None = None
    zero: bool = True  # whether a linear axis shows zero
    percent: bool = False
    whole: bool = False  # counts things, of which there is no half

    def show(self, value: float) -> str:
        """A value as its tick is labelled."""
        return f"{100 * value:.3g}%" if self.percent else number_text(value)

    def span(self, values: Array) -> tuple[float, float]:
        """The ends of the axis for these values."""
        if self.limits is not None:
            return self.limits
        usable = values[np.isfinite(values) & ((values > 0) if self.log else np.full(values.shape, True))]
        if not len(usable):
            return (1.0, 10.0) if self.log else (0.0, 1.0)
        low, high = float(usable.min()), float(usable.max())
        if self.log:
            low, high = low / 1.25, high * 1.25
            return low, max(high, 4 * low)
        low = min(low, 0.0) if self.zero else low - 0.05 * (high - low)
        return (low, high + 0.05 * (high - low)) if high > low else (low, low + 1.0)

    def ticks(self, low: float, high: float) -> list[float]:
        """Round numbers between the ends."""
        if self.log:
            first, last = math.floor(math.log10(low) + 1e-9), math.ceil(math.log10(high) - 1e-9)
            every = max(1, (last - first) // 6 + 1)
            fronts = (1, 2, 5) if last - first <= 2 else (1,)
            found = [front * 10.0**power for power in range(first, last + 1, every) for front in fronts]
            return [value for value in found if low * (1 - 1e-9) <= value <= high * (1 + 1e-9)]
        raw = (high - low) / 5
        power = 10 ** math.floor(math.log10(raw))
        step = min((m * power for m in (1, 2, 2.5, 5, 10)), key=lambda width: abs(width - raw))
        step = max(1.0, round(step)) if self.whole else step
        first = math.ceil(low / step - 1e-9)
        return [index * step for index in range(first, math.floor(high / step + 1e-9) + 1)]

    def place(self, value: float, low: float, high: float) -> float:
        """Where a value lies between the ends, 0 to 1."""
        if self.log:
            return (math.log(value) - math.log(low)) / (math.log(high) - math.log(low))
        return (value - low) / (high - low)


def line_chart(series: Sequence[Series], *, x: Axis, y: Axis, title: str) -> str:
    """A chart with axes, a grid and a legend."""
    every_x = np.concatenate([np.asarray(each.x, dtype=float) for each in series])
    drawn = [part for each in series for part in (each.y, each.low, each.high) if part is not None]
    every_y = np.concatenate([np.asarray(part, dtype=float) for part in drawn])
    (left, right), (low, high) = x.span(every_x), y.span(every_y)
    inner_w, inner_h = WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM

    def at(value_x: float, value_y: float) -> tuple[float, float]:
        return LEFT + inner_w * x.place(value_x, left, right), TOP + inner_h * (1 - y.place(value_y, low, high))

    names = [textwrap.wrap(each.name, LEGEND) or [""] for each in series]
    legend_height = sum(ROW * len(lines) for lines in names)
    parts = [
        f"<svg class='chart' role='img' aria-label='{escape(title, quote=True)}' "
        f"viewBox='0 0 {WIDTH} {HEIGHT + legend_height}'>",
        f"<title>{escape(title)}</title><desc>{escape(_describe(series, x, y))}</desc>",
    ]
    for tick in x.ticks(left, right):
        where = at(tick, low)[0]
        parts.append(
            f"<line class='grid' x1='{where:.1f}' x2='{where:.1f}' y1='{TOP}' y2='{TOP + inner_h}'/>"
            f"<text x='{where:.1f}' y='{TOP + inner_h + 18}' text-anchor='middle'>{x.show(tick)}</text>"
        )
    for tick in y.ticks(low, high):
        where = at(left, tick)[1]
        parts.append(
            f"<line class='grid' x1='{LEFT}' x2='{LEFT + inner_w}' y1='{where:.1f}' y2='{where:.1f}'/>"
            f"<text x='{LEFT - 8}' y='{where + 4:.1f}' text-anchor='end'>{y.show(tick)}</text>"
        )
    parts.append(
        f"<text x='{LEFT + inner_w / 2:.0f}' y='{HEIGHT - 10}' text-anchor='middle'>{escape(x.label)}</text>"
        f"<text transform='translate(16 {TOP + inner_h / 2:.0f}) rotate(-90)' text-anchor='middle'>"
        f"{escape(y.label)}</text>"
    )
    loud, silent, row = 0, 0, HEIGHT + 6
    for each, lines in zip(series, names, strict=True):
        colour, dash, width = (
            ("currentColor", QUIET[silent % 3], 1.2) if each.quiet else (COLOURS[loud % 7], DASHES[loud % 7], 2.2)
        )
        dash = dash if each.mark is None else ""
        loud, silent = loud + (not each.quiet), silent + each.quiet
        style = f"fill='none' stroke='{colour}' stroke-width='{width}' stroke-dasharray='{dash}'"
        if each.low is not None and each.high is not None:
            upper = [at(a, b) for a, b in zip(each.x, each.high, strict=True)]
            lower = [at(a, b) for a, b in zip(each.x, each.low, strict=True)]
            around = " ".join(f"{across:.1f},{down:.1f}" for across, down in [*upper, *reversed(lower)])
            parts.append(f"<polygon class='band' points='{around}' fill='{colour}'/>")
        parts += [f"<polyline points='{points}' {style}/>" for points in _pieces(each, at, y)]
        if each.mark is not None:
            discs = (at(each.x[each.mark], each.y[each.mark]), (LEFT + 17.0, float(row)))
            parts += [f"<circle cx='{across:.1f}' cy='{down:.1f}' r='3.5' fill='{colour}'/>" for across, down in discs]
        parts.append(
            f"<line x1='{LEFT}' x2='{LEFT + 34}' y1='{row}' y2='{row}' stroke='{colour}' stroke-width='{width}' "
            f"stroke-dasharray='{dash}'/>"
        )
        parts += [
            f"<text x='{LEFT + 42}' y='{row + 4 + ROW * place}'>{escape(line)}</text>"
            for place, line in enumerate(lines)
        ]
        row += ROW * len(lines)
    return "".join([*parts, "</svg>"])


def _describe(series: Sequence[Series], x: Axis, y: Axis) -> str:
    """What the lines show, for those who hear a page: the ends of each."""
    told = []
    for each in series:
        points = [(a, b) for a, b in zip(each.x, each.y, strict=True) if math.isfinite(b)]
        if points:
            (first_x, first_y), (last_x, last_y) = points[0], points[-1]
            told.append(f"{each.name}: {y.show(first_y)} at {x.show(first_x)}, {y.show(last_y)} at {x.show(last_x)}.")
    return f"{y.label} against {x.label}. {' '.join(told)}"


def _pieces(each: Series, at: object, y: Axis) -> list[str]:
    """Points of the line, broken where a value cannot be drawn."""
    assert callable(at)
    pieces: list[list[str]] = [[]]
    for value_x, value_y in zip(each.x, each.y, strict=True):
        if not math.isfinite(value_y) or (y.log and value_y <= 0):
            pieces.append([])
            continue
        across, down = at(value_x, value_y)
        pieces[-1].append(f"{across:.1f},{down:.1f}")
    # One point alone is drawn as a short stroke, or a run of one round would show nothing.
    return [" ".join(piece if len(piece) > 1 else [piece[0], _nudge(piece[0])]) for piece in pieces if piece]


def _nudge(point: str) -> str:
    across, down = point.split(",")
    return f"{float(across) + 6:.1f},{down}"


def bar_chart(
    bars: Sequence[tuple[str, float, str]],
    *,
    label: str,
    title: str,
    largest: float | None = None,
    quiet: Sequence[str] = (),
    intervals: Sequence[tuple[float, float]] = (),
) -> str:
    """Horizontal bars from zero, to either side: a name, a value, and the value as people read it.

    Those named in `quiet` are references. Names stand above their bars, so that they may be long on a phone; short ones
    of bars to both sides stand across the zero line. intervals: the ends of a line across each bar.
    """
    drawn = [value for _, value, _ in bars] + [end for ends in intervals for end in ends]
    top = largest or max((abs(value) for value in drawn if math.isfinite(value)), default=1.0) or 1.0
    signed = any(value < 0 for value in drawn)
    across_zero = signed and max(len(name) for name, _, _ in bars) <= ACROSS
    height, bottom, down = (26, 30, -14) if across_zero else (42, 30, 0)
    inner = (WIDTH - 140) / (2 if signed else 1)
    zero = 70 + inner if signed else 4.0
    told = "; ".join(f"{name}: {shown}" for name, _, shown in bars)
    parts = [
        f"<svg class='chart' role='img' aria-label='{escape(title, quote=True)}' "
        f"viewBox='0 0 {WIDTH} {len(bars) * height + bottom}'><title>{escape(title)}</title>"
        f"<desc>{escape(label)}. {escape(told)}</desc>"
    ]
    for place, (name, value, shown) in enumerate(bars):
        y = 4 + place * height + down
        length = inner * min(abs(value), top) / top if math.isfinite(value) else inner
        left = zero - length if value < 0 else zero
        kind = "shade" if not math.isfinite(value) or name in quiet else "warn" if value < 0 else "main"
        at, anchor = (left - 6, "end") if value < 0 else (left + length + 6, "start")
        name_at, name_anchor = (zero, "middle") if signed else (4, "start")
        if across_zero:
            name_at, name_anchor = (zero + 8, "start") if value < 0 else (zero - 8, "end")
        across = ""
        if intervals:
            first, last = (zero + inner * max(-1.0, min(1.0, end / top)) for end in intervals[place])
            at = min(at, first - 6) if value < 0 else max(at, last + 6)
            caps = "".join(f"M{end:.1f} {y + 21}v9" for end in (first, last))
            across = f"<path class='interval' d='M{first:.1f} {y + 25.5}H{last:.1f}{caps}'/>"
        parts.append(
            f"<text x='{name_at}' y='{y + (31 if across_zero else 13)}' text-anchor='{name_anchor}'>"
            f"{escape(name)}</text>"
            f"<rect class='{kind}' x='{left:.1f}' y='{y + 18}' width='{max(length, 1):.1f}' height='15'/>{across}"
            f"<text x='{at:.1f}' y='{y + 31}' text-anchor='{anchor}'>{escape(shown)}</text>"
        )
    if across_zero:
        parts.append(f"<line class='edge' x1='{zero}' x2='{zero}' y1='0' y2='{len(bars) * height + 4}'/>")
    middle = f"<text x='{WIDTH / 2}' y='{len(bars) * height + 22}' text-anchor='middle'>{escape(label)}</text>"
    return "".join([*parts, middle, "</svg>"])


def graph_chart(
    edges: Sequence[tuple[int, int]], values: Array, *, title: str, unit: str, looks: int | None = None
) -> str:
    """Nodes with their numbers, shaded from light (least) to dark (most); the value is told on touch and in the key.

    looks: the node that the values are about the others for; it has a thick rim.
    """
    import networkx

    graph = networkx.Graph(list(edges))
    graph.add_nodes_from(range(len(values)))
    layout = networkx.spring_layout(graph, seed=1, iterations=200)
    points = np.array([layout[node] for node in range(len(values))])
    low, high = points.min(axis=0), points.max(axis=0)
    size, margin = WIDTH, 34
    points = margin + (points - low) / np.maximum(high - low, 1e-9) * (size - 2 * margin) * [1.0, 0.7]
    finite = values[np.isfinite(values)]
    least, most = (float(finite.min()), float(finite.max())) if len(finite) else (0.0, 0.0)
    radius = 15 if len(values) <= 40 else 9
    height = int(points[:, 1].max()) + margin + 30
    parts = [
        f"<svg class='chart' role='img' aria-label='{escape(title, quote=True)}' viewBox='0 0 {size} {height}'>",
        f"<title>{escape(title)}</title><desc>{len(values)} nodes, {len(edges)} edges.</desc>",
    ]
    parts += [
        f"<line class='edge' x1='{points[a, 0]:.1f}' y1='{points[a, 1]:.1f}' x2='{points[b, 0]:.1f}' "
        f"y2='{points[b, 1]:.1f}'/>"
        for a, b in edges
    ]
    for node, (across, down) in enumerate(points):
        share = (values[node] - least) / (most - least) if most > least and np.isfinite(values[node]) else 0.0
        fill, ink = _shade(share) if np.isfinite(values[node]) else ("#ffffff", "dark")
        told = f"{unit} {values[node]:.3g}" if np.isfinite(values[node]) else f"no {unit} is promised"
        told = "its own data" if node == looks else told
        rim = " stroke-width='4'" if node == looks else ""
        label = f"<text x='{across:.1f}' y='{down + 4:.1f}' text-anchor='middle' class='{ink}'>{node}</text>"
        parts.append(
            f"<g><title>party {node}: {told}</title><circle cx='{across:.1f}' cy='{down:.1f}' r='{radius}' "
            f"fill='{fill}' class='ink'{rim}/>{label if radius > 10 else ''}</g>"
        )
    key = f"{unit} {least:.4g} for all" if most <= least else f"light: {unit} {least:.4g}; dark: {unit} {most:.4g}"
    parts.append(f"<text x='{size / 2}' y='{height - 8}' text-anchor='middle'>{escape(key)}</text>")
    return "".join([*parts, "</svg>"])


def _shade(share: float) -> tuple[str, str]:
    """From pale to dark blue, and the ink that is readable on it."""
    light, dark = (222, 235, 247), (8, 48, 107)
    mixed = [round(a + share * (b - a)) for a, b in zip(light, dark, strict=True)]
    return "#" + "".join(f"{part:02x}" for part in mixed), "light" if share > 0.45 else "dark"


def number_text(value: float) -> str:
    """A number as people read it: four digits, thousands apart, powers of ten only where zeros would be counted."""
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    if 1e-4 <= abs(value) < 1e7:
        text = f"{float(f'{value:.4g}'):,.8f}"
        return text.rstrip("0").rstrip(".")
    power = math.floor(math.log10(abs(value)) + 1e-9)
    front = round(value / 10**power, 3)
    raised = "".join("⁰¹²³⁴⁵⁶⁷⁸⁹"[int(digit)] if digit.isdigit() else "⁻" for digit in str(power))
    return f"10{raised}" if abs(front - 1) < 1e-6 else f"{front:g}·10{raised}"
