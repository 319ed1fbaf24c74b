"""What a storage of sessions promises: the append-only log, the cards that wait for an answer, and their leases."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike, fspath
from typing import Any, Literal, Protocol

from trueup.exceptions import StorageError
from trueup.sessions.log import Event

# What settles a card. A correction changes an answer that is there; "later" and a comment leave the card open.
CLOSING = ("tell", "pass", "cannot tell", "none of these")

SessionKind = Literal["active test", "cleaning", "decision", "monitor", "tile search"]


def url_of_file(path: str | PathLike[str]) -> str:
    """The URL of a file of SQLite."""
    if "?" in fspath(path):  # what comes after it would be options
        raise StorageError(f"a storage must have no question mark in its path, got {fspath(path)!r}; rename it")
    return f"sqlite:///{fspath(path)}"


@dataclass(frozen=True)
class SessionRecord:
    """What is kept of a session beside its log.

    Attributes
    ----------
    name : str. Unique in its storage.
    kind : {"active test", "cleaning", "decision", "monitor", "tile search"}
    settings, options : dict. As `Session.to_json` has them: what it was made with, and the options of its strategy.
    fingerprints : dict from role to str. Of the votes, the predictions and the features that the session rests on.
    source : dict. Where the data come from, for doors that read them again, such as the command line.
    created : float. Seconds since 1970.
    paused : bool. Whether no new cards are given out.
    n_events : int. How long the log is.
    """

    name: str
    kind: SessionKind
    settings: dict[str, Any]
    options: dict[str, Any]
    fingerprints: dict[str, str]
    source: dict[str, Any]
    created: float
    paused: bool
    n_events: int


@dataclass(frozen=True)
class Card:
    """One item that waits for an answer, or did.

    Attributes
    ----------
    number : int. The number of the "ask" event in the log, from 1 on: cards are in the order in which they were drawn.
    draw : int, optional. The place of the item among all draws, from 1 on; None for cards with a purpose of their own.
    purpose : str, optional. "overlap", "repeat", "check", …; None for a draw.
    why : str, optional. The reason of the strategy; it tells what the votes say, so a blind session hides it.
    reserved_for : str, optional. The only expert who may have it.
    closed : bool. Whether it is settled.
    leased_to : str, optional. The expert who has it, or had it last.
    leased_until : float, optional. When that ends or ended, in seconds since 1970 by the clock of the database.
    seconds_left : float. Until the lease ends, by the same clock; 0 where nobody has it.
    """

    number: int
    item: Hashable
    draw: int | None
    propensity: float | None
    purpose: str | None
    why: str | None
    reserved_for: str | None
    closed: bool
    leased_to: str | None
    leased_until: float | None
    seconds_left: float


@dataclass(frozen=True)
class Accepted:
    """What became of an answer.

    Attributes
    ----------
    number : int. Of the event in the log.
    event : Event. As it is kept: with item, draw, probability, time and opinion.
    is_new : bool. False where the same request, by its key, or the same answer of the same expert had been kept before.
    next_card : Card, optional. Leased in the same transaction, where that was asked for and there was one.
    """

    number: int
    event: Event
    is_new: bool
    next_card: Card | None


@dataclass(frozen=True)
class Waiting:
    """Why there is no card for an expert now.

    Attributes
    ----------
    n_open : int. Cards that are not settled.
    n_out : int. Of these, out with others.
    next_back : float, optional. Seconds until the first of those comes back.
    """

    n_open: int
    n_out: int
    next_back: float | None


@dataclass(frozen=True)
class Grant:
    """A right to enter a session: a link that was sent, or the cookie that it was exchanged for.

    Attributes
    ----------
    digest : str. The hash of the secret; the secret itself is never kept.
    session, who, role, use : str
        For which session, for whom, as what ("owner", "expert"), and what it is ("link", "cookie").
    created, expires : float. Seconds since 1970.
    """

    digest: str
    session: str
    who: str
    role: str
    use: str
    created: float
    expires: float
    used: float | None
    revoked: float | None


class Storage(Protocol):
    """Sessions that several processes share.

    An object may be used by many threads; writes of a process go one after the other, and a method that writes returns
    when that is safely kept. Methods raise `SessionMissing` for a name that is not there. A process that is killed at
    any time loses nothing that a method returned for.

    Attributes
    ----------
    url : str. Without a password.
    notes : tuple of str. What a user should know about how it is kept, one line each.
    """

    url: str
    notes: tuple[str, ...]

    def sessions(self) -> list[SessionRecord]:
        """All sessions, by name."""

    def create(
        self,
        name: str,
        kind: SessionKind,
        settings: Mapping[str, Any],
        *,
        options: Mapping[str, Any] | None = None,
        fingerprints: Mapping[str, str] | None = None,
        source: Mapping[str, Any] | None = None,
        events: Sequence[Event] = (),
    ) -> SessionRecord:
        """A new session with a log, or the one of that name as it is if there is one: the first to come makes it."""

    def find(self, name: str) -> SessionRecord | None:
        """The session of that name."""

    def open(self, name: str) -> SessionRecord:
        """The session of that name; `SessionMissing` if there is none."""

    def change(
        self, name: str, *, settings: Mapping[str, Any] | None = None, source: Mapping[str, Any] | None = None
    ) -> SessionRecord:
        """Change settings or parts of the source of a session; those not named stay."""

    def pause(self, name: str, *, paused: bool = True) -> None:
        """Give out no new cards, or do so again."""

    def delete(self, name: str) -> None:
        """Remove a session with its log; nothing is kept."""

    def append(self, name: str, events: Sequence[Event], *, after: int | None = None) -> list[Event] | None:
        """Add events to the end of the log and return them as they are kept, with time, draw and opinion.

        An "ask" makes a card, and what settles an item closes its first open card. An event whose key is in the log
        already is not added again; the one that is there is returned in its place.

        Parameters
        ----------
        after : int, optional
            How long the log was when the events were worked out. If it has grown since, nothing is added and None is
            returned.
        """

    def events(self, name: str, *, since: int = 0, most: int | None = None) -> list[Event]:
        """The log after the first `since` events, in order; the place of each is its number."""

    def cards(self, name: str, *, open_only: bool = True) -> list[Card]:
        """The cards in the order in which they were drawn."""

    def claim(self, name: str, who: str, *, seconds: float = 300.0) -> Card | None:
        """The card that an expert is to answer now, leased to them for some seconds; None if there is none.

        An expert has one card at a time: with another tab or after a refresh they get the same again, for as long as
        nobody else has it. A lease that has ended, by the clock of the database, is claimed like any free card. Cards
        that settle what two experts differ on come first, then all others in the order of the draws; one that the
        expert has put off comes last for them until ten others were settled, by anybody, and one whose item they have
        answered for never comes, unless its purpose is "repeat".
        """

    def renew(self, name: str, who: str, number: int, *, seconds: float = 300.0) -> Card | None:
        """Hold a card for longer, while it is looked at; None if it is settled or somebody else has it by now."""

    def release(self, name: str, who: str, number: int) -> None:
        """Give a card back unanswered; nothing is logged."""

    def answer(self, name: str, number: int, event: Event, *, next_seconds: float | None = None) -> Accepted:
        """Keep what an expert says about a card and, in the same transaction, lease them the next one.

        Parameters
        ----------
        number : int
            Of the card. The lease need not last any more: an answer that comes late is kept, as the first one if the
            card is still open, else as a further opinion.
        event : Event
            Kind, `who`, `truth`, `key`, `seconds`, `blind`, `text`, `shown`, `saw_estimate`; the item and the rest are
            those of the card. A second answer by the same expert to the same card is kept as a correction.
        next_seconds : float, optional. How long the next card is leased; by default there is none.
        """

    def waiting(self, name: str, who: str) -> Waiting:
        """What is out with others, for an expert who got no card."""

    def grant(self, name: str, digest: str, *, who: str, role: str, use: str, seconds: float) -> Grant:
        """Keep the hash of a secret that opens a session for some seconds."""

    def grants(self, name: str) -> list[Grant]:
        """All that were given for a session, also those that have ended."""

    def find_grant(self, digest: str, *, use: str) -> Grant | None:
        """The grant of a secret's hash, if it is neither over nor revoked."""

    def use_grant(self, digest: str, *, use: str) -> Grant | None:
        """Use it up: the first caller gets it, every other one None."""

    def revoke(self, name: str, *, who: str | None = None, digest: str | None = None) -> int:
        """End the grants of an expert, one of them, or all of a session; returns how many."""

    def forget(self, who: str) -> int:
        """Put a neutral name in the place of a person's, in all sessions; the log stays. Returns how many events.

        Experts of sessions, and judges in the batches of monitors.
        """

    def now(self) -> float:
        """The clock of the database, in seconds since 1970."""

    def close(self) -> None:
        """Finish what is being written and let go of the database."""
