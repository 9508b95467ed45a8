"""A card in plain text, for logs and terminals without colour."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from consenso.privacy.card.depths import Overview, epsilon_text, observer_name
from consenso.privacy.card.entry import Entry
from consenso.privacy.guarantee import LARGEST_USEFUL, is_useful
from consenso.privacy.rounding import round_up
from consenso.privacy.threshold import least_threshold
from consenso.trust import mode_of

if TYPE_CHECKING:
    from consenso.privacy.card.document import Card

WARNING = (
    "SIMULATION, NOT PRIVATE: the noise was drawn from a seed, and whoever knows the seed can take it away. The "
    "figures below are those of the same run with a sampler that keeps its noise secret."
)

BARE = "NOT PRIVATE: this model was fitted without noise, and promises nothing to anybody."

TINY = 1e-30  # below it nobody reads the digits of an excess


def card_text(card: Card) -> str:
    """The whole card, wrapped at 80 columns."""
    return "\n".join(_lines(card)) + "\n"


def warning_of(card: Card) -> str:
    """What is said first of a card that protects nobody."""
    return BARE if all(math.isinf(entry.epsilon) for entry in card.entries) else WARNING


def facts_text(facts: Mapping[str, Any]) -> str:
    """Public facts in one line."""
    return ", ".join(_fact(name, value) for name, value in facts.items()) or "none"


def cost_text(epsilon: float, delta: float) -> str:
    """An epsilon at a delta as people read it, never below its value."""
    if not is_useful(epsilon):
        return "no guarantee" if math.isinf(epsilon) else f"no useful guarantee (epsilon above {LARGEST_USEFUL:,.0f})"
    return f"epsilon {round_up(epsilon)} at delta {delta:g}"


def figures_text(entry: Entry) -> str:
    """The costs of an entry in one line; all of them rounded up."""
    if not is_useful(entry.epsilon):
        return f"no useful guarantee (epsilon above {LARGEST_USEFUL:,.0f})"
    found = [f"epsilon {round_up(entry.epsilon)} ({entry.method})"]
    if entry.rho is not None:
        found.append(f"zCDP rho {round_up(entry.rho)}")
    if entry.mu is not None:
        found.append(f"GDP mu {round_up(entry.mu)}")
    if entry.excess > 0:
        found.append(f"sampler excess {round_up(entry.excess) if entry.excess > TINY else f'below {TINY:g}'}")
    return ", ".join(found)


def spread_text(entry: Entry) -> str | None:
    """Epsilon over the parties in one line; None where it is the same for all."""
    spread = entry.spread
    if spread is None:
        return None
    least, median, most = map(epsilon_text, (spread.least, spread.median, spread.most))
    return f"epsilon least {least}, median {median}, most {most} (party {spread.worst})"


def threat_text(card: Card) -> str:
    """Against whom sums protect, and what they need."""
    if mode_of(card.trust).on_graph:
        return _graph_threat(card)
    semi_honest = "the server follows the protocol but looks at everything it receives (semi-honest)"
    if "sizes" not in card.data or "colluders" not in card.parameters:
        return f"{semi_honest}."
    parties, absent = len(card.data["sizes"]), int(card.parameters["colluders"])
    threshold = least_threshold(parties, absent)
    together = "no party may" if absent == 0 else f"at most {absent} of {parties} parties may, counted together,"
    return (
        f"{semi_honest}; {together} collude with it or drop out of a round; a sum is opened with the answers of at "
        f"least {threshold} of {parties} parties, and a round in which fewer answer is discarded before anything is "
        "unmasked (docs/secure-sum.md)."
    )


def _graph_threat(card: Card) -> str:
    if mode_of(card.trust).has_open_tree:
        return (
            "no server; each peer adds its own noise and learns the sum over each of its branches in the tree and "
            "nothing else of the others (docs/peers.md)."
        )
    parties, coalition = len(card.data["sizes"]), int(card.parameters["colluders"])
    return (
        "no server; peers follow the protocol but look at everything that they see (semi-honest); at most "
        f"{coalition} of {parties} peers, the one that looks counted, pool what they know; masks hide everything but "
        "the total, and a peer that is away stops the round until it is back (docs/peers.md)."
    )


def summary_text(card: Card) -> str:
    """The head of a card: what it is of, whether it protects anybody, one sentence, and one table."""
    return "\n".join(_head(card)) + "\n"


def _head(card: Card) -> Iterator[str]:
    shown = Overview(card=card)
    yield f"Privacy card of {card.algorithm}"
    if card.simulation:
        yield from _wrap(warning_of(card), "*** ")
    yield ""
    yield from textwrap.wrap(shown.promise, 80)
    yield ""
    yield from _table(shown, card.delta)
    for note in shown.notes:
        yield from _wrap(note)


def _table(shown: Overview, delta: float) -> Iterator[str]:
    """The table in columns, with the observers of a row one below the other."""
    first = max((len(observer_name(each)) for row in shown.rows for each in row.observers), default=0) + 2
    heads = [textwrap.wrap(head, 14) for head in shown.heads[1:]]
    deepest = max(map(len, heads))
    for line in range(deepest):
        told = f"epsilon at delta {delta:g}" if line == 0 else shown.heads[0] if line == deepest - 1 else ""
        cells = [([""] * (deepest - len(head)) + head)[line] for head in heads]
        yield f"{told:{max(first, 24)}}" + "".join(f"{cell:>16}" for cell in cells)
    for row in shown.rows:
        *others, last = map(observer_name, row.observers)
        for observer in others:
            yield f"{observer},"
        yield f"{last:{max(first, 24)}}" + "".join(f"{figure:>16}" for figure in (*row.epsilons, row.odds))


def _lines(card: Card) -> Iterator[str]:
    yield from _head(card)
    notes = Notes()
    yield ""
    for entry in card.entries:
        yield from _wrap(f"{entry.sentence} {notes.of(entry)}", "- ")
        yield from _wrap(figures_text(entry), "  ")
        over_parties = spread_text(entry)
        if over_parties is not None:
            yield from _wrap(f"over the parties: {over_parties}", "  ")
    yield ""
    for number, note in notes:
        yield from _wrap(note, f"[{number}] ")
    yield ""
    yield from _wrap(f"data: {facts_text(card.data)}")
    yield from _wrap(f"parameters: {facts_text(card.parameters)}")
    yield from _wrap(f"trust: {card.trust}; sampler: {card.sampler}; delta: {card.delta:g}")
    if mode_of(card.trust).sums_in_steps:
        yield from _wrap(f"threat model: {threat_text(card)}")
    yield from _wrap(f"versions: {facts_text(card.versions)}")


class Notes:
    """Proofs, assumptions and refusals, each said once and referred to by its number."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    def of(self, entry: Entry) -> str:
        """The numbers of an entry's notes."""
        texts = [f"by {entry.citation} (docs/privacy.md#{entry.section})"]
        texts += [f"assumes: {each['text']} (docs/privacy.md#{each['anchor']})" for each in entry.assumptions]
        texts += [f"not claimed: {refusal}" for refusal in entry.refusals]
        numbers = [self._numbers.setdefault(text, len(self._numbers) + 1) for text in texts]
        return "[" + ", ".join(map(str, numbers)) + "]"

    def __iter__(self) -> Iterator[tuple[int, str]]:
        return iter((number, text) for text, number in self._numbers.items())


def _wrap(text: str, indent: str = "") -> list[str]:
    """Wrapped at 80 columns; what follows the first line is indented below a bullet or a number."""
    hanging = " " * len(indent) if indent[:1] in "-[" and indent else indent + "  "
    return textwrap.wrap(text, 80, initial_indent=indent, subsequent_indent=hanging, break_long_words=False)


def _fact(name: str, value: Any) -> str:
    # A run may have fewer rounds than it is charged for.
    return f"{'rounds paid for' if name == 'rounds' else name} {_value(value)}"


def _value(value: Any) -> str:
    if isinstance(value, dict):
        inner = ", ".join(f"{name}={_value(item)}" for name, item in value.items() if name != "kind")
        return f"{str(value.get('kind', '')).rpartition('.')[2]}({inner})"
    if isinstance(value, list):
        shown = [_value(item) for item in value[:5]]
        return "[" + ", ".join([*shown, "..."] if len(value) > 5 else shown) + "]"
    return f"{value:.6g}" if isinstance(value, float) else str(value)
