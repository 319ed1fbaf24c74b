"""Tests of how long work is announced."""

import logging

import pytest

from trueup.noise.sampling import LongWork


def announced(seconds: float, share: float, caplog: pytest.LogCaptureFixture) -> list[str]:
    caplog.clear()
    now = [1.0]
    work = LongWork("counting", clock=lambda: now[0])
    with caplog.at_level(logging.WARNING, logger="trueup"):
        work(0.0)
        for k in range(1, 5):
            now[0] = 1.0 + seconds * k
            work(share * k)
    return [record.getMessage() for record in caplog.records]


def test_long_work_is_announced_once(caplog: pytest.LogCaptureFixture) -> None:
    assert announced(10.0, 0.035, caplog) == ["counting will take about 5 more minutes"]
    assert announced(10.0, 0.15, caplog) == ["counting will take about 1 more minute"]


@pytest.mark.parametrize(("seconds", "share"), [(10.0, 0.2), (0.5, 0.001), (10.0, 0.0)])
def test_short_work_and_what_has_just_begun_are_not(
    seconds: float, share: float, caplog: pytest.LogCaptureFixture
) -> None:
    assert announced(seconds, share, caplog) == []
