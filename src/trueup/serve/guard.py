"""What every request must pass before any page sees it: its host, where it comes from, how large it is, how often.

One layer around the whole application, which also puts the headers on every answer that keep a page closed to others.

A link is good for one entry. Using it gives a cookie; programs have tokens. All three expire and can be revoked.

Hosts are read here, since origins are compared with them, which Starlette's own check of hosts does not do. Signed
cookies, as of itsdangerous, hold until they expire: who is revoked must be out at once, so the storage is asked anyway.
"""

from __future__ import annotations

import asyncio
import hashlib
import secrets
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal
from urllib.parse import urlsplit

from fastapi import HTTPException
from starlette.datastructures import MutableHeaders
from starlette.responses import JSONResponse, RedirectResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from trueup._base.validation import check_choice
from trueup.exceptions import InvalidParameter
from trueup.storage import Grant, Storage

Role = Literal["owner", "expert"]
Use = Literal["link", "cookie", "token"]
ROLES: tuple[Role, ...] = ("owner", "expert")

DAY = 86_400.0
LIFETIMES: dict[Use, float] = {"link": 7 * DAY, "cookie": 30 * DAY, "token": 90 * DAY}
LONGEST_NAME = 80


@dataclass(frozen=True)
class Person:
    """Who is asking."""

    name: str
    role: Role


class Access:
    """The ways into one session."""

    def __init__(self, storage: Storage, session: str, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._storage = storage
        self._session = session
        self._clock = clock
        self._remembered: dict[tuple[str, Use], tuple[float, Person]] = {}
        record = storage.open(session)
        self.cookie_name = f"trueup-{digest_of(f'{storage.url} {session} {record.created}')[:12]}"

    def person_of(self, secret: str | None, use: Use) -> Person | None:
        """Whose cookie or token this is; None if nobody's, or no longer."""
        if not secret:
            return None
        key = digest_of(secret), use
        then, person = self._remembered.get(key, (0.0, None))
        # This process hears at once of who is revoked; what another one revokes is heard after two seconds.
        if person is not None and self._clock() - then < 2.0:
            return person
        grant = self._storage.find_grant(key[0], use=use)
        if grant is None or grant.session != self._session:
            self._remembered.pop(key, None)
            return None
        if len(self._remembered) > 10_000:
            self._remembered.clear()
        person = _person(grant)
        self._remembered[key] = self._clock(), person
        return person

    def link(self, secret: str | None) -> Grant | None:
        """A link that would still let someone in; it is not used up."""
        grant = self._storage.find_grant(digest_of(secret or ""), use="link")
        return grant if grant is not None and grant.session == self._session and grant.used is None else None

    def grants(self) -> list[Grant]:
        """All that were given, the newest first."""
        return sorted(self._storage.grants(self._session), key=lambda grant: grant.created, reverse=True)

    def give(self, use: Use, who: str, role: Role, *, seconds: float | None = None) -> str:
        """A new link or token; returns the secret, which cannot be read again."""
        name = check_person(who)
        check_choice(role, ROLES, name="role")
        other = next((grant for grant in self.grants() if grant.who == name and grant.role != role), None)
        if other is not None:
            raise InvalidParameter(f"{name!r} is {other.role} here, got {role}; one name has one role, so use another")
        return self._keep(use, name, role, LIFETIMES[use] if seconds is None else seconds)

    def enter(self, secret: str | None) -> str | None:
        """Use a link up; returns the secret of a new cookie, or None if the link is not good."""
        if self.link(secret) is None:
            return None
        grant = self._storage.use_grant(digest_of(secret or ""), use="link")
        return None if grant is None else self._keep("cookie", grant.who, _person(grant).role, LIFETIMES["cookie"])

    def revoke(self, who: str) -> int:
        """End all links, cookies and tokens of a person; returns how many."""
        self._remembered.clear()
        return self._storage.revoke(self._session, who=who)

    def leave(self, secret: str) -> None:
        """End one cookie."""
        self._remembered.clear()
        self._storage.revoke(self._session, digest=digest_of(secret))

    def _keep(self, use: Use, who: str, role: Role, seconds: float) -> str:
        secret = secrets.token_urlsafe(32)  # 256 bits
        self._storage.grant(self._session, digest_of(secret), who=who, role=role, use=use, seconds=seconds)
        return secret


def is_open(grant: Grant, now: float) -> bool:
    """Whether somebody can still come in by it."""
    is_used_up = grant.use == "link" and grant.used is not None
    return grant.revoked is None and now < grant.expires and not is_used_up


def _person(grant: Grant) -> Person:
    return Person(grant.who, check_choice(grant.role, ROLES, name="role"))


def check_person(name: Any) -> str:
    """A name for a person: some text, not long, on one line, without characters that cannot be seen."""
    text = name.strip() if isinstance(name, str) else ""
    if not text or len(text) > LONGEST_NAME or not text.isprintable():
        raise InvalidParameter(
            f"the name of a person must be 1 to {LONGEST_NAME} characters that can be seen, got {name!r:.100}; give "
            "another"
        )
    return text


def digest_of(secret: str) -> str:
    """What is kept of a secret. It is random and long, so that a plain hash is enough."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


LOOPBACK = ("localhost", "127.0.0.1", "::1")
LARGEST_BODY = 1 << 20
_TOO_LARGE = f"the body must be at most {LARGEST_BODY:,} bytes"
_SAFE = ("GET", "HEAD", "OPTIONS")
_ONCE = ("host", "origin", "sec-fetch-site", "content-length", "authorization")  # whoever reads the other one is misled
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'"
)
_CLOSE = {"connection": "close"}  # nobody reads what else comes
HEADERS = {
    "content-security-policy": _POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "x-frame-options": "DENY",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), microphone=(), geolocation=()",
}


@dataclass(frozen=True)
class Address:
    """Where the server is reached."""

    hosts: frozenset[str] = frozenset(LOOPBACK)  # The names by which it may be called, without a port
    # The path below which a proxy shows it, such as "/vetting"; empty without one. Whether the proxy takes the path off
    # or leaves it on does not matter
    prefix: str = ""
    is_https: bool = False  # Whether people reach it by https, so that cookies are sent over nothing else

    @classmethod
    def of(cls, public_url: str | None) -> Address:
        """The address that a public URL describes; that of this machine alone without one."""
        if public_url is None:
            return cls()
        parts = urlsplit(public_url)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
            raise InvalidParameter(
                f"`public_url` must be the address that people open, such as https://example.org/vetting, got "
                f"{public_url!r}",
            )
        hosts = frozenset((*LOOPBACK, parts.hostname.lower()))
        return cls(hosts, parts.path.rstrip("/"), parts.scheme == "https")


@dataclass
class RateLimit:
    """How often each caller came: a bucket that fills with time, and from which each request takes one."""

    a_second: float  # How many requests come back each second, and how many may come in one go
    at_once: float
    clock: Callable[[], float] = time.monotonic
    _levels: dict[str, tuple[float, float]] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def takes(self, caller: str, cost: float = 1.0) -> bool:
        """Whether this request is within the limit."""
        with self._lock:  # requests are answered in many threads
            now = self.clock()
            level, then = self._levels.get(caller, (self.at_once, now))
            level = min(self.at_once, level + (now - then) * self.a_second)
            allowed = level >= cost
            if len(self._levels) > 10_000:  # those that are full again say nothing
                full = self.at_once / self.a_second
                self._levels = {who: kept for who, kept in self._levels.items() if now - kept[1] < full}
            self._levels[caller] = (level - cost if allowed else level, now)
            return allowed


class Guard:
    """The layer around the application."""

    def __init__(self, app: ASGIApp, *, address: Address) -> None:
        self._app = app
        self._address = address
        self.longest_body = 30.0  # seconds in which a body must be there

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse, or hand on with headers on what comes back."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._app(scope, receive, send)
            return
        sent = [(name.decode("latin-1").lower(), value.decode("latin-1")) for name, value in scope["headers"]]
        problem = refusal(scope["method"], sent, self._address)
        if problem is not None:
            status, sentence = problem
            await JSONResponse({"error": sentence}, status, headers=_CLOSE)(scope, receive, _with_headers(send))
            return
        prefix = self._address.prefix
        if prefix and scope["path"] == prefix:  # relative addresses need the slash at the end
            await RedirectResponse(f"{prefix.rpartition('/')[2]}/", 307)(scope, receive, _with_headers(send))
            return
        if prefix and scope["path"].startswith(prefix + "/"):
            scope = {**scope, "path": scope["path"][len(prefix) :], "raw_path": None}
        await self._app(scope, _Body(receive, self.longest_body).receive, _with_headers(send))


def refusal(method: str, sent: Sequence[tuple[str, str]], address: Address) -> tuple[int, str] | None:
    """Why a request with these headers goes no further, as status and sentence; None if it may."""
    headers, counts = dict(sent), Counter(name for name, _ in sent)
    for name in _ONCE:
        if counts[name] > 1:
            return 400, f"a request has one header {name}, got {counts[name]}"
    if host_name(headers.get("host", "")) not in address.hosts:
        return 421, "this server is not known by that name; start it with --public-url to give it one"
    if method not in _SAFE and not _is_own(headers, address):
        return 403, "requests from other sites are refused"
    length = headers.get("content-length")
    if length is not None and (not (length.isascii() and length.isdigit()) or int(length) > LARGEST_BODY):
        return 413, _TOO_LARGE
    return None


def host_name(host: str) -> str:
    """The name of a host without its port, in lower case; empty where it is none."""
    try:
        parts = urlsplit(f"//{host}")
        return (parts.hostname or "") if parts.netloc == host and not parts.username else ""
    except ValueError:
        return ""


def _is_own(headers: dict[str, str], address: Address) -> bool:
    """Whether a request that changes something comes from a page of this server, or from no page at all."""
    site = headers.get("sec-fetch-site")
    if site is not None:
        return site in ("same-origin", "none")
    origin = headers.get("origin")
    if origin is None:
        return "cookie" not in headers
    try:  # another port of this machine is another site, unless a proxy stands between
        there, here = urlsplit(origin), urlsplit(f"//{headers.get('host', '')}")
        if host_name(there.netloc) not in address.hosts:
            return False
        if there.hostname != here.hostname:
            return True
        return here.port is None or (there.port or {"http": 80, "https": 443}.get(there.scheme)) == here.port
    except ValueError:  # it is no address at all
        return False


class _Body:
    """The body of a request, which ends the request once it is too large or takes too long."""

    def __init__(self, receive: Receive, longest: float) -> None:
        self._receive = receive
        self._left = LARGEST_BODY
        self._until = asyncio.get_running_loop().time() + longest
        self._is_whole = False

    async def receive(self) -> Message:
        if self._is_whole:  # what may come now is that the other end has gone, however long that takes
            return await self._receive()
        try:
            async with asyncio.timeout_at(self._until):
                message = await self._receive()
        except TimeoutError as error:
            raise HTTPException(408, "the body took too long; send it again", headers=_CLOSE) from error
        self._is_whole = not message.get("more_body", False)
        if message["type"] == "http.request":
            self._left -= len(message.get("body", b""))
            if self._left < 0:
                raise HTTPException(413, _TOO_LARGE, headers=_CLOSE)  # it did not say its length
        return message


def _with_headers(send: Send) -> Send:
    async def send_more(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in HEADERS.items():
                headers.setdefault(name, value)
        await send(message)

    return send_more
