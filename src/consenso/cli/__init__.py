"""The command line: one module per command, found by discovery.

A module of this package offers `register(app)`, which adds its command or group of commands. Modules import what is
heavy inside their functions, so that `consenso --help` answers at once.
"""

from __future__ import annotations

import importlib
import pkgutil
import sys

import typer

from consenso.errors import ConsensoError

HELP = """Private ADMM: train convex models on sensitive data, with guarantees for every observer.

A study is one file that says what is learnt, from which table, for whom it is private, and how.

- `consenso study new study.toml` asks a few questions and writes one.

- `consenso plan study.toml` tells noise, rounds and guarantees before data are touched.

- `consenso train study.toml` runs it: a model, a privacy card, a report.

- `consenso verify runs/study` computes every number of the card again.

Exit codes: 0 fine, 1 a check failed, 2 bad input, 130 stopped by Ctrl-C.
`--install-completion` adds completion to your shell.
"""


def build() -> typer.Typer:
    """The application with every command of this package."""
    app = typer.Typer(
        name="consenso",
        help=HELP,
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        rich_markup_mode="markdown",
    )
    for module in sorted(pkgutil.iter_modules(__path__), key=lambda found: found.name):
        loaded = importlib.import_module(f"{__name__}.{module.name}")
        if hasattr(loaded, "register"):
            loaded.register(app)
    return app


def main() -> None:
    """Run the command line; an error of this library is one message on standard error and exit code 2."""
    try:
        build()()
    except ConsensoError as error:
        typer.secho(f"consenso: {error}", fg=typer.colors.RED, err=True)
        sys.exit(2)
    except MemoryError:
        typer.secho("consenso: not enough memory for this study on this machine.", fg=typer.colors.RED, err=True)
        sys.exit(2)
