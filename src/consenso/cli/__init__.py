"""The command line: one module per command, found by discovery.

A module of this package offers `register(app)`, which adds its command or group of commands. Modules import what is
heavy inside their functions, so that `consenso --help` answers at once.
"""

from __future__ import annotations

import importlib
import pkgutil
import re
import sys
from typing import Annotated, Any, NoReturn

import click
import typer
from typer.core import TyperGroup

from consenso.errors import ConsensoError
from consenso.registry import load_entries
from consenso.version import __version__

BAD_INPUT, STOPPED = 2, 130  # 130 is 128 + SIGINT, as shells have it

HELP = """Private ADMM: train convex models on sensitive data, with guarantees for every observer.

A study is one file that says what is learnt, from which table, for whom it is private, and how.

- `consenso study new study.toml` asks a few questions and writes one.

- `consenso plan study.toml` tells noise, rounds and guarantees before data are touched.

- `consenso train study.toml` runs it: a model, a privacy card, a report.

- `consenso verify runs/study` computes every number of the card again.

Exit codes of every command: 0 fine, 1 a check failed, 2 bad input, 130 stopped by Ctrl-C.
`--install-completion` adds completion to your shell.
"""


class Commands(TyperGroup):
    """All commands; Ctrl-C in any of them ends it with one line."""

    def invoke(self, ctx: click.Context) -> Any:
        # Typer would make an exit of it that says nothing.
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            raise click.Abort from None


def build() -> typer.Typer:
    """The application with every command of this package."""
    app = typer.Typer(
        name="consenso",
        cls=Commands,
        help=HELP,
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        rich_markup_mode="markdown",
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(_options)
    for module in sorted(pkgutil.iter_modules(__path__), key=lambda found: found.name):
        loaded = importlib.import_module(f"{__name__}.{module.name}")
        if hasattr(loaded, "register"):
            loaded.register(app)
    for _, engine in load_entries("engines"):  # those of other distributions
        engine.register(app)
    return app


def _show_version(asked: bool) -> None:
    if asked:
        typer.echo(f"consenso {__version__}")
        raise typer.Exit


def _options(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_show_version, is_eager=True)
    ] = False,
) -> None: ...


def main() -> None:
    """Run the command line; what is wrong is one message on standard error and exit code 2."""
    try:
        sys.exit(build()(standalone_mode=False, prog_name="consenso"))
    except click.exceptions.NoArgsIsHelpError as error:
        typer.echo(error.ctx.get_help() if error.ctx else "", nl=False)
        sys.exit(BAD_INPUT)
    except click.ClickException as error:
        from consenso.cli.mistakes import explain

        _refuse(explain(error))
    except ConsensoError as error:
        _refuse(in_words(str(error)))
    except MemoryError:
        _refuse("not enough memory for this study on this machine.")
    except OSError as error:
        if error.filename is None:
            raise
        _refuse(f"{error.filename}: {error.strerror}.")
    except (KeyboardInterrupt, click.Abort):
        typer.secho("consenso: stopped", fg=typer.colors.YELLOW, err=True)
        sys.exit(STOPPED)


def _refuse(message: str) -> NoReturn:
    typer.secho(f"consenso: {message}", fg=typer.colors.RED, err=True)
    sys.exit(BAD_INPUT)


def in_words(message: str) -> str:
    """An error in the words of somebody who wrote a command or a study, not a call.

    `EpsilonDelta(epsilon=-1.0): an epsilon is positive; ...` becomes `epsilon = -1.0: an epsilon is positive; ...`. The
    name of an algorithm stays: a study states it.
    """
    call = re.match(r"(?P<name>[A-Za-z_][\w.]*)\((?P<given>(?:[^()]|\([^()]*\))*)\): ", message)
    if call is None:
        method = re.match(r"[A-Z]\w*\.\w+: ", message)
        return message if method is None else message[method.end() :]
    given = re.sub(r"(\w+)=\.\.\.", r"\1", call["given"])
    given = re.sub(r"(\w+)=", r"\1 = ", given).strip(" ,.")
    given = re.sub(r"^path = '([^']*)'$", r"\1", given)  # a path speaks for itself
    from consenso.algorithms import discover

    told = ", ".join(text for text in (call["name"] if call["name"] in discover() else "", given) if text)
    return f"{told}: {message[call.end() :]}" if told else message[call.end() :]
