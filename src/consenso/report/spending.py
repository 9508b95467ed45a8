"""A picture of a ledger: what was spent of every budget over time, and its limit."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

from consenso.errors import InputError
from consenso.privacy.ledger import Ledger, follow_spending

ENDINGS = (".svg", ".png")
COLOURS = ("#1f77b4", "#d62728", "#2ca02c", "#9467bd", "#ff7f0e", "#17becf")


def draw_spending(ledger: Ledger, path: Path) -> None:
    """Write the picture: a stair and a dashed limit for each budget. The ending of the path says which format."""
    if path.suffix not in ENDINGS:
        raise InputError(f"ledger plot(out={str(path)!r}): a picture ends in {' or '.join(ENDINGS)}; name one so.")
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as error:
        raise InputError("pictures of a ledger need Matplotlib; pip install 'consenso[plots]'.") from error
    figure = Figure(figsize=(7.2, 4.2), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot(xlabel="time (UTC)", ylabel="epsilon")
    axes.set_title(f"Privacy budget of {ledger.dataset}", fontsize=11, loc="left", wrap=True)
    for place, line in enumerate(follow_spending(ledger)):
        colour, budget = COLOURS[place % len(COLOURS)], line.budget
        times: Any = [datetime.datetime.fromisoformat(time) for time in line.times]
        every = "" if budget.renews is None else f", each {budget.renews}"
        axes.step(times, line.spent, where="post", marker=".", color=colour, label=f"{budget.scope}{every}")
        axes.axhline(budget.epsilon, color=colour, linestyle="--", linewidth=1.0, alpha=0.7)
    axes.plot([], [], color="#777777", linestyle="--", label="limit")
    axes.set_ylim(bottom=0.0)
    axes.legend(fontsize="small", loc="best")
    figure.autofmt_xdate()
    try:
        figure.savefig(path, dpi=120)
    except OSError as error:
        raise InputError(f"ledger plot(out={str(path)!r}): the file cannot be written; name another place.") from error
