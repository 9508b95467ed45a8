"""What was learnt: quality on public records, and what the model looks at."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from consenso.pages import figures, table
from consenso.report.charts import bar_chart, number_text
from consenso.report.reading import RunFiles

Z = 1.959964  # of a normal law, 95 % lie within so many standard errors
COEFFICIENTS = 12  # that are shown; the model file has all
PULLED = " They are for weights without the pull of the penalty towards zero, so that a weight may lie outside its own."
_SHARES = ("accuracy", "majority", "r2")
_MEASURES = {
    "accuracy": "accuracy",
    "majority": "accuracy of always saying the commonest class",
    "rmse": "root mean squared error",
    "rmse of the mean": "the same when always saying the mean",
    "r2": "share of variance explained",
    "loss": "loss",
    "loss of zero": "loss of the zero model",
}


def quality_text(run: RunFiles) -> str:
    """How good the model is, in one sentence."""
    found = run.metrics
    if found is None:
        return "Not measured: no public test records were named, and figures from private records would leak them."
    tested = f"{int(found['records']):,} public test records"
    if "accuracy" in found:
        simplest = _show(found, "majority")
        return (
            f"{_show(found, 'accuracy')} of {tested} are told right; always saying the commonest class gets {simplest}."
        )
    simplest = _show(found, "rmse of the mean")
    return f"Off by {_show(found, 'rmse')} (root mean square) on {tested}; always saying the mean is off by {simplest}."


def learnt_html(run: RunFiles) -> str:
    return _metrics(run) + _coefficients(run)


def _metrics(run: RunFiles) -> str:
    found = run.metrics
    if found is None:
        return ""
    shown = [(text, _show(found, name)) for name, text in _MEASURES.items() if isinstance(found.get(name), int | float)]
    return f"<p>On {int(found['records']):,} public test records:</p>{figures(shown)}"


def _show(found: Any, name: str) -> str:
    value = found.get(name)
    if not isinstance(value, int | float):
        return "unknown"
    return f"{value:.1%}" if name in _SHARES else number_text(float(value))


def _coefficients(run: RunFiles) -> str:
    if run.model is None:
        return ""
    values, names = np.asarray(run.model["coefficients"], dtype=float), [str(name) for name in run.model["features"]]
    classes = [str(name) for name in run.model.get("classes") or []]
    size = np.abs(values).max(axis=1)
    zero = int((size == 0).sum())
    order = np.argsort(-size)[: min(COEFFICIENTS, max(1, len(names) - zero))]
    told = f" {zero:,} of {len(names):,} features are not used at all." if zero else ""
    shown_of = f"The {len(order)} largest of" if len(order) < len(names) - zero else "All"
    lead = f"<h3>What the model looks at</h3><p>{shown_of} {len(names) - zero:,} weights, noise included.{told}</p>"
    if values.shape[1] > 1:
        rows = [[names[i], classes[int(np.abs(values[i]).argmax())], number_text(size[i])] for i in order]
        return lead + table(["feature", "class it speaks for most", "largest weight"], rows, numbers=frozenset({2}))
    bars = [(names[i], float(values[i, 0]), _sign(values[i, 0])) for i in order]
    towards = f"weight, to the right towards {classes[1]}" if len(classes) == 2 else "weight"
    ends = _intervals(run.model)
    if ends is None:
        return lead + bar_chart(bars, label=towards, title=f"Largest weights: {towards}")
    shown = [ends[i] for i in order]
    bars = [
        (
            f"{name}: {text} ({_sign(low)} to {_sign(high)})",
            value,
            "",
        )  # above the bar, where there is room
        for (name, value, text), (low, high) in zip(bars, shown, strict=True)
    ]
    return (
        lead
        + bar_chart(bars, label=towards, title=f"Largest weights: {towards}", intervals=shown)
        + "<p class='quiet'>The lines are intervals at level 95 %: noise and the choice of the records included."
        + (PULLED if run.model.get("estimates") else "")
        + "</p>"
    )


def _sign(value: float) -> str:
    """A weight as people read it, with its sign."""
    return f"{'+' if value > 0 else ''}{number_text(float(f'{value:.3g}'))}"


def _intervals(model: Mapping[str, Any]) -> list[tuple[float, float]] | None:
    """Intervals at level 95 % around the estimates of a model that knows its standard errors."""
    if model.get("standard_errors") is None:
        return None
    many = len(model["features"])  # an intercept comes last, and is not drawn
    errors = np.ravel(np.asarray(model["standard_errors"], dtype=float))[:many]
    centres = np.ravel(np.asarray(model.get("estimates") or model["coefficients"], dtype=float))[:many]
    return list(zip((centres - Z * errors).tolist(), (centres + Z * errors).tolist(), strict=True))
