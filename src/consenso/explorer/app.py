"""The application: the page, the plan for a position of the sliders, the study to write, and the state of a run."""

from __future__ import annotations

import json
import math
import secrets
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

from consenso.errors import ConsensoError, InputError
from consenso.explorer.controls import changes, controls
from consenso.explorer.pairs import node_of, view_of
from consenso.pages import STYLE
from consenso.privacy.card.odds import right_of_hundred
from consenso.privacy.guarantee import is_useful
from consenso.report.expected import curves_of, note_of
from consenso.report.promised import table_html
from consenso.study import Study
from consenso.study.forecast import forecast
from consenso.study.plan_summary import summarize_plan

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response

LARGEST = 1 << 16  # bytes of a request
# Enough to see the shape while somebody waits; `consenso forecast` takes its time.
EPSILONS, RUNS, RECORDS = (0.1, 0.3, 1.0, 3.0, 10.0), 2, 3000
LOCAL = ("127.0.0.1", "localhost", "::1")


def application(study: Study, *, out: Path, run: Path | None = None) -> Starlette:
    """A Starlette application for one study. `out` is the file that the page may write, `run` a folder to watch."""
    from starlette.applications import Starlette
    from starlette.concurrency import run_in_threadpool
    from starlette.responses import HTMLResponse, JSONResponse
    from starlette.routing import Route

    # Another page of the same browser can reach loopback; it does not know this token.
    token = secrets.token_urlsafe(32)

    async def read_request(request: Request) -> dict[str, Any]:
        if request.headers.get("x-consenso-token") != token:
            raise InputError("This request does not come from the page of the explorer; reload it.")
        body = await request.body()
        if len(body) > LARGEST:
            raise InputError("The request is too long.")
        try:
            content = json.loads(body or b"{}")
        except ValueError:
            raise InputError("The request is not JSON.") from None
        if not isinstance(content, dict):
            raise InputError("The request is not an object.")
        return content

    def change_study(content: dict[str, Any]) -> Study:
        wanted = changes(content)
        return study.change(wanted) if wanted else study

    async def page(request: Request) -> Response:
        text = resources.files("consenso.explorer").joinpath("page.html").read_text(encoding="utf-8")
        start = json.dumps({**controls(study), "token": token, "watching": run is not None}).replace("<", "\\u003c")
        shown = text.replace("/*STYLE*/", STYLE).replace("/*START*/null", start)
        return HTMLResponse(shown, headers={"Cache-Control": "no-store"})

    async def plan(request: Request) -> Response:
        content = await read_request(request)
        return JSONResponse(await run_in_threadpool(lambda: _plain(show_plan(change_study(content)))))

    async def expect(request: Request) -> Response:
        content = await read_request(request)
        found = await run_in_threadpool(lambda: show_forecast(change_study(content)))
        return JSONResponse(_plain(found))

    async def look(request: Request) -> Response:
        content = await read_request(request)
        node = node_of(content)
        content.pop("node", None)
        return JSONResponse(await run_in_threadpool(lambda: _plain(view_of(change_study(content), node))))

    async def write(request: Request) -> Response:
        content = await read_request(request)

        def save() -> dict[str, str]:
            made = change_study(content)
            made.plan()  # a study that cannot be planned is not written
            out.write_text(made.to_toml(), encoding="utf-8")
            return {"written": str(out), "study": made.digest}

        return JSONResponse(await run_in_threadpool(save))

    async def live(request: Request) -> Response:
        return JSONResponse(_status(run))

    async def refuse(request: Request, error: Exception) -> Response:
        return JSONResponse({"error": str(error)}, status_code=400)

    app = Starlette(
        routes=[
            Route("/", page),
            Route("/plan", plan, methods=["POST"]),
            Route("/forecast", expect, methods=["POST"]),
            Route("/pairs", look, methods=["POST"]),
            Route("/study", write, methods=["POST"]),
            Route("/live", live),
        ],
        exception_handlers={ConsensoError: refuse},
    )
    app.add_middleware(_LoopbackOnly)
    return app


def show_plan(study: Study) -> dict[str, Any]:
    """The plan of a study, its table of observers, and how many of 100 attackers whom it is for can be right."""
    found = summarize_plan(study)
    scope = (found.card.data["unit"], found.card.data["adjacency"])
    own = [e for e in found.card.entries if (e.unit, e.adjacency) == scope and e.epsilon == found.epsilon]
    odds = right_of_hundred(own[0]) if own and is_useful(found.epsilon) else 100
    return {**found.to_json(), "table": table_html(found.card), "odds": odds}


def show_forecast(study: Study) -> dict[str, Any]:
    """The explorer's main picture: what a study reaches at several budgets, simulated on made-up records."""
    found = forecast(study, EPSILONS, runs=RUNS, most=RECORDS)
    return {**found.to_json(), "svg": curves_of(found).svg(), "note": note_of(found)}


class _LoopbackOnly:
    """Refuses requests that name another host: a site may point its own name at this machine."""

    def __init__(self, app: Any) -> None:
        self.app = app

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            named = dict(scope["headers"]).get(b"host", b"").decode("latin-1")
            host = named.rsplit(":", 1)[0].strip("[]")
            if host not in LOCAL:
                from starlette.responses import PlainTextResponse

                await PlainTextResponse("The explorer answers on loopback only.", status_code=421)(scope, receive, send)
                return
        await self.app(scope, receive, send)


def _status(run: Path | None) -> dict[str, Any]:
    """What a run in this process tree or another wrote about itself; public figures only."""
    if run is None:
        return {"state": "none"}
    file = run / "status.json"
    if not file.exists():
        return {"state": "waiting", "folder": str(run)}
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except ValueError:  # it is being replaced
        return {"state": "waiting", "folder": str(run)}
    return {"folder": str(run), **content} if isinstance(content, dict) else {"state": "waiting", "folder": str(run)}


def _plain(value: Any) -> Any:
    """JSON has no infinities."""
    if isinstance(value, dict):
        return {str(name): _plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return "inf" if value > 0 else str(value)
    return value
