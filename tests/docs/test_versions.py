"""The table of changes between Kubernetes versions has one row for each change."""

from __future__ import annotations

from pilothouse.apiserver.server.known_features import all_gates
from pilothouse.machinery import release
from tools.docs.reference.versions import version_changes

CHANGES = version_changes()


def test_every_change_belongs_to_a_served_version() -> None:
    assert {change["since"] for change in CHANGES} <= release.RELEASES.keys()


def test_every_gate_of_a_change_is_known() -> None:
    assert {change["gate"] for change in CHANGES if "gate" in change} <= all_gates()


def test_no_change_is_listed_twice() -> None:
    listed = [(change["since"], change["change"]) for change in CHANGES]
    assert len(listed) == len(set(listed))
