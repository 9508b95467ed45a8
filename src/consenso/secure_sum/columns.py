"""A round's message as integers: its fields as columns, and how large their sums can be."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from consenso.engine.codec import MessageError, decode_values
from consenso.engine.fixed_point import GridColumn, Grids, Words, decode, encode
from consenso.errors import PreconditionError
from consenso.federation.message_schemas import BOUND, SHARE, MessageSchema
from consenso.planning.plan import Plan


def columns(
    plan: Plan, round_: int, form: MessageSchema, told: Mapping[str, tuple[float, float]]
) -> tuple[GridColumn, ...]:
    """The columns of a round's message. `told` gives the bound and the share that each term of a sum named."""
    grids = Grids(plan, plan.algorithm.releases, round_)
    found = []
    for each in form.schema.fields:
        if each.name.endswith((BOUND, SHARE)):
            continue
        if each.kind not in ("f8", "f4") or not each.shape or each.shape[0] != 1:
            raise PreconditionError(
                f"secure sum: field {each.name!r} of {form.record.__name__} is not one row of numbers for a party, and "
                "only such fields are summed."
            )
        if each.name in form.terms:
            grid = grids.contribution(form.terms[each.name].release.name, *told[each.name])
            found.append(GridColumn(name=each.name, shape=each.shape[1:], grid=grid))
        else:
            found.append(GridColumn(name=each.name, shape=each.shape[1:], grid=grids.own(), words=2))
    return tuple(found)


def integers_of(
    plan: Plan, round_: int, form: MessageSchema, message: bytes, *, taking_part: bool
) -> tuple[Words, dict[str, float]]:
    """A message as integers, with the public costs that it names.

    A party that was not sampled adds zero and its noise share: nothing at all where noise is the party's own.
    """
    values = decode_values(message, form.schema)
    told = {name: (values[name + BOUND], values[name + SHARE]) for name in form.terms}
    table = columns(plan, round_, form, told)
    parts = [
        encode(values[column.name], column)
        if taking_part or column.name in form.terms
        else np.zeros(column.size, dtype=np.uint64)
        for column in table
    ]
    costs = {name: value for name, value in values.items() if name.endswith((BOUND, SHARE))}
    return np.concatenate([*parts, np.zeros(0, dtype=np.uint64)]), costs


def check_range(
    plan: Plan, round_: int, form: MessageSchema, told: Mapping[str, tuple[float, float]], words: Words, parties: int
) -> None:
    """Refuse a sum that is larger than the declared contributions and the noise of its parties allow."""
    grids, start = Grids(plan, plan.algorithm.releases, round_), 0
    for column in columns(plan, round_, form, told):
        values = decode(words[start : start + column.size], column)
        start += column.size
        if column.name not in form.terms:
            continue
        most = grids.reach(form.terms[column.name].release.name, *told[column.name], parties) + column.grid * parties
        if not np.abs(values).max(initial=0.0) <= most:
            raise MessageError(
                f"Sum: a number in {column.name!r} is larger than the {most:.6g} that {parties} nodes and their noise "
                "can reach; a sum is wrong, or masks do not cancel."
            )
