"""No flag is accepted and ignored: each is read somewhere, or says why its promise is kept whatever it is set to."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

import pytest

import pilothouse
from pilothouse.controlplane.options.completion import InvalidOptions, complete
from pilothouse.controlplane.options.options import SECTIONS, Options
from pilothouse.controlplane.options.upstream_flags import REFUSED_VALUES, UNSUPPORTED_NAMES, WITHOUT_EFFECT

PROMISE_KEPT = {
    "contention-profiling",
    "default-watch-cache-size",
    "etcd-count-metric-poll-period",
    "etcd-db-metric-poll-interval",
    "log-flush-frequency",
    "permit-address-sharing",
    "profiling",
    "show-hidden-metrics-for-version",
    "shutdown-watch-termination-grace-period",
    "watch-cache-sizes",
}


ONE_VALUE = {
    "emulated_version": "--emulated-version=1.30",
    "emulation_forward_compatible": "--emulation-forward-compatible=true",
    "min_compatibility_version": "--min-compatibility-version=1.30",
    "runtime_config_emulation_forward_compatible": "--runtime-config-emulation-forward-compatible=true",
    "log_version": "--audit-log-version=audit.k8s.io/v2",
    "storage_backend": "--storage-backend=etcd2",
    "storage_media_type": "--storage-media-type=application/xml",
    "watch_cache": "--watch-cache=false",
    "webhook_version": "--audit-webhook-version=audit.k8s.io/v2",
}
"""Options that need not be read, because every value but one is refused."""


def _read_outside_validation() -> set[str]:
    """The names of all attributes that something other than an option's own validation reads."""
    found: set[str] = set()
    for file in Path(pilothouse.__file__).parent.rglob("*.py"):
        source = file.read_text()
        if file.parent.name == "options" or file.name == "run_options.py":
            source = re.sub(r"\n    def _?validate.*?(?=\n    (?:def|@)|\n\S|\Z)", "", source, flags=re.DOTALL)
        found.update(re.findall(r"\.([a-z_0-9]+)\b", source))
    return found


@pytest.mark.parametrize("section", SECTIONS.values(), ids=lambda section: section.title)
def test_every_option_is_read(section: type) -> None:
    read = _read_outside_validation()
    declared = {each.name for each in fields(section) if "flag" in each.metadata}
    assert declared - read <= set(ONE_VALUE)


def test_the_flags_that_nothing_goes_by_are_these_and_no_more() -> None:
    assert {flag.name for flag in WITHOUT_EFFECT} <= PROMISE_KEPT
    assert all(flag.help for flag in WITHOUT_EFFECT)
    assert REFUSED_VALUES.keys() <= PROMISE_KEPT


@pytest.mark.parametrize(
    "argument",
    [
        "--default-watch-cache-size=0",
        "--etcd-count-metric-poll-period=0",
        "--etcd-db-metric-poll-interval=0s",
        "--show-hidden-metrics-for-version=1.30",
        "--watch-cache-sizes=pods#100,nodes#0",
    ],
)
def test_a_value_whose_promise_is_not_kept_is_refused(argument: str) -> None:
    name = argument.partition("=")[0]
    with pytest.raises(InvalidOptions, match=f"{name}: "):
        complete(Options.parse([argument])).validate()


def test_other_values_of_such_flags_are_accepted() -> None:
    given = "--default-watch-cache-size=100 --watch-cache-sizes=pods#1000 --show-hidden-metrics-for-version=1.35"
    assert [*complete(Options.parse(given.split())).problems()] == []


@pytest.mark.parametrize("name", sorted(UNSUPPORTED_NAMES))
def test_a_flag_whose_feature_is_not_there_is_refused(name: str) -> None:
    with pytest.raises(InvalidOptions, match=f"--{name} is not supported by this version"):
        complete(Options.parse([f"--{name}=true"])).validate()


@pytest.mark.parametrize("argument", ONE_VALUE.values())
def test_a_flag_that_has_one_value_refuses_others(argument: str) -> None:
    assert [*complete(Options.parse([argument])).problems()] != []


def test_the_old_name_of_a_flag_has_the_same_effect() -> None:
    assert complete(Options.parse(["--audit-webhook-batch-initial-backoff=3s"])).audit.backoff == 3
    assert complete(Options.parse(["--audit-webhook-initial-backoff=4s"])).audit.backoff == 4


def test_without_garbage_collection_its_controller_is_left_out() -> None:
    given = complete(Options.parse(["--enable-garbage-collector=false"])).controllers.controllers
    assert given == ("-garbage-collector-controller", "*")
