"""Links, cookies, names and headers; what intruders try is in test_intrusions.py."""

import re
import stat

import pytest

from trueup.exceptions import InvalidParameter
from trueup.serve.guard import Access, Address, check_person
from trueup.storage import open_storage


def test_every_answer_carries_the_headers(vetting):
    ann = vetting.signed_in("ann")
    for path in ("/", "/next", "/nothing", "/static/vetting.js", "/api/status", "/api/estimate"):
        headers = ann.get(path).headers
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy
        assert (headers["x-content-type-options"], headers["referrer-policy"]) == ("nosniff", "no-referrer")
        assert headers["cross-origin-resource-policy"] == "same-origin"
        assert "access-control-allow-origin" not in headers
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
