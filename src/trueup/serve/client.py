"""`connect`: a session on a server, with the methods of `ActiveTest`."""

from __future__ import annotations

import json
import secrets
import time
import urllib.error
import urllib.request
from collections.abc import Iterable, Mapping
from itertools import combinations
from typing import Any
from urllib.parse import urlsplit

import numpy as np

from trueup._base.types import Floats
from trueup._base.validation import check_integer, preview
from trueup.active.estimators import as_estimate, share_better
from trueup.exceptions import InvalidParameter, TrueupError
from trueup.posteriors import Estimate
from trueup.sessions.log import Event, events_from_json, plain_name, plot_history, read_name
from trueup.sessions.session import Asked, Batch

_ATTEMPTS = 4
_PAUSES = 0.5  # seconds before the second attempt; twice as long before each further one
_TRY_AGAIN = (429, 502, 503, 504)


class ServerError(TrueupError, OSError):
    """A server cannot be reached, or does not let the caller in."""


def connect(url: str, token: str, *, timeout: float = 30.0) -> RemoteTest:
    """A session on a server of `trueup serve`.

    Parameters
    ----------
    url : str. The address of the server, such as ``"http://127.0.0.1:8000"``.
    token : str. From the owner's page, or from ``trueup serve --new-token NAME``. Answers are those of its person.
    timeout : float. Seconds to wait for an answer. What was not answered is sent again, and counts once.
    """
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise InvalidParameter(f"`url` must be the address of a server, got {url!r}; pass http://127.0.0.1:8000")
    return RemoteTest(url.rstrip("/"), token, timeout)


class RemoteTest:
    """A session on a server: `ask`, `tell`, `skip` and, for owners, the estimate. Made by `trueup.connect`."""

    def __init__(self, url: str, token: str, timeout: float) -> None:
        self.url = url
        self._token = token
        self._timeout = timeout
        status = self._call("GET", "status")
        self.session, self.who, self.role = status["session"], status["name"], status["role"]
        self.classes = [read_name(name) for name in status["classes"]]
        self.n_items = int(status["n_items"])

    def ask(self, n: int = 1) -> Batch:
        """The card to answer now, held for the caller: one at most, whatever `n`; empty if there is none."""
        check_integer(n, name="n", low=1)
        card = self._call("POST", "ask")["card"]
        return Batch([] if card is None else [Asked(read_name(card["item"]), float("nan"), "", None)])

    def tell(
        self, truths: Mapping[Any, Any], *, correct: bool = False, seconds: float | None = None, comment: str = ""
    ) -> None:
        """What the expert says, item by item, as in `ActiveTest.tell`; `correct` changes what was said before."""
        if not isinstance(truths, Mapping):
            raise InvalidParameter(f"truths must map items to classes, got {type(truths).__name__}; pass a dict")
        more = {"seconds": seconds, "comment": comment}
        answers = [{"item": plain_name(item), "truth": plain_name(truth), **more} for item, truth in truths.items()]
        if answers:
            self._call("POST", "correct" if correct else "tell", {"answers": answers, "key": secrets.token_urlsafe(18)})

    def skip(self, items: Iterable[Any], *, later: bool = False) -> None:
        """The expert names no class for these items: they cannot tell, or it goes to another one first."""
        if isinstance(items, str) or not isinstance(items, Iterable):
            raise InvalidParameter(f"items must be a list of items, got {items!r}; pass [item]")
        names = [plain_name(item) for item in items]
        if names:
            how = "later" if later else "cannot-tell"
            self._call("POST", "skip", {"items": names, "how": how, "key": secrets.token_urlsafe(18)})

    def status(self) -> dict[str, Any]:
        """The latest snapshot of the session as plain numbers; ``{"ready": False}`` before the first."""
        snapshot: dict[str, Any] = self._call("GET", "estimate")
        return snapshot

    def _snapshot(self) -> dict[str, Any]:
        snapshot = self.status()
        if not snapshot["ready"]:
            raise ServerError("the server has no estimate yet, got none; ask again after some seconds")
        return snapshot

    @property
    def age(self) -> float:
        """Seconds since the work on the latest estimate began."""
        return max(time.time() - float(self._snapshot()["made"]), 0.0)

    @property
    def n_vetted(self) -> int:
        """Number of items with an answer, whether it counts yet or not."""
        return int(self._snapshot()["n_answers"])

    @property
    def n_counted(self) -> int:
        """Number of answers that the estimate rests on."""
        return int(self._snapshot()["n_counted"])

    @property
    def finished(self) -> str | None:
        """Why the session can stop, in one sentence; None while it should go on."""
        snapshot: str | None = self._snapshot()["finished"]
        return snapshot

    @property
    def warnings(self) -> tuple[str, ...]:
        """Sentences to read before trusting the estimate."""
        return tuple(self._snapshot()["warnings"])

    @property
    def systems(self) -> list[str]:
        """The names of the systems under test."""
        return list(self._snapshot()["ranges"])

    def estimate(self, system: str | None = None) -> Estimate:
        """The metric of a system, by default the first."""
        snapshot = self._snapshot()
        name = _system(snapshot, system)
        return _estimate(snapshot, _values(snapshot["draws"][name]), _bounds(snapshot), snapshot["metric"])

    def difference(self, a: str, b: str) -> Estimate:
        """The metric of system a minus that of b."""
        snapshot = self._snapshot()
        low, high = _bounds(snapshot)
        return _estimate(
            snapshot, _apart(snapshot, a, b), (low - high, high - low), f"{snapshot['metric']} {a} minus {b}"
        )

    def anytime_interval(self, a: str | None = None, b: str | None = None) -> tuple[float, float]:
        """The interval, at the level of the session, that holds at every look at once; wider than others."""
        snapshot = self._snapshot()
        first = _system(snapshot, a)
        if b is None:
            low, high = snapshot["anytime_interval"][first]
            return float(low), float(high)
        key, sign = _pair(snapshot, first, b)
        low, high = (0.0, 0.0) if key is None else sorted(sign * end for end in snapshot["anytime_differences"][key])
        return float(low), float(high)

    def prob_order(self, a: str, b: str) -> float:
        """P(a is better than b), ties counted half."""
        return share_better(_apart(snapshot := self._snapshot(), a, b), higher_is_better=snapshot["higher_is_better"])

    @property
    def ranking(self) -> list[str]:
        """The systems from the best to the worst, by the mean of the estimate."""
        return _ranking(self._snapshot())

    @property
    def misranking(self) -> float:
        """The expected share of pairs of systems that the ranking has in the wrong order."""
        snapshot = self._snapshot()
        pairs, sign = combinations(_ranking(snapshot), 2), snapshot["higher_is_better"]
        wrong = [1 - share_better(_apart(snapshot, a, b), higher_is_better=sign) for a, b in pairs]
        return float(np.mean(wrong)) if wrong else 0.0

    def history(self) -> list[dict[str, float]]:
        """The estimate as answers came in: n, mean, low and high."""
        rows = self._snapshot()["history"]
        return [{name: float(value) for name, value in row.items() if value is not None} for row in rows]

    def plot(self, ax: Any = None) -> Any:
        """The metric and its interval as answers came in; returns the Axes."""
        snapshot = self._snapshot()
        return plot_history(snapshot["history"], ax, metric=snapshot["metric"], level=snapshot["level"])

    @property
    def log(self) -> tuple[Event, ...]:
        """All questions, answers, postponements and corrections; for owners."""
        events: list[Event] = []
        while True:
            part = self._call("GET", f"log?since={len(events)}")
            events += events_from_json(part["events"])
            if len(events) >= part["n"] or not part["events"]:
                return tuple(events)

    def __repr__(self) -> str:
        return f"RemoteTest({self.session!r} at {self.url}, as {self.who!r})"

    def _call(self, method: str, verb: str, body: Any = None) -> Any:
        """What the server answers. Requests that change something carry a key, so that they can be sent again."""
        data = None if body is None else json.dumps(body).encode()
        headers = {"authorization": f"Bearer {self._token}", "content-type": "application/json"}
        request = urllib.request.Request(f"{self.url}/api/{verb}", data, headers, method=method)
        pause = _PAUSES
        for attempt in range(_ATTEMPTS):
            try:
                with urllib.request.urlopen(request, timeout=self._timeout) as answer:
                    return json.loads(answer.read())
            except urllib.error.HTTPError as error:
                with error:
                    if error.code not in _TRY_AGAIN or attempt == _ATTEMPTS - 1:
                        raise _refused(error) from error
            except (urllib.error.URLError, TimeoutError, ConnectionError) as error:
                if attempt == _ATTEMPTS - 1:
                    reason = getattr(error, "reason", error)
                    raise ServerError(
                        f"the server at {self.url} must answer, got {reason!s:.100}; check the address and whether it "
                        "runs"
                    ) from error
            time.sleep(pause)
            pause *= 2
        raise AssertionError("the last attempt returns or raises")


def _refused(error: urllib.error.HTTPError) -> TrueupError:
    try:
        sentence = str(json.loads(error.read())["error"])
    except (ValueError, KeyError, TypeError):
        sentence = f"status {error.code}"
    if error.code == 422:
        return InvalidParameter(quoted_text(sentence))
    return ServerError(f"the server refused the request, got: {quoted_text(sentence)}")


def quoted_text(sentence: str) -> str:
    """A sentence of the server in one of ours: backticks in it are no marks."""
    return sentence.replace("`", "")


def _bounds(snapshot: Mapping[str, Any]) -> tuple[float, float]:
    low, high = snapshot["bounds"]
    return (-np.inf if low is None else float(low)), (np.inf if high is None else float(high))


def _estimate(snapshot: Mapping[str, Any], values: Floats, bounds: tuple[float, float], name: str) -> Estimate:
    return as_estimate(values, bounds, name, int(snapshot.get("n_worlds", 1)))


def _values(draws: Iterable[float | None]) -> Floats:
    return np.array([np.nan if value is None else value for value in draws], dtype=float)


def _system(snapshot: Mapping[str, Any], name: str | None) -> str:
    names = list(snapshot["ranges"])
    if not names:
        reason = " ".join(snapshot["warnings"])
        raise ServerError(f"the server has no estimate yet, got: {quoted_text(reason)}")
    if name is not None and name not in names:
        raise InvalidParameter(f"there is no system {name!r}, got {preview(names, most=10)}")
    return str(names[0]) if name is None else name


def _pair(snapshot: Mapping[str, Any], a: str, b: str) -> tuple[str | None, float]:
    """The name of a pair of systems and its sign; None where both are the same."""
    names = list(snapshot["ranges"])
    k, m = names.index(_system(snapshot, a)), names.index(_system(snapshot, b))
    key = f"{min(k, m)} {max(k, m)}"
    if k != m and key not in snapshot["differences"]:
        raise InvalidParameter(f"a server compares up to 6 systems, got {len(names)}; open the session in Python")
    return (None if k == m else key), (1.0 if k < m else -1.0)


def _apart(snapshot: Mapping[str, Any], a: str, b: str) -> Floats:
    key, sign = _pair(snapshot, a, b)
    return np.zeros(1) if key is None else sign * _values(snapshot["differences"][key])


def _ranking(snapshot: Mapping[str, Any]) -> list[str]:
    sign = 1.0 if snapshot["higher_is_better"] else -1.0
    means = {name: one["mean"] for name, one in snapshot["ranges"].items()}
    return sorted(means, key=lambda name: -sign * means[name] if means[name] is not None else np.inf)
