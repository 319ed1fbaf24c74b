"""What is refused before any page sees it."""

import socket

import pytest

from trueup.exceptions import InvalidParameter
from trueup.serve.guard import LARGEST_BODY, Address, RateLimit, refusal
from trueup.serve.running import check_port

HERE = Address()
PUBLIC = Address.of("https://vet.example.org/team/a")


GET, POST = "GET", "POST"
PUBLIC_HOST = {"host": "vet.example.org"}
LOCAL = {"host": "localhost:8000"}


@pytest.mark.parametrize(
    ("method", "headers", "address", "status"),
    [
        *((GET, {"host": h}, HERE, None) for h in ("localhost", "127.0.0.1:8000", "[::1]:8000", "LOCALHOST")),
        (GET, PUBLIC_HOST, PUBLIC, None),
        (GET, PUBLIC_HOST, HERE, 421),
        (POST, {**LOCAL, "sec-fetch-site": "same-origin", "cookie": "trueup-x=1"}, HERE, None),
        (POST, {**LOCAL, "origin": "http://localhost:8000", "cookie": "trueup-x=1"}, HERE, None),
        (POST, {**LOCAL, "authorization": "Bearer x"}, HERE, None),
        # The browser's word outweighs the origin.
        (POST, {**PUBLIC_HOST, "origin": "https://vet.example.org", "sec-fetch-site": "cross-site"}, PUBLIC, 403),
    ],
)
def test_who_may_come_in(method, headers, address, status):
    problem = refusal(method, list(headers.items()), address)
    assert (None if problem is None else problem[0]) == status


@pytest.mark.parametrize("name", ["host", "origin", "sec-fetch-site", "content-length", "authorization"])
def test_what_is_said_twice_is_refused(name):
    assert refusal("GET", [("host", "localhost"), (name, "a"), (name, "b")], HERE)[0] == 400
    assert refusal("GET", [("host", "localhost"), ("cookie", "a=1"), ("cookie", "b=2")], HERE) is None


@pytest.mark.parametrize("length", [str(LARGEST_BODY + 1), "-1", "1e3", "٣"])
def test_a_body_too_large_or_of_no_length_is_refused(length):
    headers = {"host": "localhost", "content-length": length, "authorization": "Bearer x"}
    assert refusal("POST", list(headers.items()), HERE)[0] == 413


@pytest.mark.parametrize("url", ["vet.example.org", "ftp://x", "https://", "https://a/?b", "https://a/#b"])
def test_a_public_address_must_be_one(url):
    with pytest.raises(InvalidParameter, match="public_url"):
        Address.of(url)


def test_a_rate_is_limited_for_each_caller_and_recovers():
    now = [0.0]
    limit = RateLimit(a_second=1.0, at_once=3.0, clock=lambda: now[0])
    assert [limit.takes("a") for _ in range(4)] == [True, True, True, False]
    assert limit.takes("b")
    now[0] = 2.0
    assert [limit.takes("a") for _ in range(3)] == [True, True, False]


def test_a_port_that_is_taken_is_said_before_anything_is_worked_out():
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        with pytest.raises(InvalidParameter, match=f"port={port}.* of 127.0.0.1, got .*0 for any that is free"):
            check_port("127.0.0.1", port)
    check_port("127.0.0.1", port)
    with pytest.raises(InvalidParameter, match="port=99999"):
        check_port("127.0.0.1", 99_999)
