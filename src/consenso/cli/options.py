"""Options that several commands share, so that they say the same everywhere."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from consenso.cli.completing import complete_runs, complete_studies
from consenso.errors import InputError

MOST_SECONDS = 10**8  # three years


def check_seconds(param: typer.CallbackParam, seconds: float) -> float:
    if not 0 <= seconds <= MOST_SECONDS:
        raise InputError(f"{param.opts[0]} {seconds:g}: a number of seconds from 0 to {MOST_SECONDS} is needed.")
    return seconds


StudyArgument = Annotated[Path, typer.Argument(help="A study.", autocompletion=complete_studies, show_default=False)]
SharedStudyArgument = Annotated[
    Path,
    typer.Argument(
        help="The study that all parties have accepted.", autocompletion=complete_studies, show_default=False
    ),
]
AcceptedStudyArgument = Annotated[
    Path,
    typer.Argument(
        help="The study, as you have read and accepted it.", autocompletion=complete_studies, show_default=False
    ),
]
CardArgument = Annotated[
    Path, typer.Argument(help="The folder of a run, or a card.", autocompletion=complete_runs, show_default=False)
]
JsonOption = Annotated[bool, typer.Option("--json", help="Answer as JSON.")]
JsonWithoutBarOption = Annotated[bool, typer.Option("--json", help="Answer as JSON, without a progress bar.")]
EpsilonOption = Annotated[
    float | None,
    typer.Option("--epsilon", help="Another budget than that of the study, at its delta.", show_default=False),
]
RunFolderOption = Annotated[
    Path | None, typer.Option(help="Folder of the run; by default runs/ and the name of the study, beside it.")
]

# Of a server, a party and a peer.
OwnNameOption = Annotated[str, typer.Option(help="Your name in the study and on your certificate.", show_default=False)]
OwnCertsOption = Annotated[
    Path, typer.Option(help="Folder with ca.pem, your cert.pem and your key.pem.", show_default=False)
]
OwnDataOption = Annotated[
    Path | None, typer.Option(help="Your table; without it, the one that the study names for you.")
]
OwnLedgerOption = Annotated[
    Path | None, typer.Option(help="Your budget ledger; needed unless the study is a simulation with a seed.")
]
OwnStateOption = Annotated[
    Path | None, typer.Option(help="Private folder of your state and journal; by default ./<your name>.state.")
]
OwnRunOption = Annotated[
    Path | None, typer.Option(help="Folder for the model and the card; by default ./<your name>.run.")
]
LabelOption = Annotated[str, typer.Option(help="Tells repeated runs of one study apart; the same for everybody.")]
PortOption = Annotated[
    int | None,
    typer.Option(
        "--status-port",
        help="Serve a live page (and JSON) on this port of the loopback address; 0 for any.",
        min=0,
        max=65535,
    ),
]
JsonLinesOption = Annotated[bool, typer.Option("--json", help="One JSON object a line instead of a panel.")]
