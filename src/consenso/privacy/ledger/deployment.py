"""What a ledger has spent as a record of the public registry of deployments, like that of a card."""

from __future__ import annotations

import datetime
from typing import Any

from consenso.errors import InputError
from consenso.privacy.ledger.book import Balance, Ledger
from consenso.privacy.rounding import round_up


def spending_record(ledger: Ledger, *, published: datetime.date | None = None) -> dict[str, Any]:
    """The record as plain values; what a ledger cannot know is left open, so that it is a draft."""
    from consenso.privacy.card.deployment import OPEN, draft_record, state_loss

    balances, runs = ledger.balances(), [run for run in ledger.runs() if run.state != "released"]
    if not runs:
        raise InputError("ledger export --registry: nothing was spent yet, so there is nothing to register.")
    first = next((each for each in balances if each.budget.observer == "public"), balances[0])
    budget, see_cards = first.budget, "See the privacy cards of the runs."
    return draft_record(
        title=f"Releases from {ledger.dataset}",
        published=published,
        description=f"{len(runs)} runs on the data set {ledger.dataset}, charged to one ledger.",
        notes=f"Head of the ledger: {ledger.head().hash}",
        dp_variant={
            "variant_name": "Approximate DP",
            "data_domain": OPEN,
            "unprotected_quantities": "Public facts of the studies that were run: see their privacy cards.",
        },
        privacy_loss={
            **state_loss(budget.unit, budget.adjacency, first.overall, budget.delta),
            "privacy_parameters_details": "Of all runs together. " + "; ".join(map(_sentence, balances)) + ".",
        },
        deployment_model={
            "model_name": "Varies",
            "model_name_details": "Each run states its own: see its privacy card.",
            "actors": "; ".join(dict.fromkeys(each.budget.observer for each in balances)),
            "release_type": "Many releases",
            "release_type_details": "Every run reserves its cost in the ledger before it touches the data.",
            "data_source_type": "Static",
            "access_type": "Non-interactive",
            "access_type_details": "Models are published as they are.",
        },
        accounting={
            "post_processing": "Whatever follows from the noisy values.",
            "composition": f"The events of all runs are composed; epsilon from {first.method}.",
        },
        implementation={
            "preprocessing_and_hyperparameter_tuning": see_cards,
            "mechanisms": see_cards,
            "justification": "Limits are enforced by the ledger: a run that would go over one is refused.",
        },
    )


def spending_yaml(ledger: Ledger, *, published: datetime.date | None = None) -> str:
    """The record as YAML."""
    from consenso.privacy.card.deployment import as_yaml

    return as_yaml(spending_record(ledger, published=published))


def _sentence(balance: Balance) -> str:
    limit = f"limit {balance.budget.epsilon:.6g}"
    limit += "" if balance.budget.renews is None else f" each {balance.budget.renews}, with no limit on all of them"
    cost = f"epsilon {round_up(balance.overall, 6)} at delta {round_up(balance.budget.delta, 3)}"
    return f"{balance.budget.scope}: {cost}, {limit}"
