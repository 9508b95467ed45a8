"""What is wrong with a command as it was typed, in one sentence of its own words.

Click speaks of floats, arguments and usage. Here an option is named as it was typed, with what it takes.
"""

from __future__ import annotations

import difflib
import re
from typing import Any

import click

_GIVEN = re.compile(r"(?P<quote>['\"])(?P<text>.*)(?P=quote) is not|(?P<number>\S+) is not in the range")


def explain(error: click.ClickException) -> str:
    """The sentence for a mistake, and where to read more."""
    context = getattr(error, "ctx", None)
    if context is None:
        return _say(error, context)
    more = "lists the commands" if isinstance(context.command, click.Group) else "tells what it takes"
    return f"{_say(error, context)}\n{context.command_path} -h {more}."


def _say(error: click.ClickException, context: click.Context | None) -> str:
    if isinstance(error, click.MissingParameter) and error.param is not None:
        return f"{_name(error.param)} is missing: {_describe(error.param)}"
    if isinstance(error, click.BadParameter) and error.param is not None:
        given = _GIVEN.match(error.message)
        text = "" if given is None else f" {given['number'] or given['text']}"
        return f"{_name(error.param)}{text}: {_need(error.param.type, text.strip()) or error.message}"
    if isinstance(error, click.NoSuchOption):
        return f"{error.option_name}: there is no such option{_suggest(list(error.possibilities or []))}"
    if isinstance(error, click.BadOptionUsage):
        return f"{error.option_name} needs a value after it."
    extra = re.fullmatch(r"Got unexpected extra arguments? \((.*)\)", error.message)
    if extra is not None and context is not None:
        takes = " ".join(_name(each) for each in context.command.params if isinstance(each, click.Argument))
        return f"{extra[1]}: more than the command takes, which is {takes or 'options only'}."
    command = re.match(r"No such command '(.*?)'", error.message)
    if command is not None and context is not None and isinstance(context.command, click.Group):
        near = difflib.get_close_matches(command[1], context.command.commands)
        return f"{command[1]}: there is no such command{_suggest(near)}"
    return error.message


def _name(param: click.Parameter) -> str:
    """An option as it is typed, an argument as help shows it."""
    if isinstance(param, click.Argument):
        return (param.metavar or param.name or "").upper()
    return max(param.opts, key=len)


def _describe(param: click.Parameter) -> str:
    """What help says of it."""
    text = " ".join((getattr(param, "help", None) or "").split())
    return text if text.endswith(".") else f"{text}."


def _need(kind: Any, given: str) -> str:
    """What an option of this type takes."""
    if isinstance(kind, click.Choice):
        words = [str(getattr(choice, "value", choice)) for choice in kind.choices]
        return f"{' or '.join(words)} is needed{_suggest(difflib.get_close_matches(given, words))}"
    if isinstance(kind, click.types.IntParamType):
        return f"a whole number{_range(kind)} is needed."
    if isinstance(kind, click.types.FloatParamType):
        return f"a number{_range(kind)} is needed."
    return ""


def _range(kind: Any) -> str:
    low, high = getattr(kind, "min", None), getattr(kind, "max", None)
    if low is not None and high is not None:
        return f" from {low} to {high}"
    return f" of at least {low}" if low is not None else f" of at most {high}" if high is not None else ""


def _suggest(near: list[str]) -> str:
    """How the sentence ends: with what was probably meant, if anything is near."""
    return f"; did you mean {' or '.join(near)}?" if near else "."
