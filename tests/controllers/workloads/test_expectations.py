"""What a controller has done and not seen yet keeps it from doing it again."""

from __future__ import annotations

from pilothouse.client.fake_clock import FakeClock
from pilothouse.controllers.workloads.expectations import TIMEOUT, ControllerExpectations


def test_no_expectations_are_satisfied() -> None:
    assert ControllerExpectations(FakeClock()).are_met("ns/a")


def test_creations_are_met_when_as_many_were_seen() -> None:
    expectations = ControllerExpectations(FakeClock())
    expectations.expect_creations("ns/a", 2)
    expectations.creation_observed("ns/a")
    assert not expectations.are_met("ns/a")
    expectations.creation_observed("ns/a")
    assert expectations.are_met("ns/a")


def test_a_deletion_that_is_seen_twice_counts_once() -> None:
    expectations = ControllerExpectations(FakeClock())
    expectations.expect_deletions("ns/a", ["1", "2"])
    expectations.deletion_observed("ns/a", "1")
    expectations.deletion_observed("ns/a", "1")
    assert not expectations.are_met("ns/a")
    expectations.deletion_observed("ns/a", "2")
    assert expectations.are_met("ns/a")


def test_unmet_expectations_expire_after_five_minutes() -> None:
    clock = FakeClock()
    expectations = ControllerExpectations(clock)
    expectations.expect("ns/a", 1, ["1"])
    assert not expectations.are_met("ns/a")
    clock.advance(TIMEOUT + 1)
    assert expectations.are_met("ns/a")


def test_expectations_are_kept_per_key() -> None:
    expectations = ControllerExpectations(FakeClock())
    expectations.expect_creations("ns/a", 1)
    assert expectations.are_met("ns/b")
    expectations.forget("ns/a")
    assert expectations.are_met("ns/a")
