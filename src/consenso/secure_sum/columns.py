"""The fields of a round's message as columns of integers."""

from __future__ import annotations

from collections.abc import Mapping

from consenso.engine.fixed_point import GridColumn, Grids
from consenso.errors import PreconditionError
from consenso.federation.message_schemas import BOUND, SHARE, MessageSchema
from consenso.privacy.declarations import Declaration
from consenso.privacy.run_spec import RunSpec


def columns(
    spec: RunSpec, declaration: Declaration, round_: int, form: MessageSchema, told: Mapping[str, tuple[float, float]]
) -> tuple[GridColumn, ...]:
    """The columns of a round's message. `told` gives the bound and the share that each sealed field named."""
    grids = Grids(spec, declaration, round_)
    found = []
    for each in form.schema.fields:
        if each.name.endswith((BOUND, SHARE)):
            continue
        if each.kind not in ("f8", "f4") or not each.shape or each.shape[0] != 1:
            raise PreconditionError(
                f"secure sum: field {each.name!r} of {form.record.__name__} is not one row of numbers for a party, and "
                "only such fields are summed."
            )
        if each.name in form.sealed:
            grid = grids.contribution(form.sealed[each.name].release.name, *told[each.name])
            found.append(GridColumn(name=each.name, shape=each.shape[1:], grid=grid))
        else:
            found.append(GridColumn(name=each.name, shape=each.shape[1:], grid=grids.own(), words=2))
    return tuple(found)
