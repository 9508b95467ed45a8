"""What version 0.1.0 stated on cards and is not true, so that a reader of such a card is told.

The numbers of such a card follow from the theorem beside them; it is the theorem that does not hold for the run.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

WRONG_VERSION = "0.1.0"
ANEW = "make it anew: train or fit again with this version"
# Bounds that could be put on a card by hand; no plan stated them, and this version cannot compute them.
UNSTATED = {
    *("LocalView", "NoiseShares", "RecordInParty", "SumVariantA", "SumVariantB", "SumVariantC", "TheoremP"),
    *("SamplingRevealed", "GeneralSplitting", "IPADMMSteps", "MinibatchIPADMM", "NetworkedSteps", "LaplaceTotal"),
    *("SecondMoment", "PreconditionedSteps"),
}


def version_of(card: Mapping[str, Any]) -> str | None:
    """The version of this library that wrote a card, if the card says so."""
    versions = card.get("versions")
    found = versions.get("consenso") if isinstance(versions, Mapping) else None
    return found if isinstance(found, str) else None


def withdrawn(card: Mapping[str, Any]) -> str | None:
    """Why the claims of a card, in the names of today, are no longer made, in one sentence; None if they are."""
    if version_of(card) != WRONG_VERSION:
        return None
    reasons = dict.fromkeys(reason for entry in card["entries"] for reason in _reasons(card, entry))
    if not reasons:
        return None
    return f"this card was written by version {WRONG_VERSION}, which stated {', and '.join(reasons)}; {ANEW}"


def advice(card: Mapping[str, Any], current: str) -> str:
    """What to do about a card of another version that does not follow; empty for one of this version."""
    version = version_of(card)
    return "" if version in (None, current) else f"; the card was written by version {version}; {ANEW}"


def _reasons(card: Mapping[str, Any], entry: Mapping[str, Any]) -> Iterator[str]:
    told, data = card["parameters"], card["data"]
    noise, schedule = list(told.get("noise", {}).values()), told.get("schedule", {}).get("kind")
    if data.get("adjacency") == "replace-one" and entry["adjacency"] == "add-remove":
        yield "an epsilon under add-remove of a replace-one run, which uses the number of records and shows it"
    kinds = [entry["theorem"], *(kind["theorem"] for kind in (entry["spread"] or {}).get("kinds", ()))]
    names = {theorem["kind"] for theorem in kinds}
    for name in sorted(names & UNSTATED):
        yield f"{name}, a bound that no plan states and that composing the releases gives as well"
    if names & {"theorems.MeanOfNoisyStates", "theorems.WalkWithoutStates"} and any(
        _is_weaker_later(each) for each in noise
    ):
        yield "an epsilon from the noise of the first round, although later rounds have less noise or no Gaussian noise"
    algorithm = told.get("algorithm")
    clipped = (
        isinstance(algorithm, Mapping)
        and algorithm["kind"] == "algorithms.ConsensusADMM"
        and algorithm["clip"] is not None
    )
    if clipped and (entry["unit"], entry["adjacency"]) == ("party", "add-remove"):
        yield "that a party that is gone moves a clipped residual by the clip, although it moves it by twice the clip"
    leaves = [(event["kind"], count) for event, count in _leaves(entry["event"])]
    hidden = {kind: count for kind, count in leaves if kind.startswith("events.Sampled")}
    if "events.SampledFixedSize" in hidden and entry["observer"].partition(":")[0] in ("peer", "coalition"):
        yield "that a sample of fixed size is hidden from a party, which knows whether it was drawn itself"
    several = len(noise) > 1 or max(hidden.values(), default=0) > told["rounds"]
    if hidden and several and schedule in ("schedules.PoissonSubset", "schedules.FixedSubset"):
        yield "several releases of a sampled round as if each had a sample of its own"


def _is_weaker_later(noise: Mapping[str, Any]) -> bool:
    if noise["kind"] != "noises.GaussianNoise":
        return True
    multiplier = noise["multiplier"]
    if not isinstance(multiplier, Mapping):
        return False
    if multiplier["kind"] == "patterns.Geometric":
        return bool(multiplier["ratio"] < 1)
    if multiplier["kind"] == "patterns.Polynomial":
        return bool(multiplier["power"] < 0)
    return bool(multiplier["kind"] == "patterns.PerRound" and min(multiplier["values"]) < multiplier["values"][0])


def _leaves(event: Mapping[str, Any], count: int = 1) -> Iterator[tuple[Mapping[str, Any], int]]:
    """Events that hold no others, and how often each is repeated."""
    if "event" in event:
        yield from _leaves(event["event"], count * int(event.get("count", 1)))
    elif "events" in event:
        for inner in event["events"]:
            yield from _leaves(inner, count)
    else:
        yield event, count
