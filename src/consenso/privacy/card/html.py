"""A card as HTML for notebooks, and the pieces that pages use: the sentence, the table, and everything folded."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from consenso.privacy.card.depths import Overview, epsilon_text
from consenso.privacy.card.text import card_text

if TYPE_CHECKING:
    from consenso.privacy.card.document import Card
    from consenso.privacy.guarantee import Guarantee

DELTAS = (1e-5, 1e-6, 1e-8)  # at which a guarantee without a delta of its own is shown
# Colours are those of the notebook, dark or light.
_CELL = "style='text-align:left;padding:.2em .8em .2em 0;border-bottom:1px solid #8888;vertical-align:top'"
_NUMBER = "style='text-align:right;padding:.2em .8em .2em 0;border-bottom:1px solid #8888'"


def card_html(card: Card) -> str:
    """The card in three depths: a sentence, a table, and everything to unfold."""
    shown = Overview(card=card)
    return (
        f"<div><p><strong>{escape(shown.sentence)}</strong></p>{overview_html(shown)}"
        f"{fold('Everything on this card', card_text(card))}</div>"
    )


def overview_html(shown: Overview) -> str:
    """The table of who learns what, and what it leaves out."""
    first, *heads = shown.heads
    head = f"<th scope='col' {_CELL}>{escape(first)}</th>" + "".join(
        f"<th scope='col' {_NUMBER}>{escape(text)}</th>" for text in heads
    )
    body = "".join(
        f"<tr><th scope='row' {_CELL}>{escape(row.who)}</th>"
        + "".join(f"<td {_NUMBER}>{escape(figure)}</td>" for figure in (*row.epsilons, row.odds))
        + "</tr>"
        for row in shown.rows
    )
    notes = "".join(f"<br>{escape(note)}" for note in shown.notes)
    return (
        f"<div style='overflow-x:auto'><table style='border-collapse:collapse'><thead><tr>{head}</tr></thead>"
        f"<tbody>{body}</tbody></table></div><p><small>epsilon at delta {shown.card.delta:g}; smaller is more "
        f"private{notes}</small></p>"
    )


def guarantee_html(stated: Guarantee) -> str:
    """A guarantee: its sentence, epsilon at the usual deltas, and what it assumes to unfold."""
    at = DELTAS[0]
    rows = "".join(
        f"<tr><th scope='row' {_CELL}>{delta:g}</th><td {_NUMBER}>{epsilon_text(stated.epsilon(delta))}</td></tr>"
        for delta in DELTAS
    )
    assumed = "\n".join(stated.assumptions) or "nothing besides what was checked"
    return (
        f"<div><p><strong>{escape(stated.sentence(at))}</strong></p><table style='border-collapse:collapse'><thead><tr>"
        f"<th scope='col' {_CELL}>delta</th><th scope='col' {_NUMBER}>epsilon</th></tr></thead><tbody>{rows}</tbody>"
        f"</table>{fold('What it assumes', assumed)}</div>"
    )


def fold(title: str, text: str) -> str:
    """Text that is shown on demand."""
    return (
        f"<details><summary>{escape(title)}</summary>"
        f"<pre style='white-space:pre-wrap;font-size:.85em'>{escape(text)}</pre></details>"
    )
