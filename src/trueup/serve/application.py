"""The web application: all routes over one set of services, behind one guard."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.staticfiles import StaticFiles

import trueup.serve
from trueup.exceptions import TrueupError
from trueup.serve import api, card_pages, exports, owner_pages
from trueup.serve.guard import Guard
from trueup.serve.rendering import Pages, wants_json
from trueup.serve.services import Services

# Nothing is told to anybody, whatever the environment says. Versions without telemetry take no notice.
_NO_TELEMETRY: Any = {"tracing": False, "metrics": False, "logs": False, "auto_configure": False}


def make_app(services: Services) -> Guard:
    """The application of a server.

    Parameters
    ----------
    services : Services
    """

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        services.estimating.start()
        try:
            yield
        finally:
            services.stopping.set()
            services.estimating.stop()

    app = FastAPI(
        title="trueup vetting",
        version="1",
        description="Ask, tell, skip, correct and estimate over the network; the verbs of `trueup.ActiveTest`.",
        docs_url=None,  # they would load scripts from elsewhere
        redoc_url=None,
        openapi_url="/api/openapi.json",
        lifespan=lifespan,
        redirect_slashes=False,  # it would build an absolute address
        telemetry=_NO_TELEMETRY,
    )
    pages = Pages(services)
    app.state.services, app.state.pages = services, pages
    folder = trueup.serve.__path__[0]
    app.mount("/static", StaticFiles(directory=f"{folder}/static"), name="static")
    for routes in (card_pages.router, owner_pages.router, exports.router, api.router):
        app.include_router(routes)

    async def refuse(request: Request, error: Exception) -> Response:
        """One sentence, as a page or as JSON; never a traceback."""
        status, sentence = _told(services, error)
        if wants_json(request):
            return JSONResponse({"error": sentence}, status, headers=_headers(error))
        return pages.error(request, status, sentence, headers=_headers(error))

    app.add_exception_handler(HTTPException, refuse)
    app.add_exception_handler(RequestValidationError, refuse)
    app.add_exception_handler(TrueupError, refuse)
    return Guard(app, address=services.address)


def _told(services: Services, error: Exception) -> tuple[int, str]:
    words = services.texts["errors"]
    if isinstance(error, HTTPException):
        return error.status_code, words["not_found"] if error.status_code == 404 else str(error.detail)
    if isinstance(error, RequestValidationError):
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"] if part != "body")
        return 422, f"{where}: {first['msg']}" if where else str(first["msg"])
    assert isinstance(error, TrueupError)
    return 422, str(error.sentence)


def _headers(error: Exception) -> dict[str, str]:
    return dict(getattr(error, "headers", None) or {})
