"""Every attempt to get in, or further in than a role allows, against a server on the network of this machine."""

import base64
import http.client
import json
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
from attacked_site import FORM, JSON, NAME, OWNERS, READS, SECRET, WRITES, open_site, refused

from trueup.serve.estimating import LatestSnapshot
from trueup.serve.guard import ROLES, Access, Person, digest_of
from trueup.serve.pages import Pages
from trueup.serve.services import Services

_MARK = "answer-of-bob"
_REPLY = json.dumps({"card": 1, "choice": "1", "key": "k"}).encode()


@pytest.fixture(scope="module")
def open_door():
    with open_site() as opened:
        yield opened


@pytest.fixture
def site(open_door):
    """The app; what a test stores beyond what it says, under the name of the intruder, means that somebody got in."""
    before, open_door.may_store = open_door.n_told, 0
    yield open_door
    assert open_door.n_told - before <= open_door.may_store


# No way in ----------------------------------------------------------------------------------------------------------


def test_no_cookie(site):
    refused([*(site.get(path) for path in READS), *(site.post(path) for path in WRITES)], 401)


def test_other_session(site):
    storage = site.services.storage
    storage.create("other", "active test", {})
    other = Access(storage, "other")
    secret = other.enter(other.give("link", "ann", "expert"))
    names = (site.services.access.cookie_name, other.cookie_name)
    token = {"authorization": f"Bearer {other.give('token', 'ann', 'expert')}"}
    answers = [site.get("/", {"cookie": f"{name}={secret}"}) for name in names]
    refused([*answers, site.get("/api/status", token)], 401)


def test_in_their_name(site):
    site.may_store = 2
    eve = site.cookie("eve")
    card = json.loads(site.get("/next", eve).text)["card"]
    sent = {"card": card, "choice": "1", "key": "k", "who": "ann", "name": "ann", "role": "owner"}
    answers = [site.send("POST", "/reply", {**eve, **JSON, "x-user": "ann"}, json.dumps(sent).encode())]
    answers.append(site.post("/answer", eve, {"card": 1, "choice": "0", "key": "l", "who": "ann"}))
    told = [event.who for event in site.services.storage.events(NAME) if event.key and event.key.endswith((" k", " l"))]
    assert set(told) == {"eve"}


def test_expired(site):
    access = site.services.access
    link = access.give("link", "late", "expert", seconds=0.0)
    token = access.give("token", "late", "expert", seconds=0.0)
    cookie = access._keep("cookie", "late", "expert", 0.0)
    time.sleep(0.02)
    answers = [site.get("/", {"cookie": f"{access.cookie_name}={cookie}"})]
    answers += [site.post("/enter", None, {"key": link}), site.get("/api/status", {"authorization": f"Bearer {token}"})]
    refused(answers, 401, 403)


def test_altered_cookie(site):
    name, _, secret = site.cookie("ann")["cookie"].partition("=")
    others = [secret[:k] + ("A" if secret[k] != "A" else "B") + secret[k + 1 :] for k in range(len(secret))]
    others += [secret[:-1], secret + "A", secret.swapcase(), secret[::-1], digest_of(secret)]
    others += ["x", "", "%00", "a" * 4000, "null", "../..", "' OR 1=1 --", "[]", "\u00e9"]
    refused((site.get("/next", {"cookie": f"{name}={other}"}) for other in others), 401)


def test_altered_link(site):
    key = site.services.access.give("link", "ann", "expert")
    others = (key[:-1], key + "A", key[1:] + key[0], key.swapcase(), "", digest_of(key), base64.b64encode(key.encode()))
    refused((site.post("/enter", None, {"key": other}) for other in others), 403)


def test_reused(site):
    key = site.services.access.give("link", "ann", "expert")
    first = site.post("/enter", None, {"key": key})
    again = [site.post("/enter", None, {"key": key}) for _ in range(3)]
    refused(again, 403)
    assert first.status == 303
    assert not _cookies(again)


def test_prefetched(site):
    key = site.services.access.give("link", "ann", "expert")
    ahead = [
        site.send("GET", f"/enter?key={key}", {"sec-purpose": "prefetch", "purpose": "prefetch"}) for _ in range(3)
    ]
    ahead += [site.send(method, f"/enter?key={key}", own_site=False) for method in ("HEAD", "OPTIONS", "PUT")]
    is_good = site.services.access.link(key) is not None
    assert is_good
    assert not _cookies(ahead)


def test_race(site):
    key = site.services.access.give("link", "ann", "expert")
    with ThreadPoolExecutor(8) as many:
        answers = list(many.map(lambda _: site.post("/enter", None, {"key": key}), range(8)))
    assert len(_cookies(answers)) == 1


def test_other_kind(site):
    access = site.services.access
    link, token = access.give("link", "ann", "expert"), access.give("token", "ann", "expert")
    name, _, cookie = site.cookie("ann")["cookie"].partition("=")
    answers = [site.get("/", {"cookie": f"{name}={secret}"}) for secret in (link, token, digest_of(cookie))]
    headers = (f"Bearer {link}", f"Bearer {cookie}", f"Basic {token}", token, "Bearer", f"Bearer {digest_of(token)}")
    answers += [site.get("/api/status", {"authorization": header}) for header in headers]
    answers += [site.post("/enter", None, {"key": secret}) for secret in (token, cookie)]
    refused(answers, 401, 403)


def test_in_the_query(site):
    token = site.token("ann")["authorization"].split()[1]
    name, _, cookie = site.cookie("ann")["cookie"].partition("=")
    names = ("token", "access_token", "key", "authorization", "api_key")
    answers = [site.get(f"/api/status?{one}={token}") for one in names]
    answers += [site.get(f"/?{name}={cookie}"), site.get(f"/next?{name}={cookie}&key={cookie}")]
    refused(answers, 401)


def test_revoked(site):
    cookie, token = site.cookie("gone"), site.token("gone")
    link = site.services.access.give("link", "gone", "expert")
    owner = site.cookie("boss", "owner")
    site.post("/revoke", owner, {"name": "gone"})
    answers = [site.get("/", cookie), site.get("/api/status", token), site.post("/enter", None, {"key": link})]
    other = site.cookie("left")
    site.post("/leave", other)
    refused([*answers, site.get("/", other)], 401, 403)


def test_revoked_stream(site):
    headers = {**site.cookie("second", "owner"), "host": "localhost"}
    connection = http.client.HTTPConnection(*site.place, timeout=20)
    connection.request("GET", "/owner-events", headers=headers)
    answer = connection.getresponse()
    answer.readline()
    site.services.access.revoke("second")
    try:
        answer.read()  # to its end, before the connection is given up
    finally:
        connection.close()


def test_guessing(site):
    limit = site.services.entries
    before = limit.a_second, limit.at_once
    limit.a_second, limit.at_once = 0.2, 20.0
    limit._levels.clear()
    try:
        answers = [site.post("/enter", None, {"key": f"guess {k}"}) for k in range(40)]
    finally:
        limit.a_second, limit.at_once = before
        limit._levels.clear()
    refused(answers, 403, 429)
    assert answers[-1].status == 429


def _cookies(answers):
    return [answer.headers["set-cookie"] for answer in answers if "set-cookie" in answer.headers]


# Further in than one's role allows ----------------------------------------------------------------------------------


def test_owners_pages(site):
    ways = site.cookie("ann"), site.token("ann")
    refused((site.get(path, way) for way in ways for path in OWNERS), 403)


def test_owners_forms(site):
    forms = {
        "/pause": {"paused": "1"},
        "/correct": {"event": "1", "choice": "0", "key": "k"},
        "/link": {"name": "eve", "role": "owner"},
        "/revoke": {"name": "boss"},
    }
    ann = site.cookie("ann")
    site.cookie("boss", "owner")
    before = site.services.access.grants()
    refused([site.post(path, ann, form) for path, form in forms.items()], 403)
    is_as_before = site.services.access.grants() == before and not site.services.storage.open(NAME).paused
    assert is_as_before


def test_headers_of_role(site):
    ann = site.cookie("ann")
    tricks = {"x-original-url": "/owner", "x-rewrite-url": "/owner", "x-http-method-override": "POST"}
    tricks |= {"x-role": "owner", "x-forwarded-user": "boss", "x-forwarded-for": "127.0.0.1"}
    answers = [site.get("/owner", {**ann, name: value}) for name, value in tricks.items()]
    page = site.get("/", {**ann, **tricks})
    refused(answers, 403)
    assert 'id="live"' not in page.text


def test_others_answers(site):
    site.may_store = 1
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
    assert is_hidden


def test_estimate(site):
    ann = site.cookie("ann")
    snapshot = site.services.latest.snapshot
    assert snapshot is not None
    (one, *_) = snapshot.ranges.values()
    numbers = [f"{value:.3f}" for value in (one.mean, one.low, one.high) if value not in (0.0, 1.0)]
    assert numbers
    paths = ("/", "/next", "/previous", "/api/status", "/api/openapi.json", "/nothing")
    told = " ".join(site.get(path, ann).text for path in paths)
    assert not any(number in told for number in numbers)


def test_reason_of_the_end(site):
    own = site.services
    own.storage.create("ended", "active test", {})
    latest = LatestSnapshot()
    assert own.latest.snapshot is not None
    latest.put(replace(own.latest.snapshot, finished="'new' is better than 'old' with probability 0.987"))
    pages = Pages(Services(own.storage, "ended", own.labels, latest, own.estimating, look=own.look))
    people = [Person("x", role) for role in ROLES[::-1]]
    told, told_owner = (pages.render("_place.html", one, **pages.place_context(one, None)) for one in people)
    assert "0.987" in told_owner
    assert "0.987" not in told


def test_description(site):
    text = site.get("/api/openapi.json").text
    is_plain = "/api/tell" in text and not any(f'"{secret}"' in text for secret in (NAME, "bob", "Text 1", "image"))
    assert is_plain


# From elsewhere -----------------------------------------------------------------------------------------------------


def test_cross_site(site):
    ann = {**site.cookie("ann"), **JSON}
    sites = ("cross-site", "same-site", "x", "")
    refused((site.send("POST", p, {**ann, "sec-fetch-site": s}, _REPLY) for s in sites for p in WRITES), 403)


def test_cross_origin(site):
    ann, (_, port) = {**site.cookie("ann"), **JSON}, site.place
    origins = ["http://evil.example", "null", f"http://evil.example:{port}", "http://127.0.0.1:1", "http://["]
    origins += [
        f"http://127.0.0.1:{port}.evil.example",
        f"http://127.0.0.1@evil.example:{port}",
        "http://127.0.0.1:99999",
    ]
    answers = [site.send("POST", "/reply", {**ann, "origin": one}, _REPLY, own_site=False) for one in origins]
    answers.append(site.send("POST", "/reply", ann, _REPLY, own_site=False))  # a cookie, and no word on where from
    refused(answers, 403)


def test_by_get(site):
    boss = {**site.cookie("boss", "owner"), "sec-fetch-site": "cross-site"}
    changes = [path for path in WRITES if path != "/leave"]
    refused((site.send("GET", f"{path}?paused=1&name=ann&card=1&choice=1&key=k", boss) for path in changes), 405)


def test_foreign_host(site):
    ann, (_, port) = site.cookie("ann"), site.place
    hosts = (
        "evil.example",
        f"evil.example:{port}",
        f"127.0.0.1.evil.example:{port}",
        "127.0.0.1@evil.example",
        "",
        "[",
    )
    hosts += ("localhost.", "0.0.0.0", "2130706433", "127.1", "localhost/evil", "evil.example?localhost")
    answers = [site.send("GET", path, {**ann, "host": host}) for host in hosts for path in ("/", "/next")]
    refused(answers, 400, 421)


def test_two_hosts(site):
    cookie = site.cookie("ann")["cookie"].encode()
    own = b"Host: localhost\r\n"
    heads = [own + b"Host: evil.example\r\n", b"Host: evil.example\r\n" + own, b"Host: localhost, evil.example\r\n"]
    answers = [site.raw(b"GET / HTTP/1.1\r\n" + head + b"Cookie: " + cookie + b"\r\n\r\n") for head in heads]
    whole = b"GET http://evil.example/ HTTP/1.1\r\n" + own + b"Cookie: " + cookie + b"\r\n\r\n"
    forwarded = {"host": "evil.example", "x-forwarded-host": "localhost", "forwarded": "host=localhost"}
    answers += [site.raw(whole), site.get("/", {"cookie": cookie.decode(), **forwarded})]
    refused(answers, 400, 404, 421)


# Paths --------------------------------------------------------------------------------------------------------------


def test_paths(site):
    ups = ("..", "%2e%2e", "..%2f", "%252e%252e", "..\\", "%5c..", "....//", "/etc/passwd", "%00", "..;", "%e2%80%a5")
    paths = [f"/static/{up}/access.py" for up in ups] + [f"/{up}/{up}/etc/passwd" for up in ups]
    paths += ["/static//etc/passwd", "/static/", "/static/.", "/templates/base.html", "/static/vetting.js/../../api.py"]
    ann = site.cookie("ann")
    answers = [site.get(path, ann) for path in paths]
    refused(answers, 400, 404, 405)
    is_closed = not any("import" in answer.text or "root:" in answer.text for answer in answers)
    assert is_closed


def test_image_paths(site):
    ann = site.cookie("ann")
    queries = ("../../etc/passwd", "1/../../secret.png", "-1", "0", "1e9", "9" * 30, "%00", "1%00.png", "../secret.png")
    answers = [site.get(f"/image?card={query}", ann) for query in queries]
    refused([*answers, *_images(site, "../secret.png")], 404, 422)


def test_symlinks(site):
    refused([*_images(site, "out.png"), *_images(site, "door/secret.png")], 404)


def _images(site, name):
    """What comes back for all cards whose image has this name."""
    column = site.services.labels.item_column("image")
    ann = site.cookie("ann")
    cards = [card.number for card in site.services.storage.cards(NAME, open_only=False)]
    chosen = [number for number in cards if column[site.services.cards.position_of(number)] == name]
    assert chosen
    assert SECRET in (site.folder.parent / "secret.png").read_bytes()
    return (site.get(f"/image?card={number}", ann) for number in chosen)


# Bodies and headers -------------------------------------------------------------------------------------------------

_LARGE = (1 << 20) + 1


def test_large(site):
    ann = {**site.cookie("ann"), **JSON}
    lengths = {"content-length": str(1 << 40)}
    answers = [site.send("POST", "/reply", {**ann, **lengths}, b""), site.send("POST", "/reply", ann, b" " * _LARGE)]
    long = json.dumps({"card": 1, "choice": "1", "key": "k", "comment": "a" * 4_001}).encode()
    answers += [site.send("POST", "/enter", FORM, b"k" * _LARGE), site.send("POST", "/reply", ann, long)]
    refused(answers, 0, 413, 422)


def test_chunked(site):
    def pieces():
        yield from (b" " * 65_536 for _ in range(17))

    head = b"POST /%s HTTP/1.1\r\nHost: localhost\r\nContent-Type: %s\r\nTransfer-Encoding: chunked\r\n\r\n"
    kinds = ((b"reply", b"application/json"), (b"enter", b"application/x-www-form-urlencoded"))
    sent = b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces())
    refused((site.raw(head % kind, sent) for kind in kinds), 0, 413)


def test_costly(site):
    robot = site.token("robot")
    nested = b'{"answers": ' + b"[" * 200_000 + b"]" * 200_000 + b"}"
    digits = b'{"card": ' + b"1" * 900_000 + b', "choice": "1", "key": "k"}'
    part = b'--x\r\nContent-Disposition: form-data; name="k%d"\r\n\r\nv\r\n'
    parts = b"".join(part % k for k in range(5_000)) + b"--x--\r\n"
    multipart = {"content-type": "multipart/form-data; boundary=x"}
    begin = time.perf_counter()
    answers = [site.send("POST", f"/api/{verb}", {**robot, **JSON}, nested) for verb in ("tell", "skip", "correct")]
    answers += [site.send("POST", "/reply", {**robot, **JSON}, digits), site.send("POST", "/enter", multipart, parts)]
    answers.append(site.send("POST", "/enter", FORM, b"&".join(b"k%d=v" % k for k in range(50_000))))
    refused(answers, 400, 403, 413, 422)
    assert time.perf_counter() - begin < 30


def test_long_search(site):
    robot = {**site.token("robot"), **JSON}
    words = ("a" * 50_000 + "!", "!" * 79 + " ", "<" * 50_000, "(" * 50_000, " " * 50_000 + "x")
    begin = time.perf_counter()
    answers = []
    for word in words:
        one = {"item": word, "truth": word}
        answers.append(site.send("POST", "/api/tell", robot, json.dumps({"answers": [one], "key": word[:80]}).encode()))
        answers.append(site.send("POST", "/api/skip", robot, json.dumps({"items": [word], "how": word}).encode()))
        answers.append(site.post("/link", site.cookie("boss", "owner"), {"name": word}))
        answers.append(site.get("/", {"cookie": f"a={word[:9000]};" * 3}))
    refused(answers, 200, 401, 422)
    assert time.perf_counter() - begin < 30


def test_smuggling(site):
    cookie = site.cookie("ann")["cookie"].encode()
    head = b"POST /reply HTTP/1.1\r\nHost: localhost\r\nCookie: " + cookie + b"\r\nSec-Fetch-Site: same-origin\r\n"
    hidden = b"0\r\n\r\nPOST /pause HTTP/1.1\r\nHost: localhost\r\n\r\n"
    size = str(len(hidden)).encode()
    lengths = [
        b"Content-Length: " + size + b"\r\nTransfer-Encoding: chunked",
        b"Content-Length: 1\r\nContent-Length: 9",
    ]
    lengths += [b"Transfer-Encoding: identity, chunked", b"Content-Length: +5", b"Transfer-Encoding : chunked"]
    answers = [site.raw(head + length + b"\r\n\r\n" + hidden, seconds=2.0) for length in lengths]
    is_paused = site.services.storage.open(NAME).paused
    refused(answers, 0, 400, 413, 422, 501)
    assert not is_paused


def test_broken_headers(site):
    get = b"GET /owner HTTP/1.1\r\nHost: localhost\r\n"
    token = site.token("ann")["authorization"].encode()
    heads = [
        b"X: a\r\n b\r\n",
        b"X\x00: a\r\n",
        b"X: a\x00b\r\n",
        b"X: " + b"a" * 200_000 + b"\r\n",
        b": a\r\n",
        b"\x16\x03\x01",
    ]
    heads += [b"Authorization: " + token + b"\r\nAuthorization: Bearer x\r\n", b"Cookie: " + b"a=b; " * 5_000 + b"\r\n"]
    refused((site.raw(get + head + b"\r\n", seconds=1.0) for head in heads), 0, 400, 401, 403, 431)


def test_upgrade(site):
    more = b"Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: eA==\r\nSec-WebSocket-Version: 13\r\n\r\n"
    heads = [b"GET /%s HTTP/1.1\r\nHost: localhost\r\n" % path for path in (b"owner-events", b"", b"api/log")]
    refused((site.raw(head + more) for head in heads), 400, 401)


# Connections --------------------------------------------------------------------------------------------------------


def test_slow_body(site):
    guard = site.server.config.app
    before, guard.longest_body = guard.longest_body, 0.5
    head = b"POST /reply HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n"
    try:
        refused([site.raw(head, *[b" "] * 8, pause=0.2)], 0, 408)
    finally:
        guard.longest_body = before


def test_slow_head(site):
    server = site.server
    before, server.slowest_head = server.slowest_head, 0.5
    try:
        refused([site.raw(b"GET / HTTP/1.1\r\n", *[b"X"] * 12, pause=0.3)], 0)
    finally:
        server.slowest_head = before


def test_many_connections(site):
    config, held = site.server.config, []
    before, config.limit_concurrency = config.limit_concurrency, 40
    try:
        held = [socket.create_connection(site.place, timeout=5) for _ in range(60)]
        turned_away = site.get("/api/status").status
    finally:
        config.limit_concurrency = before
        for connection in held:
            connection.close()
    status = site.get("/api/status").status
    is_bounded = before is not None and turned_away == 503
    assert is_bounded
    assert status == 401


def test_flood(site):
    limit, robot, calm = site.services.requests, site.token("flood"), site.token("calm")
    clock, now = limit.clock, limit.clock()
    limit.clock = lambda: now  # all of them in one moment
    try:
        with ThreadPoolExecutor(4) as many:
            answers = list(many.map(lambda _: site.get("/api/status", robot), range(220)))
        others = site.get("/api/status", calm).status
    finally:
        limit.clock = clock
    n_refused = sum(answer.status == 429 for answer in answers)
    assert n_refused == 20
    assert others == 200


# Text that would be run is in test_exports.py; here what would be read as something else ------------------------------


def test_log_lines(site):
    mark = "WARNING made-up line"
    paths = [f"/{path}%0d%0a{mark.replace(' ', '%20')}" for path in ("", "enter?key=", "static/", "next?before=")]
    answers = [site.get(path, {"user-agent": mark}) for path in paths]
    answers.append(site.raw(b"GET /\r\n" + mark.encode() + b" HTTP/1.1\r\nHost: localhost\r\n\r\n"))
    names = ("eve\n" + mark, "eve\r" + mark, "eve\x1b[2J", "eve\x85" + mark)
    answers += [site.post("/link", site.cookie("boss", "owner"), {"name": name}) for name in names]
    is_split = any("set-" in name.lower() and mark in value for one in answers for name, value in one.headers.items())
    people = {grant.who for grant in site.services.access.grants()}
    is_clean = mark not in site.logged.getvalue() and not any(mark in name for name in people)
    assert is_clean
    assert not is_split


def test_methods(site):
    boss = site.cookie("boss", "owner")
    methods = ("PUT", "DELETE", "PATCH", "TRACE", "CONNECT", "PROPFIND", "OPTIONS")
    answers = [site.send(method, path.partition("?")[0], boss) for path in {*READS, *WRITES} for method in methods]
    refused(answers, 400, 404, 405)
