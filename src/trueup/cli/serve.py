"""`trueup serve`: experts answer in a browser, the owner watches the interval."""

from __future__ import annotations

import functools
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

from trueup._base.optional import require
from trueup.cli._command import as_command
from trueup.cli._console import note, say
from trueup.cli._files import predicted_classes, read_both
from trueup.cli._options import PredictionOptions, VoteOptions, arg, opt
from trueup.cli._serving import TILES_SUFFIX, Served, ServeOptions, find_session, read_settings
from trueup.cli._vetting import SessionOptions, all_settings
from trueup.exceptions import InvalidParameter


@as_command
def serve(
    test: SessionOptions,
    how: VoteOptions,
    how_predicted: PredictionOptions,
    server: ServeOptions,
    files: list[str] = arg(
        [],
        "VOTES PREDICTIONS… | SESSION.toml | TILES.json",
        "The votes and the predictions, a file of settings that names them, or the tiles of 'detect vet'.",
        reads=True,
        show=False,
    ),
    new_link: str | None = opt(None, "Make a link for this person instead, while the server runs or not.", "NAME"),
    new_token: str | None = opt(None, "Make a token for programs of this person instead.", "NAME"),
    role: str | None = opt(None, "Of the new link or token: owner or expert.", "ROLE"),
    demo: bool = opt(False, "Serve a session on made-up data."),
) -> None:
    """Let experts answer in a browser, and watch the interval shrink. The server is reached from this machine only."""
    for module in ("fastapi", "uvicorn", "sqlalchemy"):
        require(module, purpose="'trueup serve'")
    if demo:
        _serve_demo(server)
        return
    served = _served(files, how, how_predicted, test, server)
    if new_link is not None or new_token is not None:
        _make_access(served, server, new_link, new_token, role)
    elif served is None:
        raise InvalidParameter(
            "'serve' needs files, got none; name VOTES and PREDICTIONS or SESSION.toml, or try --demo"
        )
    elif served.is_about_tiles:
        _serve_tiles(served)
    else:
        _serve_files(served)


def _served(
    files: list[str],
    how: VoteOptions,
    how_predicted: PredictionOptions,
    test: SessionOptions,
    server: ServeOptions,
) -> Served | None:
    """What the files and the options say: one file of settings, one of tiles, or votes and predictions."""
    if not files:
        return None
    if len(files) > 1:
        return Served(files[0], tuple(files[1:]), how, how_predicted, test, server)
    (file,) = files
    if not file.lower().endswith((".toml", TILES_SUFFIX)):
        raise InvalidParameter(
            "'serve' takes VOTES and PREDICTIONS, one SESSION.toml, or the TILES.json of 'detect vet', got "
            f"{file!r} alone; name the other, too"
        )
    for bundle in (how, how_predicted, test):
        if bundle != type(bundle)():
            raise InvalidParameter(
                f"the settings of a session stand in its file, got options beside {file!r}; write them there"
            )
    if file.lower().endswith(TILES_SUFFIX):
        return Served(file, (), server=server)
    served = read_settings(Path(file))
    changed = {name: value for name, value in vars(server).items() if value not in (None, False, [])}
    return replace(served, server=replace(served.server, **changed))


def _serve_files(served: Served) -> None:
    from trueup.active import ActiveTest
    from trueup.serve.running import check_estimator, run_server

    settings = served.server_settings()
    if served.test.estimator is not None:
        check_estimator(served.test.estimator)
    labels, systems, positive = read_both(served.votes, served.predictions, served.how, served.how_predicted)
    given = all_settings(served.test, labels, served.how, positive)
    suggestions = None
    if served.server.show_predictions:
        given["blind"] = False
        suggestions = ["–" if name is None else str(name) for name in predicted_classes(systems, labels)]
    if not labels.item_table.given:
        note("the cards show only the names of the items; add --items FILE with what experts are to look at")
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
    tiles = TilesToSearch.read(served.votes)
    make = functools.partial(TileSearch, tiles, storage=served.url, name=served.name)
    images = Path(served.server.images or Path(served.votes).parent)
    look = replace(served.look(None), layout=Layout("tile", image="image"), images=images)
    labels = TileSearch(tiles).labels
    run_server(make, served.url, served.name, labels, settings=settings, look=look, announce=say)


def _make_access(
    served: Served | None, server: ServeOptions, link: str | None, token: str | None, role: str | None
) -> None:
    """Print a new link or token; a server that runs finds it by itself."""
    from trueup.serve.guard import ROLES, Access
    from trueup.serve.running import ServerSettings, base_url, link_line
    from trueup.storage import open_storage

    url, name = find_session(server) if served is None else (served.url, served.name)
    settings = (served or Served("", (), server=server)).server_settings()
    person = link or token or ""
    chosen: Any = role or ("owner" if person == ServerSettings().owner else "expert")
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
    served = Served("", (), server=replace(server, experts=server.experts or ["ann", "bob"]))
    with tempfile.TemporaryDirectory(prefix="trueup-demo-") as folder:
        url = server.storage or f"sqlite:///{folder}/demo.db"
        name = server.name or "demo"
        note("made-up reviews, a made-up crowd; everything is gone when it ends")
        settings: dict[str, Any] = {"noise": "dawid-skene", "half_width": 0.03, "storage": url, "name": name}
        run_server(
            functools.partial(ActiveTest, predictions, labels, **settings),
            url,
            name,
            labels,
            settings=served.server_settings(),
            look=served.look(None),
            announce=say,
        )
