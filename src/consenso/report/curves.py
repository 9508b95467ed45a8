"""Quality against epsilon, drawn: as SVG, PNG, CSV and a page. Comparisons and forecasts are both of this kind."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path

from consenso.errors import InputError
from consenso.pages import STYLE, page, table
from consenso.report.charts import COLOURS, Axis, Series, line_chart, number_text

MOST_BESIDE = 4  # methods that fit beside each other


@dataclass(frozen=True, kw_only=True)
class PlottedCurve:
    """One method over several budgets: the mean of its runs, and the least and the most of them."""

    name: str
    epsilons: Sequence[float]
    means: Sequence[float]
    lows: Sequence[float]
    highs: Sequence[float]

    @staticmethod
    def exact(name: str, epsilons: Sequence[float], values: Sequence[float]) -> PlottedCurve:
        """A line without a band: what is computed and not measured."""
        return PlottedCurve(name=name, epsilons=epsilons, means=values, lows=values, highs=values)


@dataclass(frozen=True, kw_only=True)
class Curves:
    """Several methods beside each other. `references` need no epsilon: an exact fit, the simplest guess.

    measure: "accuracy" or "rmse". note: what was measured on, for the reader.
    """

    title: str
    measure: str
    delta: float
    curves: tuple[PlottedCurve, ...]
    references: Mapping[str, float] = field(default_factory=dict)
    note: str = ""

    def show(self, value: float) -> str:
        """A value as people read it."""
        return f"{value:.1%}" if self.measure == "accuracy" else number_text(value)

    def csv(self) -> str:
        """A row for every method and budget, and for every reference."""
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(["method", "epsilon", "delta", self.measure, "least", "most"])
        for curve in self.curves:
            for row in zip(curve.epsilons, curve.means, curve.lows, curve.highs, strict=True):
                writer.writerow([curve.name, row[0], self.delta, *row[1:]])
        for name, value in self.references.items():
            writer.writerow([name, "inf", 0.0, value, value, value])
        return out.getvalue()

    def svg(self) -> str:
        """The picture, to be put into a page."""
        ends = self._ends()
        series = [
            Series(name=name, x=ends, y=[value, value], quiet=True) for name, value in self.references.items()
        ] + [Series(name=c.name, x=c.epsilons, y=c.means, low=c.lows, high=c.highs) for c in self.curves]
        percent = self.measure == "accuracy"
        label = f"{'accuracy' if percent else 'root mean squared error'} on public test records"
        return line_chart(
            series,
            x=Axis(label=f"epsilon, at delta {self.delta:g}", log=True, limits=ends),
            y=Axis(label=label, zero=False, percent=percent),
            title=self.title,
        )

    def html(self) -> str:
        """A page of its own."""
        shown = self._beside() or self._below()
        body = f"<h1>{escape(self.title)}</h1><p>{escape(self.note)}</p>{self.svg()}{shown}"
        return page(self.title, body)

    def _beside(self) -> str | None:
        """A row for every budget and a column for every method; None where they are too many, or budgets differ."""
        grids = {tuple(map(number_text, curve.epsilons)) for curve in self.curves}
        if len(self.curves) > MOST_BESIDE or len(grids) > 1:
            return None
        rows = [
            [epsilon, *(self._cell(curve, place) for curve in self.curves)] for place, epsilon in enumerate(grids.pop())
        ]
        head = ["epsilon", *(curve.name for curve in self.curves)]
        references = "; ".join(f"{name}: {self.show(value)}" for name, value in self.references.items())
        told = f"<p>{escape(references[:1].upper() + references[1:])}.</p>" if references else ""
        return table(head, rows, numbers=frozenset(range(1, len(head))), caption=self.measure) + told

    def _cell(self, curve: PlottedCurve, place: int) -> str:
        low, mean, high = curve.lows[place], curve.means[place], curve.highs[place]
        return self.show(mean) if low == high else f"{self.show(mean)} ({self.show(low)} to {self.show(high)})"

    def _below(self) -> str:
        """A row for every method and budget."""
        repeated = any(low < high for curve in self.curves for low, high in zip(curve.lows, curve.highs, strict=True))
        rows = [
            [curve.name, number_text(epsilon), self.show(mean), self._band(low, high)]
            for curve in self.curves
            for epsilon, mean, low, high in zip(curve.epsilons, curve.means, curve.lows, curve.highs, strict=True)
        ] + [[name, "-", self.show(value), ""] for name, value in self.references.items()]
        head = ["method", "epsilon", self.measure, *(["over the runs"] if repeated else [])]
        return table(head, [row[: len(head)] for row in rows], numbers=frozenset({1, 2, 3}))

    def write(self, folder: Path, name: str) -> list[Path]:
        """Write page, SVG, CSV and, where Matplotlib is installed, PNG; the paths."""
        try:
            folder.mkdir(parents=True, exist_ok=True)
            alone = self.svg().replace("<svg ", "<svg xmlns='http://www.w3.org/2000/svg' ", 1)
            styled = alone.replace("<title>", f"<style>{STYLE}</style><title>", 1)
            texts = {"html": self.html(), "svg": styled, "csv": self.csv()}
            for kind, text in texts.items():
                (folder / f"{name}.{kind}").write_text(text, encoding="utf-8")
        except OSError as error:
            raise InputError(f"--out {folder}: cannot be written ({error.strerror}); choose another place.") from None
        made = [folder / f"{name}.{kind}" for kind in texts]
        drawn = self._png(folder / f"{name}.png")
        return [*made, drawn] if drawn is not None else made

    def _band(self, low: float, high: float) -> str:
        return "one run" if low == high else f"{self.show(low)} to {self.show(high)}"

    def _repr_html_(self) -> str:
        return f"<style>{STYLE}</style>{self.svg()}"

    def _ends(self) -> tuple[float, float]:
        every = [epsilon for curve in self.curves for epsilon in curve.epsilons]
        low, high = min(every), max(every)
        return (low, high) if low < high else (low / 2, high * 2)

    def _png(self, path: Path) -> Path | None:
        try:
            from matplotlib.backends.backend_agg import FigureCanvasAgg
            from matplotlib.figure import Figure
        except ImportError:
            return None
        figure = Figure(figsize=(6.4, 4.2), layout="constrained")
        FigureCanvasAgg(figure)
        axes = figure.add_subplot(xscale="log", xlabel=f"epsilon, at delta {self.delta:g}", ylabel=self.measure)
        axes.set_title(self.title, fontsize=11, loc="left", wrap=True)
        for name, value in self.references.items():
            axes.axhline(value, linestyle=":", color="#777777", label=name)
        for place, curve in enumerate(self.curves):
            colour = COLOURS[place % 6]
            axes.fill_between(curve.epsilons, curve.lows, curve.highs, color=colour, alpha=0.18, linewidth=0)
            axes.plot(curve.epsilons, curve.means, marker="o", color=colour, label=curve.name)
        axes.legend(fontsize=8)
        figure.savefig(path, dpi=110)
        return path
