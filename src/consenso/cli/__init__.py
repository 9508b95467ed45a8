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


def build() -> typer.Typer:
    """The application with every command of this package."""
    app = typer.Typer(
        name="consenso",
        help="Private ADMM: train convex models on sensitive data, with guarantees for every observer.",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        rich_markup_mode="rich",
    )
    for module in sorted(pkgutil.iter_modules(__path__), key=lambda found: found.name):
        loaded = importlib.import_module(f"{__name__}.{module.name}")
        if hasattr(loaded, "register"):
            loaded.register(app)
    return app


def main() -> None:
    """Run the command line; an error of this library is one line on standard error and exit code 2."""
    try:
        build()()
    except ConsensoError as error:
        typer.secho(f"consenso: {error}", fg=typer.colors.RED, err=True)
        sys.exit(2)
