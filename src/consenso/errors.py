"""What can go wrong, by who has to act.

Every message is one sentence that names the parameter, states what must hold, what was given and what to do.
"""

from __future__ import annotations

import math
import numbers

# How errors name places: by the line of a file that has lines, else by the number of the row, as NumPy and pandas do.
COUNTED = "rows count from 0"


def write_count(number: int, noun: str) -> str:
    """A number with its noun, as in "1 round" and "2 rounds"."""
    if number != 1:
        noun = f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}s"
    return f"{number:,} {noun}"


class ConsensoError(Exception):
    """Any error that this library raises on purpose."""


class InputError(ConsensoError, ValueError):
    """A parameter, a file or a table is not what it must be; nothing was touched or spent."""


class MessageError(InputError):
    """A message is not what it must be; the sentence says why and quotes nothing of it."""


class PrivacyError(ConsensoError):
    """Going on would break a guarantee."""


class StepError(PrivacyError):
    """A step on private rows could not be taken to the end. That it happened is private: a party answers."""


class UndeclaredReleaseError(PrivacyError):
    """A value was taken to the releaser that the algorithm did not declare, or more or less often than declared."""


class PreconditionError(PrivacyError, ValueError):
    """A theorem was asked for outside the conditions under which it is proved."""


class UnsupportedEventError(PrivacyError):
    """No cost of the requested kind is known for an event."""


class BudgetError(PrivacyError):
    """A ledger does not allow what was asked."""


class TamperError(PrivacyError):
    """A ledger or a card does not say what it said when it was written."""


def name_row(row: int) -> str:
    """A row of a table in memory, or of a file without lines, as every error names it."""
    return f"row {row} ({COUNTED})"


def is_finite(value: object) -> bool:
    """Whether a parameter is a finite number."""
    return isinstance(value, numbers.Real) and math.isfinite(value)


def check_positive(owner: str, parameter: str, value: float, advice: str) -> None:
    """A parameter is a finite number above 0."""
    if not (is_finite(value) and value > 0):
        raise InputError(f"{owner}({parameter}={value!r}): a {parameter} is a finite number above 0; {advice}.")
