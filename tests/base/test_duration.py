"""Tests of how long work is announced."""

from __future__ import annotations

import logging

import pytest

from trueup._base.duration import LongWork


def announced(seconds: float, share: float, caplog: pytest.LogCaptureFixture) -> list[str]:
    caplog.clear()
    now = [0.0]
    work = LongWork("counting", clock=lambda: now[0])
    with caplog.at_level(logging.WARNING, logger="trueup"):
        work(0.0)
        for k in range(1, 4):
            now[0] = seconds * k
            work(share * k)
    return [record.getMessage() for record in caplog.records]


def test_long_work_is_announced_once(caplog: pytest.LogCaptureFixture) -> None:
    assert announced(10.0, 0.035, caplog) == ["counting will take about 5 more minutes; pass progress= to watch it"]
    assert announced(10.0, 0.15, caplog) == ["counting will take about 1 more minute; pass progress= to watch it"]


@pytest.mark.parametrize(("seconds", "share"), [(10.0, 0.2), (0.5, 0.001), (10.0, 0.0)])
def test_short_work_and_what_has_just_begun_are_not(
    seconds: float, share: float, caplog: pytest.LogCaptureFixture
) -> None:
    assert announced(seconds, share, caplog) == []


def test_what_comes_before_the_first_report_says_nothing_of_the_pace(caplog: pytest.LogCaptureFixture) -> None:
    now = [0.0]
    work = LongWork("counting", clock=lambda: now[0])
    with caplog.at_level(logging.WARNING, logger="trueup"):
        for now[0], share in ((90.0, 0.001), (92.0, 0.1), (95.0, 0.3)):
            work(share)
    assert not caplog.records
