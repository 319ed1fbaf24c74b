"""Attempts to come in, or further in than one's role allows: cookies, links, tokens, roles, what experts may read."""

from __future__ import annotations

import base64
import http.client
import json
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from attacked_site import (
    JSON,
    NAME,
    OWNERS,
    READS,
    WRITES,
    Answer,
    Intrusion,
    Outcome,
    Site,
    intrusion,
    refused,
)

from trueup.serve.estimating import LatestSnapshot
from trueup.serve.guard import ROLES, Access, Person, digest_of
from trueup.serve.rendering import Pages
from trueup.serve.services import make_services

__all__ = ["INTRUDERS"]

INTRUDERS: list[Intrusion] = []
_MARK = "answer-of-bob"


# No way in ----------------------------------------------------------------------------------------------------------


@intrusion(INTRUDERS, "no cookie, every page")
def _no_cookie(site: Site) -> Outcome:
    return refused((site.get(path) for path in READS), 401)


@intrusion(INTRUDERS, "no cookie, every form and verb")
def _no_cookie_changes(site: Site) -> Outcome:
    return refused((site.post(path) for path in WRITES), 401)


@intrusion(INTRUDERS, "made-up cookies")
def _made_up(site: Site) -> Outcome:
    name = site.services.access.cookie_name
    values = ("x", "", "%00", "a" * 4000, "null", "../..", "' OR 1=1 --", "[]", "\u00e9")
    return refused((site.get("/", {"cookie": f"{name}={value}"}) for value in values), 401)


@intrusion(INTRUDERS, "another's cookie: of another session on the same machine")
def _other_session(site: Site) -> Outcome:
    storage = site.services.storage
    storage.create("other", "active test", {})
    other = Access(storage, "other")
    secret = other.enter(other.give("link", "ann", "expert"))
    names = (site.services.access.cookie_name, other.cookie_name)
    token = {"authorization": f"Bearer {other.give('token', 'ann', 'expert')}"}
    answers = [site.get("/", {"cookie": f"{name}={secret}"}) for name in names]
    return refused([*answers, site.get("/api/status", token)], 401)


@intrusion(INTRUDERS, "another's cookie: answering in their name", stores=2)
def _in_their_name(site: Site) -> Outcome:
    eve = site.cookie("eve")
    card = json.loads(site.get("/next", eve).text)["card"]
    sent = {"card": card, "choice": "1", "key": "k", "who": "ann", "name": "ann", "role": "owner"}
    answers = [site.send("POST", "/reply", {**eve, **JSON, "x-user": "ann"}, json.dumps(sent).encode())]
    answers.append(site.post("/answer", eve, {"card": 1, "choice": "0", "key": "l", "who": "ann"}))
    told = [event.who for event in site.services.storage.events(NAME) if event.key and event.key.endswith((" k", " l"))]
    return Outcome(set(told) == {"eve"}, f"kept as eve's own, {len(told)} answers")


@intrusion(INTRUDERS, "an expired cookie, link and token")
def _expired(site: Site) -> Outcome:
    access = site.services.access
    link = access.give("link", "late", "expert", seconds=0.0)
    token = access.give("token", "late", "expert", seconds=0.0)
    cookie = access._keep("cookie", "late", "expert", 0.0)
    time.sleep(0.02)
    answers = [site.get("/", {"cookie": f"{access.cookie_name}={cookie}"})]
    answers += [site.post("/enter", None, {"key": link}), site.get("/api/status", {"authorization": f"Bearer {token}"})]
    return refused(answers, 401, 403)


@intrusion(INTRUDERS, "an altered cookie, at every place")
def _altered_cookie(site: Site) -> Outcome:
    name, _, secret = site.cookie("ann")["cookie"].partition("=")
    others = [secret[:k] + ("A" if secret[k] != "A" else "B") + secret[k + 1 :] for k in range(len(secret))]
    others += [secret[:-1], secret + "A", secret.swapcase(), secret[::-1], digest_of(secret)]
    return refused((site.get("/next", {"cookie": f"{name}={other}"}) for other in others), 401)


@intrusion(INTRUDERS, "an altered link")
def _altered_link(site: Site) -> Outcome:
    key = site.services.access.give("link", "ann", "expert")
    others = (key[:-1], key + "A", key[1:] + key[0], key.swapcase(), "", digest_of(key), base64.b64encode(key.encode()))
    return refused((site.post("/enter", None, {"key": other}) for other in others), 403)


@intrusion(INTRUDERS, "a link that was used")
def _reused(site: Site) -> Outcome:
    key = site.services.access.give("link", "ann", "expert")
    first = site.post("/enter", None, {"key": key})
    again = [site.post("/enter", None, {"key": key}) for _ in range(3)]
    outcome = refused(again, 403)
    return Outcome(outcome.kept_out and first.status == 303 and not _cookies(again), outcome.told)


@intrusion(INTRUDERS, "a link that a mail scanner or the browser fetches ahead")
def _prefetched(site: Site) -> Outcome:
    key = site.services.access.give("link", "ann", "expert")
    ahead = [
        site.send("GET", f"/enter?key={key}", {"sec-purpose": "prefetch", "purpose": "prefetch"}) for _ in range(3)
    ]
    ahead += [site.send(method, f"/enter?key={key}", own_site=False) for method in ("HEAD", "OPTIONS", "PUT")]
    is_good = site.services.access.link(key) is not None
    return Outcome(is_good and not _cookies(ahead), f"not used up, no cookie, {refused(ahead).told}")


@intrusion(INTRUDERS, "two who use one link at the same moment")
def _race(site: Site) -> Outcome:
    key = site.services.access.give("link", "ann", "expert")
    with ThreadPoolExecutor(8) as many:
        answers = list(many.map(lambda _: site.post("/enter", None, {"key": key}), range(8)))
    return Outcome(len(_cookies(answers)) == 1, refused(answers).told)


@intrusion(INTRUDERS, "a secret of one kind used as another")
def _other_kind(site: Site) -> Outcome:
    access = site.services.access
    link, token = access.give("link", "ann", "expert"), access.give("token", "ann", "expert")
    name, _, cookie = site.cookie("ann")["cookie"].partition("=")
    answers = [site.get("/", {"cookie": f"{name}={secret}"}) for secret in (link, token, digest_of(cookie))]
    headers = (f"Bearer {link}", f"Bearer {cookie}", f"Basic {token}", token, "Bearer", f"Bearer {digest_of(token)}")
    answers += [site.get("/api/status", {"authorization": header}) for header in headers]
    answers += [site.post("/enter", None, {"key": secret}) for secret in (token, cookie)]
    return refused(answers, 401, 403)


@intrusion(INTRUDERS, "a token, cookie or link in the address")
def _in_the_query(site: Site) -> Outcome:
    token = site.token("ann")["authorization"].split()[1]
    name, _, cookie = site.cookie("ann")["cookie"].partition("=")
    names = ("token", "access_token", "key", "authorization", "api_key")
    answers = [site.get(f"/api/status?{one}={token}") for one in names]
    answers += [site.get(f"/?{name}={cookie}"), site.get(f"/next?{name}={cookie}&key={cookie}")]
    return refused(answers, 401)


@intrusion(INTRUDERS, "a person who was revoked or signed out")
def _revoked(site: Site) -> Outcome:
    cookie, token = site.cookie("gone"), site.token("gone")
    link = site.services.access.give("link", "gone", "expert")
    owner = site.cookie("boss", "owner")
    site.post("/revoke", owner, {"name": "gone"})
    answers = [site.get("/", cookie), site.get("/api/status", token), site.post("/enter", None, {"key": link})]
    other = site.cookie("left")
    site.post("/leave", other)
    return refused([*answers, site.get("/", other)], 401, 403)


@intrusion(INTRUDERS, "a stream that goes on after its owner was revoked")
def _revoked_stream(site: Site) -> Outcome:
    headers = {**site.cookie("second", "owner"), "host": "localhost"}
    connection = http.client.HTTPConnection(*site.place, timeout=20)
    connection.request("GET", "/owner-events", headers=headers)
    answer = connection.getresponse()
    answer.readline()
    site.services.access.revoke("second")
    begin = time.perf_counter()
    try:
        answer.read()  # to its end
    except TimeoutError:
        return Outcome(False, "it goes on")
    finally:
        connection.close()
    return Outcome(True, f"ended after {'less than 5' if time.perf_counter() - begin < 5 else 'some'} s")


@intrusion(INTRUDERS, "guessing links")
def _guessing(site: Site) -> Outcome:
    limit = site.services.entries
    before = limit.a_second, limit.at_once
    limit.a_second, limit.at_once = 0.2, 20.0
    limit._levels.clear()
    try:
        answers = [site.post("/enter", None, {"key": f"guess {k}"}) for k in range(40)]
    finally:
        limit.a_second, limit.at_once = before
        limit._levels.clear()
    outcome = refused(answers, 403, 429)
    return Outcome(outcome.kept_out and answers[-1].status == 429, outcome.told)


def _cookies(answers: list[Answer]) -> list[str]:
    return [answer.headers["set-cookie"] for answer in answers if "set-cookie" in answer.headers]


# Further in than one's role allows ----------------------------------------------------------------------------------


@intrusion(INTRUDERS, "wrong role: an expert on the pages, the stream and the exports of the owner")
def _owners_pages(site: Site) -> Outcome:
    ways = site.cookie("ann"), site.token("ann")
    return refused((site.get(path, way) for way in ways for path in OWNERS), 403)


@intrusion(INTRUDERS, "wrong role: an expert who pauses, corrects, invites, revokes")
def _owners_forms(site: Site) -> Outcome:
    forms = {
        "/pause": {"paused": "1"},
        "/correct": {"event": "1", "choice": "0", "key": "k"},
        "/link": {"name": "eve", "role": "owner"},
        "/revoke": {"name": "boss"},
    }
    ann = site.cookie("ann")
    site.cookie("boss", "owner")
    before = site.services.access.grants()
    outcome = refused([site.post(path, ann, form) for path, form in forms.items()], 403)
    is_as_before = site.services.access.grants() == before and not site.services.storage.open(NAME).paused
    return Outcome(outcome.kept_out and is_as_before, outcome.told)


@intrusion(INTRUDERS, "wrong role: an expert who names a role, a path or a method in a header")
def _headers_of_role(site: Site) -> Outcome:
    ann = site.cookie("ann")
    tricks = {"x-original-url": "/owner", "x-rewrite-url": "/owner", "x-http-method-override": "POST"}
    tricks |= {"x-role": "owner", "x-forwarded-user": "boss", "x-forwarded-for": "127.0.0.1"}
    answers = [site.get("/owner", {**ann, name: value}) for name, value in tricks.items()]
    page = site.get("/", {**ann, **tricks})
    return Outcome(refused(answers, 403).kept_out and 'id="live"' not in page.text, refused(answers).told)


@intrusion(INTRUDERS, "an expert who looks for others' answers on every page of their own", stores=1)
def _others_answers(site: Site) -> Outcome:
    bob, ann = site.cookie("bob"), site.cookie("ann")
    card = json.loads(site.get("/next", bob).text)["card"]
    sent = {"card": card, "choice": "1", "key": "b", "comment": _MARK}
    site.send("POST", "/reply", {**bob, **JSON}, json.dumps(sent).encode())
    item = site.services.storage.events(NAME)[card - 1].item
    paths = (
        "/",
        "/next",
        f"/?before={card}",
        f"/previous?before={card}",
        f"/previous?before={card + 1}",
        "/api/status",
    )
    answers = [site.get(path, ann) for path in (*paths, f"/image?card={card}", "/api/openapi.json")]
    answers.append(site.send("POST", "/api/ask", ann))
    change = json.dumps({"answers": [{"item": item, "truth": 0}]}).encode()
    corrected = site.send("POST", "/api/correct", {**ann, **JSON}, change)
    told = " ".join(answer.text for answer in [*answers, corrected])
    is_hidden = _MARK not in told and "bob" not in told and corrected.status == 422
    return Outcome(is_hidden, f"nothing of bob's on {len(answers) + 1} routes")


@intrusion(INTRUDERS, "an expert who looks for the estimate on every page of their own")
def _estimate(site: Site) -> Outcome:
    ann = site.cookie("ann")
    snapshot = site.services.latest.snapshot
    assert snapshot is not None
    (one, *_) = snapshot.ranges.values()
    numbers = [f"{value:.3f}" for value in (one.mean, one.low, one.high) if value not in (0.0, 1.0)]
    assert numbers
    paths = ("/", "/next", "/previous", "/api/status", "/api/openapi.json", "/nothing")
    told = " ".join(site.get(path, ann).text for path in paths)
    return Outcome(not any(number in told for number in numbers), f"no number of it on {len(paths)} routes")


@intrusion(INTRUDERS, "an expert who reads why a session has ended")
def _reason_of_the_end(site: Site) -> Outcome:
    own = site.services
    own.storage.create("ended", "active test", {})
    latest = LatestSnapshot()
    assert own.latest.snapshot is not None
    latest.put(replace(own.latest.snapshot, finished="'new' is better than 'old' with probability 0.987"))
    pages = Pages(make_services(own.storage, "ended", own.labels, latest, own.estimating, look=own.look))
    told, told_owner = (pages.place(Person("x", role), None) for role in ROLES[::-1])
    return Outcome("0.987" in told_owner and "0.987" not in told, "the page says that it has ended, not why")


@intrusion(INTRUDERS, "the description of the API, with no cookie")
def _description(site: Site) -> Outcome:
    text = site.get("/api/openapi.json").text
    is_plain = "/api/tell" in text and not any(f'"{secret}"' in text for secret in (NAME, "bob", "Text 1", "image"))
    return Outcome(is_plain, "names the verbs, and nothing of the session")
