"""Answers to the questions that NIST SP 800-226 asks of a differential-privacy guarantee, as far as a card knows them.

The publication orders what has to hold as a pyramid: the parameter and what it protects on top, then the algorithm and
its implementation, then who is trusted, and how the data were collected and are guarded at the base.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from consenso.privacy.card.deployment import describe_neighbours, headline, name_counted
from consenso.privacy.card.depths import Overview, observer_name
from consenso.privacy.card.entry import Entry
from consenso.privacy.card.odds import ALARM, event_of, most_caught, odds_text
from consenso.privacy.card.text import cost_text, facts_text, threat_text, warning_of
from consenso.privacy.guarantee import UNITS_IN_WORDS, is_useful
from consenso.privacy.rounding import round_up
from consenso.trust import mode_of

if TYPE_CHECKING:
    from consenso.privacy.card.document import Card

OPEN = "The card does not know; whoever runs the study states it."
OTHERS = "They add to this cost. A ledger enforces a total; see `consenso ledger`."
TUNING = (
    "Rules choose them from public facts, or the study states them. What was tried before the run is not on the card."
)
QUALITY = "It is measured on public test records only: metrics.json and the report of the run."
BIAS = f"Noise is the same for everybody, so small groups are learnt less well. {OPEN}"
CHANNELS = "When a run ends follows from the plan and from released values; how long steps take is not hidden."
ACCESS = f"Access to the records and to checkpoints is not covered. {OPEN}"
CHECKED = "`consenso verify` computes every number again; `consenso audit` attacks the guarantees."


def questions(card: Card) -> list[tuple[str, str]]:
    """Every question with its answer."""
    entry, shown = headline(card), Overview(card=card)
    cost = cost_text(entry.epsilon, card.delta)
    by_observer = "; ".join(f"{row.who}: {', '.join(row.epsilons)}" for row in shown.rows)
    heads = ", ".join(shown.heads[1:-1])
    strength = f"{cost} for readers of the model: {odds_text(entry)}."
    if is_useful(entry.epsilon):
        caught = most_caught(event_of(entry))
        strength += f" A test with {ALARM:.0%} false alarms finds at most {caught:.1%} of the true cases."
    assumed = dict.fromkeys(
        text.rstrip(".")
        for text in (*(each["text"] for one in card.entries for each in one.assumptions), *shown.remarks)
    )
    left_out = [note for note in shown.notes if note not in shown.remarks]
    threat = threat_text(card) if mode_of(card.trust).has_secure_sum else mode_of(card.trust).sentence
    released = (
        "" if card.data.get("adjacency") == "add-remove" else f"The number of {name_counted(entry.unit)} is public."
    )
    return [
        ("What are epsilon and delta, and how strong is that?", strength),
        ("Which variant of differential privacy is it?", _variant(card)),
        ("What is the unit of privacy?", f"{UNITS_IN_WORDS[entry.unit]}. {'; '.join(left_out)}".rstrip(". ") + "."),
        ("Which data sets are neighbours (bounded or unbounded)?", _neighbours(card)),
        ("What holds for others who look?", f"Epsilon ({heads}): {by_observer}."),
        ("What is released without noise?", f"{released} {_inputs(card)}".strip()),
        ("Are there other releases of the same data?", OTHERS),
        ("Which algorithm is it, and what proves its guarantee?", f"{card.algorithm}, by {_proof(entry)}."),
        ("What does the proof assume?", f"{'; '.join(assumed) or 'Nothing besides what was checked'}."),
        ("How are sensitivity and composition handled?", _describe_accounting(card)),
        ("How were hyperparameters chosen?", TUNING),
        ("How useful is the result?", QUALITY),
        ("Is there systemic bias?", BIAS),
        ("Who is trusted (threat model)?", threat),
        ("Against whom does it not protect?", _describe_unprotected(card)),
        ("How is the noise drawn? Floating point? Randomness?", _noise(card)),
        ("Are there side channels (time, memory, messages)?", CHANNELS),
        ("Are the data secured before they are protected?", ACCESS),
        ("How were the data collected, and with what exposure?", OPEN),
        ("How can all of this be checked?", CHECKED),
        ("Which software?", f"{facts_text(card.versions)}."),
    ]


def _inputs(card: Card) -> str:
    """Where bounds, classes and parameters come from."""
    found = [each["name"] for each in card.parameters.get("earlier", ())]
    if not found:
        return "Bounds, classes and parameters are public input."
    return (
        "Bounds, classes and parameters are public input, or follow from noisy releases whose cost is in the figures "
        f"above: {', '.join(found)}."
    )


def evaluation_text(card: Card) -> str:
    """The questions and answers as Markdown."""
    warning = f"**{warning_of(card)}**\n\n" if card.simulation else ""
    body = "\n\n".join(f"**{question}**\n{answer}" for question, answer in questions(card))
    return f"# {card.algorithm}: evaluation after NIST SP 800-226\n\n{warning}{body}\n"


def _variant(card: Card) -> str:
    entry = headline(card)
    also = [
        f"zCDP with rho {round_up(entry.rho)}" if entry.rho is not None else "",
        f"GDP with mu {round_up(entry.mu)}" if entry.mu else "",
    ]
    known = " and ".join(text for text in also if text)
    return "Approximate differential privacy" + (f"; also {known}." if known else ".")


def _proof(entry: Entry) -> str:
    return f"{entry.citation} (docs/privacy.md#{entry.section})"


def _neighbours(card: Card) -> str:
    entry = headline(card)
    kind = "unbounded" if entry.adjacency == "add-remove" else "bounded"
    return f"{entry.adjacency} ({kind}): {describe_neighbours(entry.unit, entry.adjacency)}."


def _describe_accounting(card: Card) -> str:
    entry, rounds = headline(card), card.parameters.get("rounds")
    paid = f"{rounds} rounds are paid for, whether they are run or not; " if rounds is not None else ""
    return f"Values are clipped to a bound before noise is added; {paid}epsilon is from {entry.method}."


def _describe_unprotected(card: Card) -> str:
    bare = [observer_name(each) for each in dict.fromkeys(e.observer for e in card.entries) if _is_bare(card, each)]
    told = f"Nothing useful is promised against {', '.join(bare)}. " if bare else ""
    left = [note for note in Overview(card=card).notes if note.startswith("not protected")]
    return f"{told}{'; '.join(left)}".strip() or "Every observer of the card has a promise."


def _is_bare(card: Card, observer: str) -> bool:
    unit, relation = Overview(card=card).own
    own = [e for e in card.entries if (e.observer, e.unit, e.adjacency) == (observer, unit, relation)]
    return all(not is_useful(entry.epsilon) for entry in own)


def _noise(card: Card) -> str:
    if card.simulation:
        return f"By {card.sampler}: a seed, which protects nobody."
    return f"By {card.sampler}: discrete, on a public grid, with entropy of the operating system."
