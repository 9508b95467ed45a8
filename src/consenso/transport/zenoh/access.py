"""Who may say what on which key: bound to the names on certificates, everything else is denied.

Mutual TLS alone lets every holder of a certificate speak on every key and listen to all of them. These rules leave to
each neighbour its own keys only: `<prefix>/to/<i>/from/<j>` is where j asks i, and where i answers j.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

PREFIX = "consenso/1"
HUB = "hub"  # where a number of a party would stand

Rule = tuple[str, list[str], str, str]  # whose certificate, which messages, which way, on which key


def question_key(to: int | str, asker: int | str) -> str:
    """Where one asks another."""
    return f"{PREFIX}/to/{to}/from/{asker}"


def presence_key(who: int | str) -> str:
    """Where one shows that it is there."""
    return f"{PREFIX}/up/{who}"


def _asks(me: int | str, other: int | str, name: str) -> list[Rule]:
    """I may ask the other, who alone may answer."""
    key = question_key(other, me)
    return [(name, ["declare_queryable", "reply"], "ingress", key), (name, ["query"], "egress", key)]


def _answers(me: int | str, other: int | str, name: str) -> list[Rule]:
    """The other may ask me, and gets my answer."""
    key = question_key(me, other)
    return [(name, ["declare_queryable", "reply"], "egress", key), (name, ["query"], "ingress", key)]


def _sees(other: int | str, name: str) -> list[Rule]:
    """I see whether the other is there."""
    key = presence_key(other)
    return [
        (name, ["liveliness_token", "reply"], "ingress", key),
        (name, ["declare_liveliness_subscriber", "liveliness_query"], "egress", key),
    ]


def _shows(me: int | str, name: str) -> list[Rule]:
    """The other sees whether I am there."""
    key = presence_key(me)
    return [
        (name, ["liveliness_token", "reply"], "egress", key),
        (name, ["declare_liveliness_subscriber", "liveliness_query"], "ingress", key),
    ]


def star_hub(names: Mapping[int, str]) -> dict[str, Any]:
    """Rules of the server: it asks every party on that party's key and sees who is there."""
    rules: list[Rule] = []
    for party, name in names.items():
        rules += [*_asks(HUB, party, name), *_sees(party, name), *_shows(HUB, name)]
    return _configure(rules)


def star_party(party: int, hub: str) -> dict[str, Any]:
    """Rules of a client: the server alone may ask it."""
    return _configure([*_answers(party, HUB, hub), *_shows(party, hub), *_sees(HUB, hub)])


def graph_node(party: int, neighbours: Mapping[int, str]) -> dict[str, Any]:
    """Rules of a peer: it and each neighbour may ask each other."""
    rules: list[Rule] = []
    for other, name in neighbours.items():
        rules += [*_asks(party, other, name), *_answers(party, other, name)]
        rules += [*_sees(other, name), *_shows(party, name)]
    return _configure(rules)


def _configure(rules: Iterable[Rule]) -> dict[str, Any]:
    """Rules as Zenoh reads them."""
    listed = list(rules)
    names = {name: f"subject-{place}" for place, name in enumerate(dict.fromkeys(rule[0] for rule in listed))}
    return {
        "enabled": True,
        "default_permission": "deny",
        "rules": [
            {"id": f"rule-{place}", "permission": "allow", "messages": messages, "flows": [flow], "key_exprs": [key]}
            for place, (_, messages, flow, key) in enumerate(listed)
        ],
        "subjects": [{"id": subject, "cert_common_names": [name]} for name, subject in names.items()],
        "policies": [
            {"rules": [f"rule-{place}"], "subjects": [names[name]]} for place, (name, _, _, _) in enumerate(listed)
        ],
    }
