"""`trueup serve`: experts answer in a browser, the owner watches the interval."""

from __future__ import annotations

import functools
import tomllib
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_type_hints

from trueup._base.optional import require
from trueup.cli._command import as_command
from trueup.cli._console import note, say
from trueup.cli._files import class_named, predicted_classes, read_both, read_votes
from trueup.cli._gates import DecisionOptions, Gates
from trueup.cli._options import PredictionOptions, VoteOptions, arg, given, opt
from trueup.cli._vetting import SessionOptions, all_settings
from trueup.exceptions import InvalidFile, InvalidParameter

if TYPE_CHECKING:
    from trueup.data.labels import Labels
    from trueup.serve.running import ServerSettings
    from trueup.serve.services import Look

SUFFIX = ".vetting.db"
_OF_DECISION = ("level", "budget", "seed")  # options of a test that are those of a decision, too


@dataclass(frozen=True)
class ServeOptions:
    """The server."""

    storage: str | None = opt(None, f"URL of the database; by default a file NAME{SUFFIX} here.", "URL")
    name: str | None = opt(None, "Of the session; by default as the file of votes.", "NAME")
    host: str | None = opt(None, "Address to listen at; 127.0.0.1 by default.", "HOST")
    port: int | None = opt(None, "Port; 8000 by default, 0 for a free one.", "N")
    public_url: str | None = opt(None, "The address that people open, where a proxy with https stands in front.", "URL")
    lease: float | None = opt(None, "Seconds a card is held for; 300 by default.", "SECONDS")
    owner: str | None = opt(None, "Name of the owner.", "NAME")
    experts: list[str] | None = opt(None, "Who gets a link at the start; once for each.", "NAME", "--expert")
    images: str | None = opt(None, "Folder of the images that the items name.", "FOLDER")
    texts: str | None = opt(None, "TOML file with other words for the pages.", "FILE", reads=True)
    guidelines: str | None = opt(None, "Markdown with a heading for each class; cards show it.", "FILE", reads=True)
    show_predictions: bool = opt(False, "Cards show predictions; such answers are kept out of the valid interval.")
    experts_see_estimate: bool = opt(False, "Experts may open the overview, too.")


@dataclass(frozen=True)
class Served:
    """The settings of a session to serve; one about tiles has their file in place of votes."""

    votes: str
    predictions: tuple[str, ...]
    how: VoteOptions = field(default_factory=VoteOptions)
    how_predicted: PredictionOptions = field(default_factory=PredictionOptions)
    test: SessionOptions = field(default_factory=SessionOptions)
    decision: DecisionOptions = field(default_factory=DecisionOptions)
    server: ServeOptions = field(default_factory=ServeOptions)
    card: Mapping[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Of the session."""
        return self.server.name or Path(self.votes).stem

    @property
    def url(self) -> str:
        """Of the storage."""
        return self.server.storage or f"sqlite:///{self.name}{SUFFIX}"

    @property
    def is_about_tiles(self) -> bool:
        """Whether objects that nobody drew are searched."""
        return not self.predictions and self.decision.of is None

    def server_settings(self) -> ServerSettings:
        """As the server takes them; what was not given is left to it."""
        from trueup.serve.running import ServerSettings

        names = ("host", "port", "public_url", "lease", "owner")
        experts = None if self.server.experts is None else tuple(self.server.experts)
        return ServerSettings(**given(**{name: getattr(self.server, name) for name in names}, experts=experts))

    def look(self, suggestions: list[str] | None) -> Look:
        """How cards look."""
        from trueup.serve.services import Look, read_text, read_texts

        return Look(
            layout=layout_of(self.card),
            class_names=self.card.get("class_names"),
            guidelines="" if self.server.guidelines is None else read_text(Path(self.server.guidelines), "guidelines"),
            images=None if self.server.images is None else Path(self.server.images),
            suggestions=suggestions,
            experts_see_estimate=self.server.experts_see_estimate,
            texts=read_texts(None if self.server.texts is None else Path(self.server.texts)),
        )


_CARD_KEYS: dict[str, Any] = {
    "kind": str,
    **dict.fromkeys(("show", "left", "right"), list[str]),
    **dict.fromkeys(("image", "outline"), str),
    **dict.fromkeys(("answers", "class_names"), dict[str, str]),
}


def layout_of(card: Mapping[str, Any]) -> Any:
    """The layout that the table [card] describes; None where it describes none."""
    from trueup.serve.card_service import Layout

    keys: dict[str, Any] = {name: tuple(v) if isinstance(v, list) else v for name, v in card.items()}
    keys.pop("class_names", None)
    return Layout(**{**keys, "answers": tuple(keys.get("answers", {}).items())}) if keys else None


_PATHS = ("gold", "items", "categories", "images", "texts", "guidelines")  # keys of any table


def read_settings(path: Path) -> Served:
    """A session from a TOML file; paths in it are taken from its folder.

    At the top ``votes`` and ``predictions``, which are paths. Tables: ``[reading]``, ``[test]`` or ``[decision]``, and
    ``[server]``, whose keys are the options of the command, with ``_`` for ``-``; ``[card]``, whose keys are those of
    `Layout`, and more.
    """
    try:
        record = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InvalidFile(f"{str(path)!r} must be a TOML file, got {error!s:.100}; see the guide of the app") from error
    bundles = (VoteOptions, PredictionOptions, SessionOptions, DecisionOptions, ServeOptions)
    votes, predictions, test, decision, server = map(get_type_hints, bundles)
    known = {"reading": votes | predictions, "test": test, "decision": decision, "server": server, "card": _CARD_KEYS}
    _check_settings(record, known, path)
    folder = path.resolve().parent

    def place(name: Any) -> str:
        return str(folder / str(name))

    tables: dict[str, dict[str, Any]] = {
        table: {name: place(value) if name in _PATHS else value for name, value in record.get(table, {}).items()}
        for table in known
    }
    if not isinstance(record.get("votes"), str) or ("predictions" not in record and "of" not in tables["decision"]):
        raise InvalidFile(f"{str(path)!r} must name votes and predictions, got {sorted(record)}; add their paths")
    paths, reading, about_server = record.get("predictions", []), tables["reading"], tables["server"]
    name = about_server.setdefault("name", path.stem)
    url = about_server.get("storage", f"sqlite:///{name}{SUFFIX}")
    file = url.removeprefix("sqlite:///")
    about_server["storage"] = url if file == url or file.startswith("/") else f"sqlite:///{folder / file}"
    return Served(
        place(record["votes"]),
        tuple(place(name) for name in ([paths] if isinstance(paths, str) else paths)),
        VoteOptions(**{name: value for name, value in reading.items() if name in votes}),
        PredictionOptions(**{name: value for name, value in reading.items() if name in predictions}),
        SessionOptions(**tables["test"]),
        DecisionOptions(**tables["decision"]),
        ServeOptions(**about_server),
        tables["card"],
    )


def _check_settings(record: Mapping[str, Any], tables: Mapping[str, Mapping[str, Any]], path: Path) -> None:
    """Stop where a file of settings has a key that is not known, or a value of another kind."""
    from trueup._base.validation import did_you_mean

    pydantic = require("pydantic", purpose="a file of settings")
    strict = {"extra": "forbid", "strict": True}
    models: dict[str, Any] = {"votes": (Any, None), "predictions": (str | list[str], [])}
    for table, hints in tables.items():
        parts = {f"key_{name}": (hint, pydantic.Field(None, alias=name)) for name, hint in hints.items()}
        models[table] = (pydantic.create_model(table, __config__=strict, **parts), None)
    try:
        pydantic.create_model("settings", __config__=strict, **models).model_validate(record)
    except pydantic.ValidationError as error:
        problem = error.errors()[0]
        table, *keys = (str(part) for part in problem["loc"])
        called, got = f"[{table}] of {str(path)!r}", f"got {problem['input']!r:.40}"
        if problem["type"] == "model_type":
            raise InvalidFile(f"{called} must be a table, {got}; write it in brackets") from error
        is_inside = table in tables
        key = keys[0] if is_inside else table
        if problem["type"] == "extra_forbidden":
            place, known = (called, list(tables[table])) if is_inside else (f"the file {str(path)!r}", list(models))
            hint = did_you_mean(key, known) or "; it may have " + ", ".join(sorted(known))
            raise InvalidFile(f"{place} has the key {key!r}, got none of that name to set{hint}") from error
        place, wish = f"in {called}" if is_inside else f"of {str(path)!r}", problem["msg"]
        raise InvalidFile(
            f"{key} {place} must be {wish.removeprefix('Input should be ')}, {got}; write it so"
        ) from error


def find_session(server: ServeOptions) -> tuple[str, str]:
    """Storage and name of the session that is meant where no files are named: the only one that is here."""
    from trueup.storage import open_storage

    url = server.storage
    if url is None:
        here = sorted(Path().glob(f"*{SUFFIX}"))
        if len(here) != 1:
            got = f"{len(here)} files *{SUFFIX}" if here else f"no file *{SUFFIX}"
            raise InvalidParameter(f"the session must be named, got {got} here; pass --storage URL and --name NAME")
        url = f"sqlite:///{here[0]}"
    with closing(open_storage(url, create=False)) as storage:
        names = [record.name for record in storage.sessions()]
    chosen = [name for name in names if server.name in (None, name)]
    if len(chosen) != 1:
        raise InvalidParameter(f"the session must be named, got {names} in {url!r}; pass --name NAME")
    return url, chosen[0]


@as_command
def serve(
    test: SessionOptions,
    how: VoteOptions,
    how_predicted: PredictionOptions,
    decision: DecisionOptions,
    server: ServeOptions,
    files: list[str] = arg(
        [],
        "VOTES PREDICTIONS… | SESSION.toml | TILES.json",
        "The votes and the predictions, a file of settings that names them, or the tiles of 'detect vet'.",
        reads=True,
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
    served = _served(files, how, how_predicted, test, decision, server)
    if new_link is not None or new_token is not None:
        _make_access(served, server, new_link, new_token, role)
    elif served is None:
        raise InvalidParameter(
            "'serve' needs files, got none; name VOTES and PREDICTIONS or SESSION.toml, or use --demo"
        )
    elif served.is_about_tiles:
        _serve_tiles(served)
    elif served.decision == DecisionOptions():
        _serve_test(served)
    else:
        _serve_decision(served)


def _served(
    files: list[str],
    how: VoteOptions,
    how_predicted: PredictionOptions,
    test: SessionOptions,
    decision: DecisionOptions,
    server: ServeOptions,
) -> Served | None:
    """What the files and the options say: one file of settings, one of tiles, or votes and predictions."""
    if not files:
        return None
    if len(files) > 1 or decision.of is not None:
        return Served(files[0], tuple(files[1:]), how, how_predicted, test, decision, server)
    (file,) = files
    if not file.lower().endswith((".toml", ".json")):
        raise InvalidParameter(
            "'serve' takes VOTES and PREDICTIONS, one SESSION.toml, or the TILES.json of 'detect vet', got "
            f"{file!r} alone; name the other, too"
        )
    for bundle in (how, how_predicted, test, decision):
        if bundle != type(bundle)():
            raise InvalidParameter(
                f"settings of a session belong in its file, got options in addition to {file!r}; write them there"
            )
    if file.lower().endswith(".json"):
        return Served(file, (), server=server)
    served = read_settings(Path(file))
    changed = {name: value for name, value in vars(server).items() if value is not None and value is not False}
    return replace(served, server=replace(served.server, **changed))


def _run(served: Served, make: Any, labels: Labels, *, look: Look, settings: ServerSettings, seed: int = 0) -> None:
    """Serve the session that `make` makes in a storage."""
    from trueup.serve.running import run_server

    make = functools.partial(make, storage=served.url, name=served.name)
    how: dict[str, Any] = {"settings": settings, "look": look, "seed": seed}
    run_server(make, served.url, served.name, labels, announce=say, **how)


def _note_bare_cards(labels: Labels) -> None:
    if not labels.item_table.given:
        note("the cards show only the names of the items; add --items with the file of what experts are to look at")


def _serve_test(served: Served) -> None:
    """Serve an active test."""
    from trueup.active import ActiveTest
    from trueup.serve.running import check_estimator

    server = served.server_settings()
    if served.test.estimator is not None:
        check_estimator(served.test.estimator)
    labels, systems, positive = read_both(served.votes, served.predictions, served.how, served.how_predicted)
    settings = all_settings(served.test, labels, served.how, positive)
    suggestions = None
    if served.server.show_predictions:
        settings["blind"] = False
        suggestions = ["–" if name is None else str(name) for name in predicted_classes(systems, labels)]
    _note_bare_cards(labels)
    note("working out what the votes say …")
    make = functools.partial(ActiveTest, systems, labels, **settings)
    seed = settings.get("random_state", 0)
    _run(served, make, labels, look=served.look(suggestions), settings=server, seed=seed)


def _serve_decision(served: Served) -> None:
    """Serve a decision: cards end once it is safe."""
    from trueup.decisions import decide

    server, gates, test = served.server_settings(), served.decision.gates, vars(served.test)
    other = next((name for name, value in test.items() if value is not None and name not in _OF_DECISION), None)
    if other is not None:
        raise InvalidParameter(f"--{other.replace('_', '-')} is about a test, got a decision; leave it out")
    if gates.is_empty:
        raise InvalidParameter("a decision needs a condition, got none; add e.g. --fail-below or --not-worse-than")
    answer, labels, asked = _answer_and_conditions(served, gates)
    asked |= given(budget=served.test.budget, random_state=served.test.seed)
    _note_bare_cards(labels)
    make = functools.partial(decide, answer, **asked, error=gates.error)
    _run(served, make, labels, look=served.look(None), settings=server, seed=served.test.seed or 0)


def _answer_and_conditions(served: Served, gates: Gates) -> tuple[Any, Labels, dict[str, Any]]:
    """The answer that a decision is about, its votes, and the conditions."""
    from trueup.answers.compare import compare
    from trueup.answers.evaluate import evaluate
    from trueup.answers.share import share

    how, of = given(level=served.test.level), served.decision.of
    if of is not None and served.predictions:
        raise InvalidParameter("--of is about votes alone, got PREDICTIONS, too; leave out one of them")
    if served.decision.by is not None and of is None:
        raise InvalidParameter("--by names the groups of --of, got none; add --of CLASS")
    if of is not None:
        labels, by = read_votes(served.votes, served.how), served.decision.by
        answer: Any = share(labels, of=class_named(labels, of), **given(by=by), **how)
        gates.find(answer)
        return answer, labels, gates.only_on(None).asked
    labels, systems, positive = read_both(served.votes, served.predictions, served.how, served.how_predicted)
    names = systems.systems.tolist()
    gates.find(names if len(names) > 1 else [])
    if len(names) > 1:
        how |= given(metric=next(iter(gates.metrics), None), positive=positive)
        return compare(systems, labels, **how), labels, gates.asked
    how |= given(metrics=gates.metrics or None, positive=positive)
    return evaluate(systems, labels, **how), labels, gates.asked


def _serve_tiles(served: Served) -> None:
    """Serve tiles in which objects that nobody drew are searched."""
    from trueup.detection import TileSearch, TilesToSearch
    from trueup.serve.card_service import Layout

    server, tiles = served.server_settings(), TilesToSearch.read(served.votes)
    images = Path(served.server.images or Path(served.votes).parent)
    look = replace(served.look(None), layout=Layout("tile", image="image"), images=images)
    _run(served, functools.partial(TileSearch, tiles), TileSearch(tiles).labels, look=look, settings=server)


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
    with closing(open_storage(url)) as storage:
        access = Access(storage, name)
        if link is not None:
            say(link_line(access, link, chosen, base_url(settings, f"http://{settings.host}:{settings.port}/")))
        if token is not None:
            say(access.give("token", token, chosen))


def _serve_demo(server: ServeOptions) -> None:
    from trueup.active import ActiveTest
    from trueup.serve.running import demo_data, passing_folder

    predictions, labels = demo_data()
    with passing_folder() as folder:
        url = server.storage or f"sqlite:///{folder}/demo.db"
        experts = server.experts or ["ann", "bob"]
        served = Served("", (), server=replace(server, storage=url, name=server.name or "demo", experts=experts))
        note("made-up reviews, a made-up crowd; everything is gone when it ends")
        make = functools.partial(ActiveTest, predictions, labels, noise="dawid-skene", half_width=0.03)
        _run(served, make, labels, look=served.look(None), settings=served.server_settings())
