"""What every request must pass before any page sees it: its host, where it comes from, how large it is, how often.

One layer around the whole application, which also puts the headers on every answer that keep a page closed to others.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from fastapi import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from trueup.exceptions import InvalidParameter

LOOPBACK = ("localhost", "127.0.0.1", "::1")
LARGEST_BODY = 1 << 20
_SAFE = ("GET", "HEAD", "OPTIONS")
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'"
)
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
    """Where the server is reached.

    Attributes
    ----------
    hosts : frozenset of str
        The names by which it may be called, without a port.
    prefix : str
        The path below which a proxy shows it, such as "/vetting"; empty without one. Whether the proxy takes the path
        off or leaves it on does not matter.
    is_https : bool
        Whether people reach it by https, so that cookies are sent over nothing else.
    """

    hosts: frozenset[str] = frozenset(LOOPBACK)
    prefix: str = ""
    is_https: bool = False

    @classmethod
    def of(cls, public_url: str | None) -> Address:
        """The address that a public URL describes; that of this machine alone without one.

        Examples
        --------
        >>> Address.of("https://example.org/vetting/").prefix
        '/vetting'
        """
        if public_url is None:
            return cls()
        parts = urlsplit(public_url)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
            raise InvalidParameter(
                f"⟨public_url⟩ must be the address that people open, such as https://example.org/vetting, got "
                f"{public_url!r}",
                parameter="public_url",
            )
        hosts = frozenset((*LOOPBACK, parts.hostname.lower()))
        return cls(hosts, parts.path.rstrip("/"), parts.scheme == "https")


@dataclass
class RateLimit:
    """How often each caller came: a bucket that fills with time, and from which each request takes one.

    Attributes
    ----------
    a_second, at_once : float
        How many requests come back each second, and how many may come in one go.
    """

    a_second: float
    at_once: float
    clock: Callable[[], float] = time.monotonic
    _levels: dict[str, tuple[float, float]] = field(default_factory=dict)

    def takes(self, caller: str, cost: float = 1.0) -> bool:
        """Whether this request is within the limit."""
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
    """The layer around the application.

    Parameters
    ----------
    app : ASGI application
    address : Address
    largest_body : int
        Bytes.
    """

    def __init__(self, app: ASGIApp, *, address: Address, largest_body: int = LARGEST_BODY) -> None:
        self._app = app
        self._address = address
        self._largest = largest_body

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse, or hand on with headers on what comes back."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._app(scope, receive, send)
            return
        headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}
        problem = refusal(scope["method"], headers, self._address, self._largest)
        if problem is not None:
            await _refuse(send, *problem)
            return
        body = _Body(receive, self._largest)
        await self._app(_without_prefix(scope, self._address.prefix), body.receive, _with_headers(send))


def refusal(
    method: str, headers: dict[str, str], address: Address, largest_body: int = LARGEST_BODY
) -> tuple[int, str] | None:
    """Why a request goes no further, as status and sentence; None if it may.

    Parameters
    ----------
    headers : dict
        With names in lower case.
    """
    if host_name(headers.get("host", "")) not in address.hosts:
        return 421, "this server is not known by that name; start it with --public-url to give it one"
    if method not in _SAFE and not _is_own(headers, address):
        return 403, "requests from other sites are refused"
    length = headers.get("content-length")
    if length is not None and (not (length.isascii() and length.isdigit()) or int(length) > largest_body):
        return 413, _too_large(largest_body)
    return None


def _too_large(largest: int) -> str:
    return f"the body must be at most {largest:,} bytes"


def host_name(host: str) -> str:
    """The name of a host without its port, in lower case; empty where it is none.

    Examples
    --------
    >>> host_name("LocalHost:8000"), host_name("[::1]:8000"), host_name("a/b")
    ('localhost', '::1', '')
    """
    try:
        parts = urlsplit(f"//{host}")
        return (parts.hostname or "") if parts.netloc == host and not parts.username else ""
    except ValueError:
        return ""


def _is_own(headers: dict[str, str], address: Address) -> bool:
    """Whether a request that changes something comes from a page of this server, or from no page at all.

    Browsers say so themselves; old ones name the origin at least. A program says neither, and is let through only
    with a token, which no browser adds by itself.
    """
    site = headers.get("sec-fetch-site")
    if site is not None:
        return site in ("same-origin", "none")
    origin = headers.get("origin")
    if origin is not None:
        return host_name(urlsplit(origin).netloc) in address.hosts and _same_port(origin, headers.get("host", ""))
    return "cookie" not in headers


def _same_port(origin: str, host: str) -> bool:
    """Another port of this machine is another site, unless a proxy stands between."""
    try:
        there, here = urlsplit(origin), urlsplit(f"//{host}")
        if there.hostname != here.hostname:
            return True
        return here.port is None or (there.port or {"http": 80, "https": 443}.get(there.scheme)) == here.port
    except ValueError:
        return False


def _without_prefix(scope: Scope, prefix: str) -> Scope:
    path = scope["path"]
    if not prefix or not (path == prefix or path.startswith(prefix + "/")):
        return scope
    return {**scope, "path": path[len(prefix) :] or "/", "raw_path": None}


class _Body:
    """The body of a request, which ends the request once it is too large."""

    def __init__(self, receive: Receive, largest: int) -> None:
        self._receive = receive
        self._largest = self._left = largest

    async def receive(self) -> Message:
        message = await self._receive()
        if message["type"] == "http.request":
            self._left -= len(message.get("body", b""))
            if self._left < 0:
                raise HTTPException(413, _too_large(self._largest))  # it did not say how long it is
        return message


def _with_headers(send: Send) -> Send:
    async def send_more(message: Message) -> None:
        if message["type"] == "http.response.start":
            there = {name.lower() for name, _ in message["headers"]}
            message = {**message, "headers": [*message["headers"], *_header_list(HEADERS, without=there)]}
        await send(message)

    return send_more


def _header_list(headers: dict[str, str], *, without: Iterable[bytes] = ()) -> list[tuple[bytes, bytes]]:
    listed = [(name.encode(), value.encode()) for name, value in headers.items()]
    return [(name, value) for name, value in listed if name not in without]


async def _refuse(send: Send, status: int, sentence: str) -> None:
    body = json.dumps({"error": sentence}).encode()
    headers = {**HEADERS, "content-type": "application/json", "content-length": str(len(body)), "connection": "close"}
    start: dict[str, Any] = {"type": "http.response.start", "status": status, "headers": _header_list(headers)}
    await send(start)
    await send({"type": "http.response.body", "body": body})
