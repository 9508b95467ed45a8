"""Figures from data: every paper's curves are drawn by the same few lines, as PNG and as SVG."""

from __future__ import annotations

import math
import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from experiments.outcome import Curve, Figure, Panel

# Told apart by the colour-blind, too (Okabe and Ito); the paper's own numbers are black.
PALETTE = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7f5f3f", "#999999")
BLACK = "#1a1a1a"
FEW, APART = 9, 1.5  # points that get a tick each, and their least ratio
SHORT = 150.0  # ratio of the ends of a logarithmic axis on which powers of ten are few
STROKES = {"line": "-", "dashed": "--", "dotted": ":", "points": "none", "reported": "none"}


def draw(figure: Figure, folder: Path) -> tuple[Path, Path]:
    """Write name.png and name.svg; their paths."""
    from matplotlib import rc_context
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure as Sheet

    across = min(figure.across, len(figure.panels))
    down = math.ceil(len(figure.panels) / across)
    style = {
        "svg.fonttype": "none",
        "svg.hashsalt": figure.name,
        "font.size": 10,
        "axes.titlesize": 11,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.grid": True,
        "grid.color": "#dddddd",
        "grid.linewidth": 0.6,
    }
    with rc_context(style):
        # Three panels in a row are shrunk by the page, so they are drawn smaller: letters stay readable.
        wide, high = (5.6, 3.9) if across < 3 else (4.2, 3.5)
        sheet = Sheet(figsize=(max(7.5, wide * across), high * down + 0.8), layout="constrained")
        FigureCanvasAgg(sheet)
        axes = sheet.subplots(down, across, squeeze=False).ravel()
        for place, axis in enumerate(axes):
            if place < len(figure.panels):
                _panel(axis, figure.panels[place])
            else:
                axis.set_axis_off()
        _legend(sheet, axes[: len(figure.panels)], columns=2 if across == 1 else 3)
        png, svg = folder / f"{figure.name}.png", folder / f"{figure.name}.svg"
        sheet.savefig(png, dpi=130, metadata={"Software": None})
        sheet.set_layout_engine(None)  # everything has its place now
        sheet.savefig(svg, metadata={"Date": None, "Creator": None})
    return png, svg


def inline(figure: Figure, folder: Path) -> str:
    """The SVG for a page that holds several: identifiers carry the figure's name, the size follows the page."""
    text = (folder / f"{figure.name}.svg").read_text(encoding="utf-8")
    text = re.sub(r"<metadata>.*?</metadata>\s*", "", text[text.index("<svg") :], flags=re.DOTALL)
    text = re.sub(r'\bid="', f'id="{figure.name}-', text)
    text = text.replace("url(#", f"url(#{figure.name}-").replace('xlink:href="#', f'xlink:href="#{figure.name}-')
    text = re.sub(r'(<svg[^>]*?) width="[^"]*"', r'\1 width="100%"', text, count=1)
    return re.sub(r'(<svg[^>]*?) height="[^"]*"', r"\1", text, count=1)


def _panel(axis: Any, panel: Panel) -> None:
    taken = 0
    for curve in panel.curves:
        hue = curve.hue
        if hue is None and curve.style != "reported":
            hue, taken = taken, taken + 1
        _curve(axis, curve, BLACK if hue is None else PALETTE[hue % len(PALETTE)])
    for place, level in enumerate(panel.levels):
        stroke = ("--", ":", "-.")[place % 3]
        axis.axhline(level.y, color="#666666", linestyle=stroke, linewidth=1, label=level.label, zorder=1)
    if panel.log_x:
        axis.set_xscale("log")
        _ticks(axis, panel)
    if panel.log_y:
        axis.set_yscale("log")
    if panel.limits is not None:
        axis.set_ylim(*panel.limits)
    if panel.log_y:
        _plain_numbers(axis)
    axis.set(title=panel.title, xlabel=panel.x, ylabel=panel.y)


def _ticks(axis: Any, panel: Panel) -> None:
    """On a logarithmic axis with few points, the points themselves: a reader wants to see which epsilons there are."""
    points = sorted({float(x) for curve in panel.curves for x in curve.x})
    if len(points) <= FEW and all(after / before > APART for before, after in pairwise(points)):
        axis.set_xticks(points, [f"{float(f'{point:.2g}'):g}" for point in points])
        axis.set_xticks([], minor=True)


def _plain_numbers(axis: Any) -> None:
    """0.2 and 0.5 rather than 2 times ten to the -1, where a logarithmic axis has few powers of ten."""
    from matplotlib.ticker import FuncFormatter, LogLocator

    low, high = axis.get_ylim()
    if high / low < SHORT:
        axis.yaxis.set_minor_locator(LogLocator(subs=(2.0, 3.0, 5.0)))
        axis.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axis.yaxis.set_minor_formatter(FuncFormatter(lambda value, _: f"{value:g}"))


def _curve(axis: Any, curve: Curve, colour: str) -> None:
    x, y = np.asarray(curve.x, dtype=float), np.asarray(curve.y, dtype=float)
    marker = {"points": "o", "reported": "D"}.get(curve.style, "o" if len(x) <= 12 else "")
    axis.plot(
        x,
        y,
        color=colour,
        linestyle=STROKES[curve.style],
        linewidth=1.8,
        marker=marker,
        markersize=7 if curve.style == "reported" else 4.5,
        markerfacecolor="none" if curve.style == "reported" else colour,
        label=curve.label,
        zorder=4 if curve.style == "reported" else 3,
    )
    if curve.low is not None and curve.high is not None:
        axis.fill_between(x, curve.low, curve.high, color=colour, alpha=0.18, linewidth=0, zorder=2)


def _legend(sheet: Any, axes: Any, *, columns: int) -> None:
    """One legend below all panels, or one in each where there would be too much in it."""
    told = [axis.get_legend_handles_labels() for axis in axes]
    together: dict[str, Any] = {}
    for handles, labels in told:
        together.update({label: handle for handle, label in zip(handles, labels, strict=True) if label})
    if len(together) <= 9 or len(axes) == 1:
        columns = min(columns, len(together))
        sheet.legend(together.values(), together.keys(), loc="outside lower center", ncols=columns, fontsize=9)
        return
    for axis in axes:
        axis.legend(fontsize=8)
