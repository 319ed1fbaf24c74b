"""Tricks with what is sent: where from, to whom, paths, headers, bodies, connections, and text that would be run."""

from __future__ import annotations

import csv
import io
import json
import re
import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

from attacked_site import (
    FORM,
    JSON,
    NAME,
    READS,
    SECRET,
    WRITES,
    Answer,
    Intrusion,
    Outcome,
    Site,
    intrusion,
    refused,
)

__all__ = ["TRICKS"]

TRICKS: list[Intrusion] = []
_REPLY = json.dumps({"card": 1, "choice": "1", "key": "k"}).encode()


# From elsewhere -----------------------------------------------------------------------------------------------------


@intrusion(TRICKS, "a cross-site post, by Sec-Fetch-Site")
def _cross_site(site: Site) -> Outcome:
    ann = {**site.cookie("ann"), **JSON}
    sites = ("cross-site", "same-site", "x", "")
    return refused((site.send("POST", p, {**ann, "sec-fetch-site": s}, _REPLY) for s in sites for p in WRITES), 403)


@intrusion(TRICKS, "a cross-site post of an old browser, by Origin")
def _cross_origin(site: Site) -> Outcome:
    ann, (_, port) = {**site.cookie("ann"), **JSON}, site.place
    origins = ["http://evil.example", "null", f"http://evil.example:{port}", "http://127.0.0.1:1", "http://["]
    origins += [
        f"http://127.0.0.1:{port}.evil.example",
        f"http://127.0.0.1@evil.example:{port}",
        "http://127.0.0.1:99999",
    ]
    answers = [site.send("POST", "/reply", {**ann, "origin": one}, _REPLY, own_site=False) for one in origins]
    answers.append(site.send("POST", "/reply", ann, _REPLY, own_site=False))  # a cookie, and no word on where from
    return refused(answers, 403)


@intrusion(TRICKS, "a cross-site form whose body looks like JSON")
def _plain_text(site: Site) -> Outcome:
    sent = {**site.cookie("ann"), "content-type": "text/plain", "sec-fetch-site": "cross-site"}
    return refused([site.send("POST", "/reply", sent, _REPLY)], 403)


@intrusion(TRICKS, "a link on another site that would change something by being followed")
def _by_get(site: Site) -> Outcome:
    boss = {**site.cookie("boss", "owner"), "sec-fetch-site": "cross-site"}
    changes = [path for path in WRITES if path != "/leave"]
    return refused((site.send("GET", f"{path}?paused=1&name=ann&card=1&choice=1&key=k", boss) for path in changes), 405)


@intrusion(TRICKS, "a page of another site that reads or frames this one")
def _embedding(site: Site) -> Outcome:
    headers = [
        site.get(path, site.cookie("ann")).headers for path in ("/", "/next", "/api/status", "/static/vetting.js")
    ]
    is_closed = all(
        one["cross-origin-resource-policy"] == "same-origin"
        and "frame-ancestors 'none'" in one["content-security-policy"]
        and "access-control-allow-origin" not in one
        for one in headers
    )
    return Outcome(is_closed, "closed to frames, to other origins and to their requests")


@intrusion(TRICKS, "a foreign Host (DNS rebinding)")
def _foreign_host(site: Site) -> Outcome:
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
    return refused(answers, 400, 421)


@intrusion(TRICKS, "a foreign Host beside the right one")
def _two_hosts(site: Site) -> Outcome:
    cookie = site.cookie("ann")["cookie"].encode()
    own = b"Host: localhost\r\n"
    heads = [own + b"Host: evil.example\r\n", b"Host: evil.example\r\n" + own, b"Host: localhost, evil.example\r\n"]
    answers = [site.raw(b"GET / HTTP/1.1\r\n" + head + b"Cookie: " + cookie + b"\r\n\r\n") for head in heads]
    whole = b"GET http://evil.example/ HTTP/1.1\r\n" + own + b"Cookie: " + cookie + b"\r\n\r\n"
    forwarded = {"host": "evil.example", "x-forwarded-host": "localhost", "forwarded": "host=localhost"}
    answers += [site.raw(whole), site.get("/", {"cookie": cookie.decode(), **forwarded})]
    return refused(answers, 400, 404, 421)


# Paths --------------------------------------------------------------------------------------------------------------


@intrusion(TRICKS, "paths that lead out of the folder of the pages")
def _paths(site: Site) -> Outcome:
    ups = ("..", "%2e%2e", "..%2f", "%252e%252e", "..\\", "%5c..", "....//", "/etc/passwd", "%00", "..;", "%e2%80%a5")
    paths = [f"/static/{up}/access.py" for up in ups] + [f"/{up}/{up}/etc/passwd" for up in ups]
    paths += ["/static//etc/passwd", "/static/", "/static/.", "/templates/base.html", "/static/vetting.js/../../api.py"]
    ann = site.cookie("ann")
    answers = [site.get(path, ann) for path in paths]
    outcome = refused(answers, 400, 404, 405)
    is_closed = not any("import" in answer.text or "root:" in answer.text for answer in answers)
    return Outcome(outcome.kept_out and is_closed, outcome.told)


@intrusion(TRICKS, "an image outside the image folder, by its path")
def _image_paths(site: Site) -> Outcome:
    ann = site.cookie("ann")
    queries = ("../../etc/passwd", "1/../../secret.png", "-1", "0", "1e9", "9" * 30, "%00", "1%00.png", "../secret.png")
    answers = [site.get(f"/image?card={query}", ann) for query in queries]
    return refused([*answers, *_images(site, "../secret.png")], 404, 422)


@intrusion(TRICKS, "an image outside the image folder, by a symbolic link to the file and to its folder")
def _symlinks(site: Site) -> Outcome:
    return refused([*_images(site, "out.png"), *_images(site, "door/secret.png")], 404)


def _images(site: Site, name: str) -> Iterator[Answer]:
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


@intrusion(TRICKS, "an oversized body that says its length")
def _large(site: Site) -> Outcome:
    ann = {**site.cookie("ann"), **JSON}
    lengths = {"content-length": str(1 << 40)}
    answers = [site.send("POST", "/reply", {**ann, **lengths}, b""), site.send("POST", "/reply", ann, b" " * _LARGE)]
    long = json.dumps({"card": 1, "choice": "1", "key": "k", "comment": "a" * 4_001}).encode()
    answers += [site.send("POST", "/enter", FORM, b"k" * _LARGE), site.send("POST", "/reply", ann, long)]
    return refused(answers, 0, 413, 422)


@intrusion(TRICKS, "an oversized body in pieces, without its length")
def _chunked(site: Site) -> Outcome:
    def pieces() -> Iterator[bytes]:
        yield from (b" " * 65_536 for _ in range(17))

    head = b"POST /%s HTTP/1.1\r\nHost: localhost\r\nContent-Type: %s\r\nTransfer-Encoding: chunked\r\n\r\n"
    kinds = ((b"reply", b"application/json"), (b"enter", b"application/x-www-form-urlencoded"))
    sent = b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces())
    return refused((site.raw(head % kind, sent) for kind in kinds), 0, 413)


@intrusion(TRICKS, "bodies that are small and cost much: nested, numbers of a million digits, thousands of parts")
def _costly(site: Site) -> Outcome:
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
    outcome = refused(answers, 400, 403, 413, 422)
    return Outcome(outcome.kept_out and time.perf_counter() - begin < 30, outcome.told)


@intrusion(TRICKS, "input that makes a pattern or a search run for long")
def _long_search(site: Site) -> Outcome:
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
    outcome = refused(answers, 200, 401, 422)
    return Outcome(outcome.kept_out and time.perf_counter() - begin < 30, outcome.told)


@intrusion(TRICKS, "a second request hidden in the first, by lengths that differ")
def _smuggling(site: Site) -> Outcome:
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
    outcome = refused(answers, 0, 400, 413, 422, 501)
    return Outcome(outcome.kept_out and not is_paused, outcome.told)


@intrusion(TRICKS, "headers that are broken, doubled or far too long")
def _broken_headers(site: Site) -> Outcome:
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
    return refused((site.raw(get + head + b"\r\n", seconds=1.0) for head in heads), 0, 400, 401, 403, 431)


@intrusion(TRICKS, "an upgrade to a socket that nobody guards")
def _upgrade(site: Site) -> Outcome:
    more = b"Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: eA==\r\nSec-WebSocket-Version: 13\r\n\r\n"
    heads = [b"GET /%s HTTP/1.1\r\nHost: localhost\r\n" % path for path in (b"owner-events", b"", b"api/log")]
    return refused((site.raw(head + more) for head in heads), 400, 401)


# Connections --------------------------------------------------------------------------------------------------------


@intrusion(TRICKS, "a body that comes byte by byte")
def _slow_body(site: Site) -> Outcome:
    guard = site.server.config.app
    before, guard.longest_body = guard.longest_body, 0.5
    head = b"POST /reply HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n"
    try:
        return refused([site.raw(head, *[b" "] * 8, pause=0.2)], 0, 408)
    finally:
        guard.longest_body = before


@intrusion(TRICKS, "headers that come byte by byte")
def _slow_head(site: Site) -> Outcome:
    server = site.server
    before, server.slowest_head = server.slowest_head, 0.5
    try:
        return refused([site.raw(b"GET / HTTP/1.1\r\n", *[b"X"] * 12, pause=0.3)], 0)
    finally:
        server.slowest_head = before


@intrusion(TRICKS, "more connections than there is room for, which say nothing")
def _many_connections(site: Site) -> Outcome:
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
    return Outcome(is_bounded and status == 401, f"{turned_away} meanwhile, {status} after it")


@intrusion(TRICKS, "a flood of requests of one person")
def _flood(site: Site) -> Outcome:
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
    return Outcome(n_refused == 20 and others == 200, f"{refused(answers).told}; another person {others}")


# Text that would be run ---------------------------------------------------------------------------------------------

_FORMULAS = ("=cmd|' /C calc'!A0", "+1+1", "-2+3", "@SUM(A1)", "\t=1", "\r=1", "\uff1d1", '=HYPERLINK("http://evil")')
_TEMPLATES = ("{{ 7777 * 7 }}", "{% raw %}", "{0.__class__}", "{name.__class__}", "${7777*7}", "#{7777*7}", "%s%n")
_SCRIPTS = ("<script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "</script><script>", "javascript:alert(1)")


def _say(site: Site, who: str, texts: tuple[str, ...]) -> None:
    """Answer cards with comments."""
    headers = {**site.cookie(who), **JSON}
    for k, text in enumerate(texts):
        card = json.loads(site.get("/next", headers).text)["card"] or 1
        sent = {"card": card, "choice": "1", "key": f"{who} {k}", "comment": text}
        site.send("POST", "/reply", headers, json.dumps(sent).encode())


@intrusion(TRICKS, "formulas in comments, for the spreadsheet of the owner", stores=len(_FORMULAS))
def _formulas(site: Site) -> Outcome:
    _say(site, "=1+1", _FORMULAS)
    sheet = site.get("/export-sheet.csv", site.cookie("boss", "owner")).text
    cells = [cell for row in csv.reader(io.StringIO(sheet)) for cell in row]
    is_number = re.compile(r"-?[\d.]+(e-?\d+)?")
    live = [cell for cell in cells if cell[:1] in "=+-@\t\r\uff1d" and cell and not is_number.fullmatch(cell)]
    return Outcome(not live and len(cells) > 50, f"{len(live)} of {len(cells)} cells would be run")


@intrusion(TRICKS, "marks of templates in comments and names", stores=len(_TEMPLATES))
def _templates(site: Site) -> Outcome:
    _say(site, "{{7777*7}}", _TEMPLATES)
    boss = site.cookie("boss", "owner")
    site.post("/link", boss, {"name": "{person.__class__}"})
    pages = [site.get(path, boss).text for path in ("/owner", "/owner-state", "/export-report.html")]
    pages.append(site.get(f"/enter?key={site.services.access.give('link', '{t.errors}', 'expert')}").text)
    return Outcome(
        not any("54439" in page or "<class" in page or "&lt;class" in page for page in pages), "shown as they are"
    )


@intrusion(TRICKS, "scripts in comments and names", stores=len(_SCRIPTS))
def _scripts(site: Site) -> Outcome:
    _say(site, "<script>eve</script>", _SCRIPTS)
    boss = site.cookie("boss", "owner")
    pages = [site.get(path, boss).text for path in ("/owner", "/export-report.html")]
    pages.append(json.loads(site.get("/owner-state", boss).text)["recent"])
    live = re.compile(r"<script>(alert|eve)|<img src=x|</script><script>|href=.javascript")
    return Outcome(not any(live.search(page) for page in pages), "shown as they are")


@intrusion(TRICKS, "lines of a log, made up in names, paths and comments")
def _log_lines(site: Site) -> Outcome:
    mark = "WARNING made-up line"
    paths = [f"/{path}%0d%0a{mark.replace(' ', '%20')}" for path in ("", "enter?key=", "static/", "next?before=")]
    answers = [site.get(path, {"user-agent": mark}) for path in paths]
    answers.append(site.raw(b"GET /\r\n" + mark.encode() + b" HTTP/1.1\r\nHost: localhost\r\n\r\n"))
    names = ("eve\n" + mark, "eve\r" + mark, "eve\x1b[2J", "eve\x85" + mark)
    answers += [site.post("/link", site.cookie("boss", "owner"), {"name": name}) for name in names]
    is_split = any("set-" in name.lower() and mark in value for one in answers for name, value in one.headers.items())
    people = {grant.who for grant in site.services.access.grants()}
    is_clean = not any(mark in line for line in site.logged) and not any(mark in name for name in people)
    return Outcome(is_clean and not is_split, f"no line of it in the log, {refused(answers).told}")


@intrusion(TRICKS, "every page and form, by methods that are not theirs")
def _methods(site: Site) -> Outcome:
    boss = site.cookie("boss", "owner")
    methods = ("PUT", "DELETE", "PATCH", "TRACE", "CONNECT", "PROPFIND", "OPTIONS")
    answers = [site.send(method, path.partition("?")[0], boss) for path in {*READS, *WRITES} for method in methods]
    return refused(answers, 400, 404, 405)
