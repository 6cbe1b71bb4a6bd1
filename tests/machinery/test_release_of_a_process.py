"""The Kubernetes release of a process: chosen once, before it is read. Each case is a process of its own."""

from __future__ import annotations

import subprocess
import sys

import pytest

from pilothouse.machinery import release, version_rules
from pilothouse.machinery.release import RELEASES, UnknownRelease, release_of
from pilothouse.machinery.version_rules import RULES, VersionRule


def printed(code: str) -> str:
    program = "from pilothouse.machinery import release, version_rules\n" + code
    return subprocess.check_output([sys.executable, "-c", program], text=True).strip()


@pytest.mark.parametrize("name", RELEASES)
def test_a_process_implements_the_chosen_release(name: str) -> None:
    assert printed(f"release.choose({name!r}); print(release.current().git_version)") == RELEASES[name].git_version


def test_the_default_release_is_settled_by_the_first_read() -> None:
    code = """
print(release.current().name)
try:
    release.choose("1.34")
except release.ReleaseAlreadyChosen as error:
    print(error)
"""
    default, refusal = printed(code).splitlines()
    assert default == release.DEFAULT
    assert refusal == (
        f"this process already implements Kubernetes {release.DEFAULT} and cannot switch to 1.34; start another process"
    )


def test_the_same_release_can_be_chosen_again() -> None:
    assert printed("release.choose('1.35'); release.choose('v1.35.8'); print(release.current().name)") == "1.35"


def test_names_of_a_release() -> None:
    assert {release_of(name) for name in ("1.35", "v1.35", "1.35.8", " v1.35.8 ")} == {RELEASES["1.35"]}


@pytest.mark.parametrize("name", ["1.33", "1.38", "1.35.7", "35", "", "latest"])
def test_unknown_names_are_refused_with_the_known_ones(name: str) -> None:
    with pytest.raises(UnknownRelease) as refusal:
        release_of(name)
    assert str(refusal.value) == (f'Kubernetes version "{name}" is not available; choose one of 1.34, 1.35, 1.36, 1.37')


def test_a_rule_holds_from_its_first_minor_to_before_its_last() -> None:
    rule = VersionRule("Rule", "a change", since=35, until=37)
    assert [minor for minor in range(33, 39) if rule.holds_in(minor)] == [35, 36]
    assert all(VersionRule("Rule", "a change", until=36).holds_in(minor) for minor in (1, 35))
    assert VersionRule("Rule", "a change", since=36).holds_in(99)


def test_every_rule_changes_within_the_releases() -> None:
    minors = [each.minor for each in RELEASES.values()]
    for rule in RULES.values():
        assert len({rule.holds_in(minor) for minor in minors}) == 2, f"{rule.name} is the same in every release"


def test_rules_are_those_of_the_release_of_the_process() -> None:
    assert printed("release.choose('1.34'); print(version_rules.holds('FeatureGateDependencies'))") == "False"
    assert printed("release.choose('1.37'); print(version_rules.holds('FeatureGateDependencies'))") == "True"
    with pytest.raises(KeyError):
        version_rules.holds("NoSuchRule")


def test_data_is_marked_with_the_versions_that_have_it() -> None:
    marks = ("1.34-", "1.35", "1.35+", "1.36-", "1.36+")
    found = printed(f"release.choose('1.35'); print([mark for mark in {marks} if version_rules.in_versions(mark)])")
    assert found == "['1.35', '1.35+', '1.36-']"
