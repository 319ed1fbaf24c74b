"""What `trueup serve` serves: a file of settings or files of data, read into one description."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_type_hints

from trueup._base.optional import require
from trueup.cli._options import PredictionOptions, VoteOptions, given, opt
from trueup.cli._vetting import SessionOptions
from trueup.exceptions import InvalidFile, InvalidParameter

if TYPE_CHECKING:
    from trueup.serve.running import ServerSettings
    from trueup.serve.services import Look

SUFFIX = ".vetting.db"
TILES_SUFFIX = ".json"


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
    show_predictions: bool = opt(
        False, "Cards show what the system predicts. Such answers are kept out of the valid interval."
    )
    experts_see_estimate: bool = opt(False, "Experts may open the overview, too.")


@dataclass(frozen=True)
class Served:
    """The settings of a session to serve; one about tiles has their file in place of votes."""

    votes: str
    predictions: tuple[str, ...]
    how: VoteOptions = field(default_factory=VoteOptions)
    how_predicted: PredictionOptions = field(default_factory=PredictionOptions)
    test: SessionOptions = field(default_factory=SessionOptions)
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
        return not self.predictions

    def server_settings(self) -> ServerSettings:
        """As the server takes them; what was not given is left to it."""
        from trueup.serve.running import ServerSettings

        names = ("host", "port", "public_url", "lease", "owner")
        experts = None if self.server.experts is None else tuple(self.server.experts)
        return ServerSettings(**given(**{name: getattr(self.server, name) for name in names}, experts=experts))

    def look(self, suggestions: list[str] | None) -> Look:
        """How cards look."""
        from trueup.serve.services import Look, read_texts

        return Look(
            layout=layout_of(self.card),
            class_names=self.card.get("class_names"),
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
    from trueup.serve.cards import Layout

    keys = {name: value for name, value in card.items() if name != "class_names"}
    if not keys:
        return None
    lists: dict[str, Any] = {name: tuple(keys.pop(name)) for name in ("show", "left", "right") if name in keys}
    answers = tuple(dict(keys.pop("answers", {})).items())
    return Layout(**lists, answers=answers, **keys)


def read_settings(path: Path) -> Served:
    """A session from a TOML file; paths in it are taken from its folder.

    At the top ``votes`` and ``predictions``, which are paths. Tables: ``[reading]``, ``[test]`` and ``[server]``, whose
    keys are the options of the command, with ``_`` for ``-``; ``[card]``, whose keys are those of `Layout`, and more.
    """
    try:
        record = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InvalidFile(f"{str(path)!r} must be a TOML file, got {error!s:.100}; see the guide of the app") from error
    _check_keys(record, dict.fromkeys(("votes", "predictions", "reading", "test", "server", "card")), "the file", path)
    folder = path.resolve().parent

    def place(name: Any) -> str:
        return str(folder / str(name))

    if not isinstance(record.get("votes"), str) or "predictions" not in record:
        raise InvalidFile(f"{str(path)!r} must name votes and predictions, got {sorted(record)}; add their paths")
    paths = _checked(record["predictions"], str | list[str], "predictions", path)
    reading, card = record.get("reading", {}), record.get("card", {})
    hints = _hints(VoteOptions)
    _check_keys(reading, hints | _hints(PredictionOptions), "[reading]", path)
    reading = {name: place(value) if name in ("gold", "items") else value for name, value in reading.items()}
    test: dict[str, Any] = record.get("test", {})
    server: dict[str, Any] = record.get("server", {})
    _check_keys(test, _hints(SessionOptions), "[test]", path)
    _check_keys(server, _hints(ServeOptions), "[server]", path)
    _check_keys(card, _CARD_KEYS, "[card]", path)
    server = {name: place(value) if name in ("images", "texts") else value for name, value in server.items()}
    if "categories" in test:
        test["categories"] = place(test["categories"])
    name = server.setdefault("name", path.stem)
    server["storage"] = _storage(server.get("storage", f"sqlite:///{name}{SUFFIX}"), folder)
    return Served(
        place(record["votes"]),
        tuple(place(name) for name in ([paths] if isinstance(paths, str) else paths)),
        VoteOptions(**{name: value for name, value in reading.items() if name in hints}),
        PredictionOptions(**{name: value for name, value in reading.items() if name not in hints}),
        SessionOptions(**test),
        ServeOptions(**server),
        card,
    )


def _hints(bundle: type[Any]) -> dict[str, Any]:
    """The keys of a bundle of options, and what each may hold."""
    hints = get_type_hints(bundle)
    return {name: hints[name] for name in bundle.__dataclass_fields__}


def _check_keys(table: Any, known: Mapping[str, Any], called: str, path: Path) -> None:
    """Stop where a table has a key that is not known, or one with a value of another kind; None takes any."""
    from trueup._base.validation import did_you_mean

    if not isinstance(table, dict):
        raise InvalidFile(f"{called} of {str(path)!r} must be a table, got {table!r:.40}; write it in brackets")
    for name, value in table.items():
        if name not in known:
            raise InvalidFile(
                f"{called} of {str(path)!r} has the key {name!r}, got none of that name to set"
                f"{did_you_mean(name, known) or '; it may have ' + ', '.join(sorted(known))}"
            )
        if known[name] is not None:
            _checked(value, known[name], f"{name} in {called}", path)


def _checked(value: Any, hint: Any, called: str, path: Path) -> Any:
    """A value of the kind that a hint names."""
    pydantic = require("pydantic", purpose="a file of settings")
    try:
        return pydantic.TypeAdapter(hint).validate_python(value, strict=True)
    except pydantic.ValidationError as error:
        wish = error.errors()[0]["msg"].removeprefix("Input should be ")
        raise InvalidFile(f"{called} of {str(path)!r} must be {wish}, got {value!r:.40}; write it so") from error


def _storage(url: str, folder: Path) -> str:
    """A database file is taken from the folder of the settings, too."""
    start = "sqlite:///"
    if not url.startswith(start) or url.startswith(f"{start}/"):
        return url
    return f"{start}{folder / url[len(start) :]}"


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
    storage = open_storage(url, create=False)
    try:
        names = [record.name for record in storage.sessions()]
    finally:
        storage.close()
    chosen = [name for name in names if server.name in (None, name)]
    if len(chosen) != 1:
        raise InvalidParameter(f"the session must be named, got {names} in {url!r}; pass --name NAME")
    return url, chosen[0]
