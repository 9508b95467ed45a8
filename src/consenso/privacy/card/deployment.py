"""A card as a record of the public registry of deployments (opendp/deployments-registry-data, tier 3).

What the card cannot know (whose data product it is, what for, where) is left open, to be filled in by its curator: the
record is a draft.
"""

from __future__ import annotations

import datetime
import json
import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from consenso.errors import InputError
from consenso.privacy.card.depths import Overview, epsilon_text, observer_name
from consenso.privacy.card.entry import Entry
from consenso.privacy.card.odds import odds_text
from consenso.privacy.card.text import facts_text, threat_text
from consenso.privacy.guarantee import UNITS_IN_WORDS, is_useful
from consenso.privacy.observers import parse
from consenso.privacy.rounding import round_up
from consenso.trust import mode_of

if TYPE_CHECKING:
    from consenso.privacy.card.document import Card

OPEN = "To be stated by the curator"
NEIGHBOURS = {
    "replace-one": "one is made from the other by replacing {unit} by any other; the number of {counted} is public",
    "add-remove": "one is made from the other by adding or removing {unit}",
    "blanked": "one is made from the other by blanking {unit}; the number of {counted} is public",
}


def registry_record(card: Card, *, name: str | None = None, published: datetime.date | None = None) -> dict[str, Any]:
    """The record as plain values. A simulation, or a card that promises nothing to the public, is refused."""
    entry = headline(card)
    if not is_useful(entry.epsilon):
        raise InputError("--registry: the card promises nothing useful to readers of the model; nothing to register.")
    if card.simulation:
        raise InputError(
            "--registry: the noise of this run was seeded, which protects nobody; deploy it without a seed."
        )
    return draft_record(
        title=name or f"A model by {card.algorithm}",
        published=published,
        description=f"A linear model, trained by {card.algorithm}. {card.sentence()}",
        notes=f"Digest of the card: {card.to_json()['digest']}",
        dp_variant=_variant(card),
        privacy_loss=_loss(card, entry),
        deployment_model=_model(card),
        accounting=_describe_accounting(card, entry),
        implementation=_implementation(card),
    )


def registry_yaml(card: Card, *, name: str | None = None, published: datetime.date | None = None) -> str:
    """The record as YAML."""
    return as_yaml(registry_record(card, name=name, published=published))


def draft_record(
    *, title: str, published: datetime.date | None, description: str, notes: str, **parts: Mapping[str, Any]
) -> dict[str, Any]:
    """A record whose curator and use are still to be stated; `parts` are sections of its deployment."""
    date = (published or datetime.date.today()).isoformat()
    basic = {
        "name": title,
        "data_curators": [OPEN],
        "intended_use": OPEN,
        "data_product_type": "Machine learning model",
        "data_product_region": OPEN,
        "description": description,
        "publication_date": date,
    }
    slug = "-".join(_clean(part) for part in (title, OPEN, date.partition("-")[0]))
    administrative = {"notes": notes, "registry_authors": [OPEN]}
    return {
        "url_slug": slug,
        "status": "Draft",
        "tier": 3,
        "deployment": {"basic": basic, **parts, "administrative": administrative},
    }


def as_yaml(record: dict[str, Any]) -> str:
    """A record as YAML."""
    return "\n".join(_yaml(record)) + "\n"


def state_loss(unit: str, adjacency: str, epsilon: float, delta: float) -> dict[str, Any]:
    """Unit and parameters of a guarantee, in the words of the registry."""
    return {
        "privacy_unit": UNITS_IN_WORDS[unit],
        "privacy_unit_details": f"Two data sets are adjacent if {describe_neighbours(unit, adjacency)}.",
        "privacy_parameters": {"epsilon": float(round_up(epsilon)), "delta": delta},
    }


def describe_neighbours(unit: str, adjacency: str) -> str:
    """How two adjacent data sets differ."""
    return NEIGHBOURS[adjacency].format(unit=UNITS_IN_WORDS[unit], counted=name_counted(unit))


def name_counted(unit: str) -> str:
    """What sizes of parties are numbers of: a person who is replaced may have had more or fewer records."""
    return "people" if unit == "person" else "records"


def headline(card: Card) -> Entry:
    """The promise to readers of the model, for the unit and relation of the run."""
    unit, relation = Overview(card=card).own
    own = [entry for entry in card.entries if (entry.unit, entry.adjacency) == (unit, relation)]
    return next((entry for entry in own if entry.observer == "public"), max(own, key=lambda e: e.epsilon))


def _variant(card: Card) -> dict[str, str]:
    named = name_counted(str(card.data.get("unit")))
    counted = "" if card.data.get("adjacency") == "add-remove" else f"the number of {named} of every party, "
    return {
        "variant_name": "Approximate DP",
        "data_domain": f"Tables whose rows and targets keep these public facts: {facts_text(card.data)}.",
        "unprotected_quantities": f"Public facts that were used in the clear: {counted}bounds, classes, parameters.",
    }


def _loss(card: Card, entry: Entry) -> dict[str, Any]:
    others = "; ".join(
        f"{observer_name(each.observer)}: {epsilon_text(each.epsilon)}"
        for each in card.entries
        if (each.unit, each.adjacency) == (entry.unit, entry.adjacency)
    )
    return {
        **state_loss(entry.unit, entry.adjacency, entry.epsilon, card.delta),
        "privacy_parameters_details": (
            f"For readers of the model: {odds_text(entry)}. Epsilon at delta {card.delta:g} by observer: {others}."
        ),
    }


def _model(card: Card) -> dict[str, str]:
    actors = "; ".join(dict.fromkeys(f"{parse(entry.observer).sentence}" for entry in card.entries))
    return {
        "model_name": mode_of(card.trust).model_name,
        "model_name_details": threat_text(card) if mode_of(card.trust).has_secure_sum else mode_of(card.trust).sentence,
        "actors": f"{mode_of(card.trust).sentence} Observers with a statement of their own: {actors}.",
        "release_type": "One release",
        "release_type_details": "Further uses of the same data add to this cost; a ledger keeps account of them.",
        "data_source_type": "Static",
        "access_type": "Non-interactive",
        "access_type_details": "The model is published as it is.",
    }


def _describe_accounting(card: Card, entry: Entry) -> dict[str, str]:
    rounds = card.parameters.get("rounds")
    told = f"{rounds} rounds are paid for. " if rounds is not None else ""
    return {
        "post_processing": "Whatever follows from the noisy values: averages, proximal steps, the model itself.",
        "composition": f"{told}By {entry.citation} (docs/privacy.md#{entry.section}); epsilon from {entry.method}.",
    }


def _implementation(card: Card) -> dict[str, str]:
    return {
        "preprocessing_and_hyperparameter_tuning": (
            "Rows are mapped by a public schema or bounded by public numbers and clipped to them; parameters follow "
            f"from public facts by fixed rules: {facts_text(card.parameters)}."
        ),
        "mechanisms": (
            f"{card.algorithm}; noise drawn by {card.sampler}, on a public grid, so that floating-point rounding "
            f"reveals nothing; software: {facts_text(card.versions)}."
        ),
        "justification": "Every number follows from the parameters and is computed again by `consenso verify`.",
    }


def _clean(text: str) -> str:
    return re.sub(r"\W+", "_", text.lower()).replace("_", "-")


def _yaml(value: Any, indent: int = 0) -> Iterator[str]:
    """Plain values as YAML: a JSON text is a YAML text in double quotes."""
    margin = " " * indent
    for key, item in value.items() if isinstance(value, Mapping) else enumerate(value):
        head = f"{margin}{key}:" if isinstance(value, Mapping) else f"{margin}-"
        if isinstance(item, Mapping | list):
            yield head
            yield from _yaml(item, indent + 2)
        elif key in ("url_slug", "status") or not isinstance(item, str):
            yield f"{head} {_number(item)}"
        else:
            yield f"{head} {json.dumps(item, ensure_ascii=False)}"


def _number(value: Any) -> str:
    """YAML 1.1 takes 1e-05 for a text, and 1.0e-05 for a number."""
    text = str(value)
    return re.sub(r"^(-?\d+)e", r"\1.0e", text) if isinstance(value, float) else text
