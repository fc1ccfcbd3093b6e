"""Deadlines: time is shared out in equal parts, and what one part leaves goes to the rest."""

from __future__ import annotations

import pytest

from ranktune.tuner.study.deadline import Deadline


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_no_timeout_never_ends() -> None:
    assert Deadline.after(None).left == float("inf")
    assert Deadline.after(None).share(5).left == float("inf")


def test_shares_are_of_what_is_left() -> None:
    clock = Clock()
    whole = Deadline.after(60.0, clock)
    assert whole.share(3).left == pytest.approx(20.0)
    clock.now += 5.0  # the first part took less than its share
    assert whole.share(2).left == pytest.approx(27.5)
    clock.now += 60.0
    assert whole.left == pytest.approx(-5.0)
