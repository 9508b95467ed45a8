"""Cards of corrected runs: checked where they are made, where what they cost is still at hand."""

from __future__ import annotations

from typing import Any

from consenso.errors import TamperError
from consenso.planning.replan import differences
from consenso.privacy.card import Card
from consenso.privacy.verify import first_failure, verify


def checked(card: Card) -> dict[str, Any]:
    """The card as JSON with the number of fields that were computed again, after its plan was made anew."""
    content = card.to_json()
    checks = verify(content)
    wrong = first_failure(checks) or next(iter(differences(Card.from_json(content))), None)
    if wrong is not None:
        raise TamperError(f"Card of {card.algorithm}: {wrong}; the run that made it is not what its card says.")
    return {"card": content, "checked": len(checks)}
