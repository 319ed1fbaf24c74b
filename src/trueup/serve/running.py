"""A server from a session: the estimate in its process, links for those who work, and the end."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

from trueup._base.validation import check_integer, check_number
from trueup.active import ESTIMATORS, ActiveTest
from trueup.active.estimators import MetricEstimator
from trueup.data.labels import Labels
from trueup.exceptions import InvalidParameter
from trueup.serve.access import Access, Role
from trueup.serve.card_service import LEASE
from trueup.serve.estimating import InProcess, LatestSnapshot, MakeSession
from trueup.serve.guard import Address
from trueup.serve.server import Server, check_binding, check_port
from trueup.serve.services import Look, make_services
from trueup.sessions.session import Session
from trueup.storage import Storage, open_storage

Announce = Callable[[str], Any]


def check_estimator(estimator: str | MetricEstimator) -> None:
    """Stop where a team would decide when to stop by an interval that nothing warrants.

    Examples
    --------
    >>> check_estimator("rectified")
    """
    made = ESTIMATORS.make(estimator, {}, base=MetricEstimator)
    if made.is_warranted:
        return
    others = ", ".join(f'"{name}"' for name in ESTIMATORS.names() if ESTIMATORS[name].is_warranted)
    raise InvalidParameter(
        f'⟨estimator⟩ of a session that is served must hold whatever the votes are, got "{made.name}", which believes '
        f"them and was measured to hold too rarely where people err together; use one of {others}",
        parameter="estimator",
    )


@dataclass(frozen=True)
class ServerSettings:
    """Where the server listens, and for how long a card is held.

    Attributes
    ----------
    host : str
        The address to listen at; this machine only by default.
    port : int
        0 for any that is free.
    public_url : str, optional
        The address that people open, where a proxy stands in front.
    lease : float
        Seconds for which a card is held; it is renewed while the page is in sight.
    owner : str
        The name of the owner.
    experts : tuple of str
        Who gets a link when the server starts, unless they have one.
    """

    host: str = "127.0.0.1"
    port: int = 8000
    public_url: str | None = None
    lease: float = LEASE
    owner: str = "owner"
    experts: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_integer(self.port, name="port", low=0)
        check_number(self.lease, name="lease", low=1.0, high=86_400.0)
        check_binding(self.host, self.public_url)
        Address.of(self.public_url)


def run_server(
    make: MakeSession,
    url: str,
    name: str,
    labels: Labels,
    *,
    settings: ServerSettings | None = None,
    look: Look | None = None,
    seed: int = 0,
    announce: Announce | None = None,
) -> None:
    """Serve a session until Ctrl-C.

    Parameters
    ----------
    make : callable
        Makes the stored session, in the process of the estimate.
    url : str
        Of the storage.
    name : str
        Of the session in it.
    labels : Labels
        The votes, with the columns of the items.
    settings : ServerSettings, optional
    look : Look, optional
    seed : int
    announce : callable, optional
        Called with each line that the person at the console should read; links are among them.
    """
    settings = ServerSettings() if settings is None else settings
    check_port(settings.host, settings.port)
    say = announce or (lambda _: None)
    latest = LatestSnapshot()
    with_storage = open_storage(url)
    estimating = InProcess(make, with_storage, url, name, latest)
    estimating.start()
    try:
        estimating.wait_until_ready()
        services = make_services(
            with_storage,
            name,
            labels,
            latest,
            estimating,
            address=Address.of(settings.public_url),
            look=look,
            seed=seed,
            lease=settings.lease,
        )
        for note in with_storage.notes:
            say(note)

        def ready(address: str) -> None:
            base = base_url(settings, address)
            say(f"Serving {name!r} at {base}; everything is kept in {with_storage.url}. Ctrl-C ends it.")
            for line in first_links(services.access, with_storage, settings, base):
                say(line)

        with suppress(KeyboardInterrupt):  # that is how a server is ended
            Server(services, host=settings.host, port=settings.port, ready=ready).run()
    finally:
        estimating.stop()
        with_storage.close()


def base_url(settings: ServerSettings, address: str) -> str:
    """The address that people open, with a slash at its end."""
    return address if settings.public_url is None else settings.public_url.rstrip("/") + "/"


def first_links(access: Access, storage: Storage, settings: ServerSettings, base: str) -> Iterable[str]:
    """A line for the owner, and for each expert who has no way in yet."""
    now = storage.now()
    has_way_in = {
        grant.who
        for grant in access.grants()
        if grant.revoked is None and grant.expires > now and not (grant.use == "link" and grant.used is not None)
    }
    people: list[tuple[str, Role]] = [(settings.owner, "owner")]
    people += [(expert, "expert") for expert in settings.experts if expert not in has_way_in]
    for name, role in people:
        yield link_line(access, name, role, base)


def link_line(access: Access, name: str, role: Role, base: str) -> str:
    """A new link, with whom it is for."""
    return f"{name} ({role}), once: {base}enter?key={access.give('link', name, role)}"


def run(
    session: Session,
    url: str,
    name: str,
    *,
    settings: ServerSettings | None = None,
    look: Look | None = None,
    announce: Announce | None = None,
) -> None:
    """Serve a session that was made in Python: also a `CleaningAdvisor`, whose model no file describes.

    Parameters
    ----------
    session : ActiveTest or CleaningAdvisor
        Made with ``storage=url`` and ``name=name``. It is handed to the process of the estimate, so that it must be
        picklable; nothing is unpickled from the storage.
    url, name : str
        Its storage, and its name there.
    settings : ServerSettings, optional
    look : Look, optional
    announce : callable, optional
        Called with each line for the person at the console, e.g. ``print``.
    """
    storage = open_storage(url)
    try:
        record = storage.find(name)
    finally:
        storage.close()
    if record is None:
        raise InvalidParameter(
            f"the session must be in the storage, got none of the name {name!r}; make it with ⟨storage={url}⟩ and "
            f"⟨name={name}⟩"
        )
    if isinstance(session, ActiveTest):
        check_estimator(session.estimator)
    unbound = session.replay([])  # a copy without a log, which can travel
    run_server(partial(_itself, unbound), url, name, session.labels, settings=settings, look=look, announce=announce)


def _itself(session: Session) -> Session:
    return session
