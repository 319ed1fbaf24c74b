"""`trueup serve`: experts answer in a browser, the owner watches the interval."""

from __future__ import annotations

import functools
import tempfile
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from trueup._base.optional import require
from trueup._base.writing import check_readable
from trueup.cli._app import as_command
from trueup.cli._console import note, say
from trueup.cli._files import read_systems, read_votes
from trueup.cli._options import InputFile, PredictionOptions, VoteOptions, option
from trueup.cli._serving import TILES_SUFFIX, Served, ServeOptions, find_session, given_files, read_settings
from trueup.cli._vetting import SessionOptions, all_settings
from trueup.exceptions import InvalidParameter

if TYPE_CHECKING:
    from trueup.data.labels import Labels


@as_command
def serve(
    test: SessionOptions,
    how: VoteOptions,
    how_predicted: PredictionOptions,
    server: ServeOptions,
    files: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="VOTES PREDICTIONS… | SESSION.toml | TILES.json",
            show_default=False,
            help="The votes and the predictions, a file of settings that names them, or the tiles of 'detect vet'.",
        ),
        InputFile(),
    ] = None,
    new_link: Annotated[
        str | None,
        option("--new-link", "Make a link for this person instead, while the server runs or not.", metavar="NAME"),
    ] = None,
    new_token: Annotated[
        str | None, option("--new-token", "Make a token for programs of this person instead.", metavar="NAME")
    ] = None,
    role: Annotated[str | None, option("--role", "Of the new link or token: owner or expert.", metavar="ROLE")] = None,
    demo: Annotated[bool, typer.Option("--demo", help="Serve a session on made-up data.")] = False,
) -> None:
    """Let experts answer in a browser, and watch the interval shrink. The server is reached from this machine only."""
    for module in ("fastapi", "uvicorn", "sqlalchemy"):
        require(module, purpose="'trueup serve'")
    if demo:
        _serve_demo(server)
        return
    served = _served(given_files(files or ()), how, how_predicted, test, server)
    if new_link is not None or new_token is not None:
        _make_way_in(served, server, new_link, new_token, role)
        return
    if served is None:
        raise InvalidParameter(
            "'serve' needs files, got none; name VOTES and PREDICTIONS or SESSION.toml, or try --demo"
        )
    if served.is_about_tiles:
        _serve_tiles(served)
    else:
        _serve_files(served)


def _served(
    files: tuple[str, ...],
    how: VoteOptions,
    how_predicted: PredictionOptions,
    test: SessionOptions,
    server: ServeOptions,
) -> Served | None:
    if not files:
        return None
    if len(files) > 1:
        return Served(files[0], files[1:], how, how_predicted, test, server)
    for said in (how, how_predicted, test):
        if said != type(said)():
            raise InvalidParameter(
                f"the settings of a session stand in its file, got options beside {files[0]!r}; write them there"
            )
    if files[0].lower().endswith(TILES_SUFFIX):
        return Served(files[0], (), server=server)
    served = read_settings(Path(files[0]))
    said_here = {one.name: getattr(server, one.name) for one in fields(server)}
    changed = {name: value for name, value in said_here.items() if value is not None and value is not False}
    return replace(served, server=replace(served.server, **changed))


def _serve_files(served: Served) -> None:
    from trueup.active import ActiveTest
    from trueup.serve.running import check_estimator, run_server

    settings = served.server_settings()
    if served.test.estimator is not None:
        check_estimator(served.test.estimator)
    labels = read_votes(served.votes, served.how)
    systems = read_systems(list(served.predictions), labels, served.how_predicted, served.how)
    given = all_settings(served.test, labels, served.how, served.how_predicted)
    if served.server.show_predictions:
        given["blind"] = False
    if not labels.item_table.given:
        note("the cards show only the names of the items; add --items FILE with what experts are to look at")
    suggestions = _predicted(systems, labels) if served.server.show_predictions else None
    note("working out what the votes say …")
    run_server(
        functools.partial(ActiveTest, systems, labels, storage=served.url, name=served.name, **given),
        served.url,
        served.name,
        labels,
        settings=settings,
        look=served.look(suggestions),
        seed=given.get("random_state", 0),
        announce=say,
    )


def _serve_tiles(served: Served) -> None:
    from trueup.detection import TileSearch, TilesToSearch
    from trueup.serve.cards import Layout
    from trueup.serve.running import run_server

    settings = served.server_settings()
    check_readable(served.votes)
    tiles = TilesToSearch.read(served.votes)
    make = functools.partial(TileSearch, tiles, storage=served.url, name=served.name)
    look = replace(
        served.look(None),
        layout=Layout("tile", image="image"),
        images=Path(served.server.images or Path(served.votes).parent),
    )
    labels = TileSearch(tiles).labels
    run_server(make, served.url, served.name, labels, settings=settings, look=look, announce=say)


def _predicted(systems: Any, labels: Labels) -> list[str]:
    """What the first system says of each item."""
    codes = systems.align(labels, missing="ignore").codes
    if codes is None:
        raise InvalidParameter("--show-predictions needs predicted classes, got scores alone; leave it out")
    names = [*map(str, labels.classes.tolist()), "–"]
    return [names[code] for code in codes[0].tolist()]


def _make_way_in(
    served: Served | None, server: ServeOptions, link: str | None, token: str | None, role: str | None
) -> None:
    """Print a new link or token; the server hears of it by itself."""
    from trueup.serve.guard import ROLES, Access
    from trueup.serve.running import ServerSettings, base_url, link_line
    from trueup.storage import open_storage

    url, name = find_session(server) if served is None else (served.url, served.name)
    settings = Served("", (), server=server).server_settings() if served is None else served.server_settings()
    who = link or token or ""
    chosen: Any = role or ("owner" if who == ServerSettings().owner else "expert")
    if chosen not in ROLES:
        raise InvalidParameter(f"--role must be owner or expert, got {chosen!r}")
    storage = open_storage(url)
    try:
        access = Access(storage, name)
        if link is not None:
            say(link_line(access, link, chosen, base_url(settings, f"http://{settings.host}:{settings.port}/")))
        if token is not None:
            say(access.give("token", token, chosen))
    finally:
        storage.close()


def _serve_demo(server: ServeOptions) -> None:
    from trueup.active import ActiveTest
    from trueup.serve.demo import demo_data
    from trueup.serve.running import run_server

    predictions, labels = demo_data()
    with tempfile.TemporaryDirectory(prefix="trueup-demo-") as folder:
        url = server.storage or f"sqlite:///{folder}/demo.db"
        name = server.name or "demo"
        note("made-up reviews, a made-up crowd; everything is gone when it ends")
        run_server(
            functools.partial(
                ActiveTest, predictions, labels, noise="dawid-skene", half_width=0.03, storage=url, name=name
            ),
            url,
            name,
            labels,
            settings=Served("", (), server=replace(server, experts=server.experts or ["ann", "bob"])).server_settings(),
            look=Served("", (), server=server).look(None),
            announce=say,
        )
