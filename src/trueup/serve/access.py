"""Who may come in: one-time links, cookies and tokens of 256 random bits, of which only hashes are kept.

A link is good for one entry. Using it gives a cookie; programs have tokens. All three expire and can be revoked.
"""

from __future__ import annotations

import hashlib
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from trueup._base.validation import check_choice
from trueup.exceptions import InvalidParameter
from trueup.storage import Grant, Storage

Role = Literal["owner", "expert"]
Use = Literal["link", "cookie", "token"]
ROLES: tuple[Role, ...] = ("owner", "expert")

DAY = 86_400.0
LIFETIMES: dict[Use, float] = {"link": 7 * DAY, "cookie": 30 * DAY, "token": 90 * DAY}
LONGEST_NAME = 80
_BYTES = 32  # 256 bits
_SECONDS_REMEMBERED = 2.0  # another process that revokes is heard after that; this one at once


@dataclass(frozen=True)
class Person:
    """Who is asking."""

    name: str
    role: Role


class Access:
    """The ways into one session.

    Parameters
    ----------
    storage : Storage
    session : str
    clock : callable
        Seconds; for how long a check is remembered.
    """

    def __init__(self, storage: Storage, session: str, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._storage = storage
        self._session = session
        self._clock = clock
        self._remembered: dict[tuple[str, Use], tuple[float, Person]] = {}
        record = storage.open(session)
        self.cookie_name = f"trueup-{digest_of(f'{storage.url} {session} {record.created}')[:12]}"

    # ------------------------------------------------------------------ who

    def person_of(self, secret: str | None, use: Use) -> Person | None:
        """Whose cookie or token this is; None if nobody's, or no longer."""
        if not secret:
            return None
        key = digest_of(secret), use
        then, person = self._remembered.get(key, (0.0, None))
        if person is not None and self._clock() - then < _SECONDS_REMEMBERED:
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
        is_open = grant is not None and grant.session == self._session and grant.used is None
        return grant if is_open else None

    def grants(self) -> list[Grant]:
        """All that were given, the newest first."""
        return sorted(self._storage.grants(self._session), key=lambda grant: grant.created, reverse=True)

    # ------------------------------------------------------------------ changes

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
        secret = secrets.token_urlsafe(_BYTES)
        self._storage.grant(self._session, digest_of(secret), who=who, role=role, use=use, seconds=seconds)
        return secret


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
