"""Who gets in: each attempt of an intruder by itself."""

import re
import stat
import time

import pytest

from trueup.exceptions import InvalidParameter
from trueup.serve.access import Access, check_person, digest_of
from trueup.serve.guard import Address
from trueup.storage import open_storage

PAGES = ["/", "/next", "/previous", "/owner", "/owner-state", "/owner-events", "/image?card=1", "/export-answers.csv"]
PAGES += ["/export-sheet.csv", "/export-log.json", "/export-report.html", "/api/status", "/api/estimate", "/api/log"]
POSTS = ["/answer", "/reply", "/renew", "/pause", "/correct", "/link", "/revoke", "/leave"]
POSTS += ["/api/ask", "/api/tell", "/api/skip", "/api/correct"]


def test_without_a_cookie_nothing_is_shown(vetting):
    client = vetting.client()
    assert [client.get(path).status_code for path in PAGES] == [401] * len(PAGES)
    assert [client.post(path).status_code for path in POSTS] == [401] * len(POSTS)
    assert len(vetting.storage.events("q3")) == len(vetting.storage.cards("q3"))


def test_a_link_is_shown_as_a_button_and_used_by_post_alone(vetting):
    client = vetting.client()
    key = vetting.services.access.give("link", "ann", "expert")
    for _ in range(3):  # a program that checks mail follows it, and a browser fetches it ahead
        page = client.get("/enter", params={"key": key})
        assert "Open the session" in page.text
        assert "set-cookie" not in page.headers
    entered = client.post("/enter", data={"key": key}, follow_redirects=False)
    assert (entered.status_code, entered.headers["location"]) == (303, "./")
    assert client.get("/").status_code == 200


def test_a_link_works_once(vetting):
    key = vetting.services.access.give("link", "ann", "expert")
    assert vetting.client().post("/enter", data={"key": key}, follow_redirects=False).status_code == 303
    second = vetting.client()
    again = second.post("/enter", data={"key": key})
    assert (again.status_code, "set-cookie" in again.headers) == (403, False)
    assert "does not work" in second.get("/enter", params={"key": key}).text
    assert second.get("/").status_code == 401


def test_an_altered_link_is_refused(vetting):
    key = vetting.services.access.give("link", "ann", "expert")
    for other in (key[:-1], key + "A", key[1:] + key[0], "", "x" * 200, digest_of(key)):
        client = vetting.client()
        assert client.post("/enter", data={"key": other}).status_code == 403
        assert client.get("/").status_code == 401


def test_an_expired_link_is_refused(vetting):
    key = vetting.services.access.give("link", "ann", "expert", seconds=0.0)
    time.sleep(0.01)
    assert vetting.client().post("/enter", data={"key": key}).status_code == 403


def test_an_expired_cookie_is_refused(vetting):
    access = vetting.services.access
    cookie = access._keep("cookie", "ann", "expert", 0.0)
    time.sleep(0.01)
    client = vetting.client()
    client.cookies.set(access.cookie_name, cookie)
    assert client.get("/").status_code == 401


def test_a_revoked_person_is_out_at_once(vetting):
    ann, owner = vetting.signed_in("ann"), vetting.signed_in("owner", "owner")
    link = vetting.services.access.give("link", "ann", "expert")
    assert ann.get("/").status_code == 200
    assert owner.post("/revoke", data={"name": "ann"}, follow_redirects=False).status_code == 303
    assert ann.get("/").status_code == 401
    assert vetting.client().post("/enter", data={"key": link}).status_code == 403


def test_a_made_up_or_foreign_cookie_is_refused(vetting, make_vetting):
    other = make_vetting()
    stranger = other.signed_in("ann")
    name, secret = other.services.access.cookie_name, stranger.cookies[other.services.access.cookie_name]
    assert name != vetting.services.access.cookie_name
    for cookie in (secret, "x", "", "%C3%A9"):
        client = vetting.client()
        client.headers["cookie"] = f"{vetting.services.access.cookie_name}={cookie}"
        assert client.get("/").status_code == 401


def test_a_cookie_is_of_its_own_person_only(vetting):
    """Another's cookie is their card, never one's own; nobody can pass for another by a name in the request."""
    ann, bob = vetting.signed_in("ann"), vetting.signed_in("bob")
    mine, theirs = ann.get("/next").json()["card"], bob.get("/next").json()["card"]
    assert mine != theirs
    bob.post("/reply", json={"card": theirs, "choice": "1", "key": "k", "who": "ann"})
    assert {event.who for event in vetting.storage.events("q3") if event.kind == "tell"} == {"bob"}


def test_a_link_is_no_cookie_and_no_token(vetting):
    access = vetting.services.access
    key, token = access.give("link", "ann", "expert"), access.give("token", "ann", "expert")
    for secret in (key, token):
        client = vetting.client()
        client.cookies.set(access.cookie_name, secret)
        assert client.get("/").status_code == 401
    for header in (f"Bearer {key}", f"Basic {token}", "Bearer", token):
        assert vetting.client().get("/api/status", headers={"authorization": header}).status_code == 401


def test_experts_reach_nothing_of_the_owner(vetting):
    ann = vetting.signed_in("ann")
    owners = [path for path in PAGES if path.startswith(("/owner", "/export", "/api/estimate", "/api/log"))]
    assert [ann.get(path).status_code for path in owners] == [403] * len(owners)
    assert "Overview" not in ann.get("/").text
    forms = {
        "/pause": {"paused": "1"},
        "/correct": {"event": "1", "choice": "0", "key": "k"},
        "/link": {"name": "eve", "role": "owner"},
        "/revoke": {"name": "owner"},
    }
    assert [ann.post(path, data=form).status_code for path, form in forms.items()] == [403] * len(forms)
    assert not vetting.storage.open("q3").paused
    assert {grant.who for grant in vetting.services.access.grants()} == {"ann"}


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_a_post_from_another_site_is_refused(vetting, site):
    ann = vetting.signed_in("ann")
    card = ann.get("/next").json()["card"]
    sent = {"card": card, "choice": "1", "key": "k"}
    assert ann.post("/reply", json=sent, headers={"sec-fetch-site": site}).status_code == 403
    del ann.headers["sec-fetch-site"]
    assert ann.post("/reply", json=sent, headers={"origin": "http://evil.example"}).status_code == 403
    assert ann.post("/reply", json=sent).status_code == 403  # a cookie, and nothing that says where from
    assert not [event for event in vetting.storage.events("q3") if event.kind == "tell"]


def test_a_foreign_host_is_refused(vetting):
    ann = vetting.signed_in("ann")
    answer = ann.get("/", headers={"host": "evil.example"})
    assert (answer.status_code, answer.headers["x-content-type-options"]) == (421, "nosniff")


def test_an_oversized_body_is_refused_with_and_without_its_length(vetting):
    ann = vetting.signed_in("ann")
    large = b'{"card": 1, "choice": "1", "key": "k", "comment": "' + b"a" * (1 << 20) + b'"}'
    json_body = {"content-type": "application/json"}
    assert ann.post("/reply", content=large, headers=json_body).status_code == 413
    parts = (large[k : k + 65536] for k in range(0, len(large), 65536))
    assert ann.post("/reply", content=parts, headers=json_body).status_code == 413
    form = {"content-type": "application/x-www-form-urlencoded"}
    parts = (b"key=" + b"a" * 70_000 for _ in range(20))
    assert vetting.client().post("/enter", content=parts, headers=form).status_code in (413, 422)
    long = {"card": 1, "choice": "1", "key": "k", "comment": "a" * 4001}
    assert ann.post("/reply", json=long).status_code == 422


@pytest.mark.parametrize(
    "path",
    [
        "/static/../access.py",
        "/static/%2e%2e/access.py",
        "/static/..%2faccess.py",
        "/static//etc/passwd",
        "/image?card=../../etc/passwd",
        "/../../etc/passwd",
        "/static/\x00",
    ],
)
def test_tricks_with_paths_lead_nowhere(vetting, path):
    ann = vetting.signed_in("ann")
    answer = ann.get(path.replace("\x00", "%00"))
    assert answer.status_code in (401, 404, 422)
    assert "import" not in answer.text
    assert "root:" not in answer.text


def test_guessing_is_slowed_down(vetting):
    codes = [vetting.client().post("/enter", data={"key": f"guess{k}"}).status_code for k in range(40)]
    assert 429 in codes
    assert set(codes) <= {403, 429}


def test_too_many_requests_of_a_person_are_refused(vetting):
    ann = vetting.signed_in("ann")
    now = vetting.services.requests.clock()
    vetting.services.requests.clock = lambda: now  # time stands still
    codes = [ann.get("/api/status").status_code for _ in range(201)]
    assert (codes.count(200), codes[-1]) == (200, 429)


def test_every_answer_carries_the_headers(vetting):
    ann = vetting.signed_in("ann")
    for path in ("/", "/nothing", "/static/vetting.css", "/api/status", "/api/estimate"):
        headers = ann.get(path).headers
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy
        assert (headers["x-content-type-options"], headers["referrer-policy"]) == ("nosniff", "no-referrer")
    assert "no-store" in ann.get("/").headers["cache-control"]


def test_cookies_are_closed_to_scripts_and_other_sites(vetting, make_vetting):
    def cookie_of(one):
        key = one.services.access.give("link", "zoe", "expert")
        return one.client().post("/enter", data={"key": key}, follow_redirects=False).headers["set-cookie"].lower()

    plain = cookie_of(vetting)
    assert "httponly" in plain
    assert "samesite=lax" in plain
    assert "secure" not in plain
    assert "path" not in plain  # that of the page, whatever a proxy makes of it
    secure = make_vetting(address=Address(is_https=True))
    assert "secure" in cookie_of(secure)


def test_signing_out_ends_the_cookie(vetting):
    ann = vetting.signed_in("ann")
    name = vetting.services.access.cookie_name
    secret = ann.cookies[name]
    assert ann.post("/leave", follow_redirects=False).status_code == 303
    thief = vetting.client()
    thief.cookies.set(name, secret)
    assert thief.get("/").status_code == 401


def test_only_hashes_are_kept_in_a_file_of_the_owner_alone(tmp_path):
    storage = open_storage(f"sqlite:///{tmp_path}/private.db")
    storage.create("q3", "active test", {})
    access = Access(storage, "q3")
    secrets = [access.give("link", "ann", "expert"), access.give("token", "bob", "expert")]
    storage.close()
    files = list(tmp_path.glob("private.db*"))
    assert files
    for file in files:
        assert not any(secret.encode() in file.read_bytes() for secret in secrets)
        assert stat.S_IMODE(file.stat().st_mode) & 0o077 == 0
    assert all(len(secret) == 43 for secret in secrets)  # 256 bits


def test_a_name_has_one_role(vetting):
    vetting.services.access.give("link", "ann", "expert")
    with pytest.raises(InvalidParameter, match="one name has one role"):
        vetting.services.access.give("link", "ann", "owner")


@pytest.mark.parametrize("name", ["", "  ", "a\nb", "a\x00", "x" * 81, None, "a\u202eb"])
def test_names_of_people_can_be_seen(name):
    with pytest.raises(InvalidParameter, match="characters that can be seen"):
        check_person(name)


def test_another_process_that_revokes_is_heard(vetting):
    now = [0.0]
    access = Access(vetting.storage, "q3", clock=lambda: now[0])
    token = access.give("token", "ann", "expert")
    assert access.person_of(token, "token").name == "ann"
    vetting.storage.revoke("q3", who="ann")  # not through this object
    now[0] = 5.0
    assert access.person_of(token, "token") is None


def test_no_page_names_an_absolute_address(vetting):
    ann, owner = vetting.signed_in("ann"), vetting.signed_in("owner", "owner")
    for page in (ann.get("/"), owner.get("/owner"), vetting.client().get("/enter?key=x"), ann.get("/a/b/c")):
        addresses = re.findall(r'(?:href|src|action)="([^"]*)"', page.text)
        assert addresses
        assert not [one for one in addresses if one.startswith(("/", "http", "//"))]


def test_a_path_without_its_slash_leads_to_the_one_with_it(make_vetting):
    client = make_vetting(wait=False, address=Address(prefix="/team/vetting")).client()
    answer = client.get("/team/vetting", follow_redirects=False)
    assert (answer.status_code, answer.headers["location"]) == (307, "vetting/")
    assert client.get("/team/vetting/").status_code == 401
