"""A card in plain text, for logs and terminals without colour."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from consenso.privacy.card.entry import Entry, rounded_up

if TYPE_CHECKING:
    from consenso.privacy.card.document import Card

WARNING = (
    "SIMULATION, NOT PRIVATE: the noise was drawn from a seed, and whoever knows the seed can take it away. The "
    "figures below are those of the same run with a sampler that keeps its noise secret."
)


def card_text(card: Card) -> str:
    """The whole card, wrapped at 100 columns."""
    return "\n".join(_lines(card)) + "\n"


def facts_text(facts: Mapping[str, Any]) -> str:
    """Public facts in one line."""
    return ", ".join(f"{name} {_value(value)}" for name, value in facts.items()) or "none"


def figures_text(entry: Entry) -> str:
    """The costs of an entry in one line; all of them rounded up."""
    found = [f"epsilon {rounded_up(entry.epsilon)} ({entry.method})"]
    if entry.rho is not None:
        found.append(f"zCDP rho {rounded_up(entry.rho)}")
    if entry.mu is not None:
        found.append(f"GDP mu {rounded_up(entry.mu)}")
    if entry.excess > 0:
        found.append(f"sampler excess {rounded_up(entry.excess)}")
    return ", ".join(found)


def spread_text(entry: Entry) -> str | None:
    """Epsilon over the parties in one line; None where it is the same for all."""
    spread = entry.spread
    if spread is None:
        return None
    least, median, most = map(rounded_up, (spread.least, spread.median, spread.most))
    return f"epsilon least {least}, median {median}, most {most} (party {spread.worst})"


def _lines(card: Card) -> Iterator[str]:
    yield f"Privacy card of {card.algorithm}"
    if card.simulation:
        yield from _wrapped(WARNING, "*** ")
    yield from _wrapped(f"data: {facts_text(card.data)}")
    yield from _wrapped(f"parameters: {facts_text(card.parameters)}")
    yield from _wrapped(f"trust: {card.trust}; sampler: {card.sampler}; delta: {card.delta:g}")
    for entry in card.entries:
        yield ""
        yield from _wrapped(entry.sentence)
        yield from _wrapped(figures_text(entry), "  ")
        over_parties = spread_text(entry)
        if over_parties is not None:
            yield from _wrapped(f"over the parties: {over_parties}", "  ")
        yield from _wrapped(f"by {entry.citation} (docs/privacy.md#{entry.section})", "  ")
        for assumption in entry.assumptions:
            yield from _wrapped(f"assumes: {assumption['text']} (#{assumption['anchor']})", "  ")
        for refusal in entry.refusals:
            yield from _wrapped(f"not claimed: {refusal}", "  ")
    yield ""
    yield from _wrapped(f"versions: {facts_text(card.versions)}")


def _wrapped(text: str, indent: str = "") -> list[str]:
    return textwrap.wrap(text, 100, initial_indent=indent, subsequent_indent=indent + "  ", break_long_words=False)


def _value(value: Any) -> str:
    if isinstance(value, dict):
        inner = ", ".join(f"{name}={_value(item)}" for name, item in value.items() if name != "kind")
        return f"{value.get('kind', '')}({inner})"
    if isinstance(value, list):
        shown = [_value(item) for item in value[:5]]
        return "[" + ", ".join([*shown, "..."] if len(value) > 5 else shown) + "]"
    return f"{value:.6g}" if isinstance(value, float) else str(value)
