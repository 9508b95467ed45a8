"""One registry of kinds: what a name on a card, in a study or in a model file means.

A kind is a frozen dataclass (a loss, a noise, a theorem, ...) or, for a solver, a module of rules. It belongs to a
family and is written `family.Name`: "losses.Logistic", "events.Gaussian". Kinds are found, not listed: a file in the
package of its family is all that is needed, or a module that another distribution names in an entry point of the group
`consenso.losses`, `consenso.algorithms` and so on, for every open family below. A family with two kinds of one name
cannot be imported.

Files of version 0.1.0 have names without a family, and some that have changed since: `RENAMED` knows them.
"""

from __future__ import annotations

import dataclasses
import difflib
import importlib
import importlib.metadata
import inspect
import pkgutil
import re
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from types import ModuleType
from typing import Any

from consenso.errors import ConsensoError, InputError


@dataclasses.dataclass(frozen=True)
class Family:
    """Where the kinds of a family are found: modules or packages, and attributes one of which every kind has.

    Without attributes, every public frozen dataclass of the modules is one. `is_open`: others may add theirs.
    """

    modules: tuple[str, ...]
    marks: tuple[str, ...] = ()
    is_open: bool = False


FAMILIES = {
    "losses": Family(("consenso.losses",), ("prox_slope",), is_open=True),
    "regularizers": Family(("consenso.regularizers",), ("prox",), is_open=True),
    "schedules": Family(("consenso.schedules",), ("participation",), is_open=True),
    "trusts": Family(("consenso.trust",), ("noise_by",), is_open=True),
    "observers": Family(("consenso.privacy.observers",), ("reads_messages",), is_open=True),
    "noises": Family(("consenso.privacy.noise",), ("sample",), is_open=True),
    "patterns": Family(("consenso.privacy.noise",), ("at",)),
    # An algorithm has an example; sequences and subproblems that are its parameters have `at` or `solve`.
    "algorithms": Family(("consenso.algorithms",), ("example", "at", "solve"), is_open=True),
    "operators": Family(("consenso.operators",), ("apply", "active", "averagedness")),
    "facts": Family(("consenso.topology", "consenso.privacy.count", "consenso.privacy.earlier")),
    "theorems": Family(("consenso.privacy.theorems",), ("citation", "is_part"), is_open=True),
    "events": Family(("consenso.privacy.events",), ("magnify",), is_open=True),
    "solvers": Family(("consenso.solvers",), ("recipe",), is_open=True),
}
#: What a plan is made of, and a card or a study may spell out.
PLANNED = ("algorithms", "losses", "regularizers", "schedules", "noises", "patterns", "operators", "facts")
#: What a guarantee is made of.
PROVED = ("theorems", "events")
#: Names of version 0.1.0 that are others today.
RENAMED = {
    "theorems": {
        "TheoremF": "MeanOfNoisyStates",
        "TheoremP": "PoissonSampledSums",
        "SumVariantA": "IncrementalSums",
        "SumVariantB": "StateSums",
        "SumVariantC": "DualSums",
        "StatelessWalk": "WalkWithoutStates",
    },
    "events": {"Walk": "TokenWalk"},
    "patterns": {"Table": "PerRound"},
    "units": {"user": "party"},
    "PreconditionedFixedPoint": {"looks": "moment_releases", "pilot": "warmup_steps"},
}

_KINDS: dict[str, dict[str, Any]] = {family: {} for family in FAMILIES}
_FAMILY_OF: dict[Any, str] = {}


def register(family: str, kind: Any) -> None:
    """Add a kind to its family; InputError where its name belongs to another one."""
    name = _own_name(kind)
    if isinstance(kind, type) and not _is_frozen(kind):
        raise InputError(
            f"{family}.{name}: a kind is a frozen dataclass, and this is none; use @dataclass(frozen=True)."
        )
    known = _KINDS[family].setdefault(name, kind)
    if known is not kind and _origin(known) != _origin(kind):
        raise InputError(f"{family}.{name}: the name belongs to {_origin(known)} and to {_origin(kind)}; rename one.")
    _KINDS[family][name] = kind
    _FAMILY_OF[kind] = family


def kinds(family: str) -> dict[str, Any]:
    """Every kind of a family by its name, in alphabetical order; its modules and entry points are imported."""
    _load(family)
    return dict(sorted(_KINDS[family].items()))


def name_of(kind: type[Any]) -> str:
    """`family.Name`; where a class is not registered, its Python path, which nothing finds."""
    if kind not in _FAMILY_OF:
        own = kind.__module__.startswith("consenso.")
        for family, where in FAMILIES.items():
            if not own:
                _load(family)
            elif {kind.__module__, kind.__module__.rpartition(".")[0]} & set(where.modules):
                _read(family, sys.modules[kind.__module__])  # the rest of the family is not needed for a name
    family_of = _FAMILY_OF.get(kind)
    return _origin(kind) if family_of is None else f"{family_of}.{_own_name(kind)}"


def find(name: str, families: Iterable[str]) -> Any:
    """The kind of a qualified name, or of a name of version 0.1.0 in one of the families; InputError where none is."""
    given, _, bare = name.rpartition(".")
    found = {}
    for family in families:
        if given in ("", family):
            known = _KINDS[family].get(bare) or kinds(family).get(rename(family, bare))
            if known is not None:
                found[f"{family}.{_own_name(known)}"] = known
    if len(found) == 1:
        return next(iter(found.values()))
    if found:
        raise InputError(f"{name!r} could be {' or '.join(found)}; write one of these.")
    raise InputError(f"{name!r} is not known to this version.")


def rename(family: str, name: str) -> str:
    """What is called so today; `family` may also be "units", or the name of a kind for its parameters."""
    return RENAMED.get(family, {}).get(name, name)


def short_name(kind: type[Any]) -> str:
    """The name in studies: the alias that a class states, or its name in small letters with hyphens."""
    alias: str | None = vars(kind).get("alias")
    return alias or re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", kind.__name__).lower()


def short_names(family: str) -> dict[str, type[Any]]:
    """The kinds of a family by the names of studies."""
    return {short_name(kind): kind for kind in kinds(family).values()}


def spell(name: str, families: Iterable[str]) -> Any:
    """The kind that a person means: case, hyphens and blanks do not count; InputError says what was likely meant."""
    given, _, bare = name.rpartition(".")
    families = [family for family in families if plain_name(given) in ("", family)]
    found: dict[str, Any] = {}
    for family in families:
        for kind in kinds(family).values():
            old = [former for former, now in RENAMED.get(family, {}).items() if now == kind.__name__]
            if plain_name(bare) in map(plain_name, (short_name(kind), kind.__name__, *old)):
                found[f"{family}.{kind.__name__}"] = kind
    if len(found) > 1:
        raise InputError(f"{name!r} could be {' or '.join(found)}; write one of these")
    if not found:
        raise InputError(f"{name!r} is not known; {nearest(name, [n for each in families for n in short_names(each)])}")
    return next(iter(found.values()))


def plain_name(name: str) -> str:
    """A name as people vary it: case, hyphens, underscores and blanks do not count."""
    return "".join(letter for letter in name.lower() if letter not in "-_ ")


def nearest(given: str, names: Iterable[str]) -> str:
    """A proposal for a name that is not known, as the end of a sentence."""
    names = list(names)
    plain = {plain_name(name): name for name in reversed(names)}
    asked = plain_name(given)
    # "centralized" is a longer "central", however near "decentralized" is by its letters.
    longest = max((name for name in plain if name and asked.startswith(name)), key=len, default=None)
    close = [longest] if longest is not None else difflib.get_close_matches(asked, list(plain), n=1)
    if close:
        return f"did you mean {plain[close[0]]!r}?"
    return f"choose one of {', '.join(names)}" if names else "there is none to set"


@cache
def _load(family: str) -> None:
    where = FAMILIES[family]
    sources = [importlib.import_module(module) for module in where.modules]
    for module in _with_inner(sources):
        _read(family, module)
    if where.is_open:
        for entry, source in load_entries(family):
            _register_all(family, entry, source)


def _read(family: str, module: ModuleType) -> None:
    for kind in _kinds_in(module, FAMILIES[family]):
        register(family, kind)


def load_entries(group: str) -> Iterator[tuple[importlib.metadata.EntryPoint, Any]]:
    """What other distributions name in the entry points `consenso.<group>`, loaded."""
    for entry in importlib.metadata.entry_points(group=f"consenso.{group}"):
        yield entry, load_entry(entry)


def load_entry(entry: importlib.metadata.EntryPoint) -> Any:
    """What one entry point names."""
    try:
        return entry.load()
    except ConsensoError:
        raise
    except Exception as error:
        raise InputError(
            f"entry point {entry.name} = {entry.value} of {entry.group}: it cannot be loaded ({error}); repair or "
            "uninstall its distribution."
        ) from error


def _register_all(family: str, entry: importlib.metadata.EntryPoint, source: Any) -> None:
    """Register what an entry point names: a kind, a module of kinds, or a package of such modules."""
    found = [source]
    if isinstance(source, ModuleType):
        found = [kind for module in _with_inner([source]) for kind in _kinds_in(module, FAMILIES[family])]
    if not found:
        raise InputError(
            f"entry point {entry.name} = {entry.value} of consenso.{family}: no kind is there, which has "
            f"{' or '.join(FAMILIES[family].marks)}; name its module."
        )
    for kind in found:
        register(family, kind)


def _with_inner(sources: Iterable[ModuleType]) -> Iterator[ModuleType]:
    for source in sources:
        yield source
        for inner in pkgutil.iter_modules(getattr(source, "__path__", ())):
            if inner.name == "kernels":  # compiled loops: no kinds, and slow to import
                continue
            yield importlib.import_module(f"{source.__name__}.{inner.name}")


def _kinds_in(module: ModuleType, where: Family) -> Iterator[Any]:
    if hasattr(module, "NAME") and any(hasattr(module, mark) for mark in where.marks):  # the rules of a solver
        yield module
        return
    for value in list(vars(module).values()):
        own = isinstance(value, type) and value.__module__ == module.__name__ and not value.__name__.startswith("_")
        if inspect.isabstract(value) or not own:
            continue
        if _is_frozen(value) and (not where.marks or any(hasattr(value, mark) for mark in where.marks)):
            yield value


def _is_frozen(kind: type[Any]) -> bool:
    parameters = vars(kind).get("__dataclass_params__")
    return parameters is not None and bool(parameters.frozen)


def _own_name(kind: Any) -> str:
    return str(kind.NAME) if isinstance(kind, ModuleType) else str(kind.__name__)


def _origin(kind: Any) -> str:
    return str(kind.__name__) if isinstance(kind, ModuleType) else f"{kind.__module__}.{kind.__qualname__}"
