"""Role bindings: what is filled in, and whom they may bind to what."""

from __future__ import annotations

from typing import Any

import pytest
from rbac_store import GROUP, binding, user
from rules import decoded, refusals, update_refusals

from pilothouse.kube.rbac.bindings import CLUSTER_ROLE_BINDINGS, ROLE_BINDINGS
from pilothouse.machinery.objects import Json

ACCOUNT: Json = {"kind": "ServiceAccount", "name": "robot", "namespace": "build"}


def bound(*subjects: Json, **role: Any) -> Json:
    made = binding("b", "reader", *subjects, namespace="default")
    made["roleRef"] |= role
    return made


@pytest.mark.parametrize(
    ("subject", "group"),
    [
        ({"kind": "User", "name": "jane"}, GROUP),
        ({"kind": "Group", "name": "devs"}, GROUP),
        (ACCOUNT, None),
        ({"kind": "User", "name": "jane", "apiGroup": "other.io"}, "other.io"),
        ({"kind": "Robot", "name": "r2"}, None),
    ],
)
def test_users_and_groups_are_of_rbacs_group_unless_they_say_otherwise(subject: Json, group: str | None) -> None:
    made = decoded(ROLE_BINDINGS, bound(subject))
    assert (made["subjects"][0].get("apiGroup") or None) == group


def test_a_role_is_of_rbacs_group_unless_the_binding_says_otherwise() -> None:
    assert decoded(ROLE_BINDINGS, bound(apiGroup=""))["roleRef"]["apiGroup"] == GROUP
    assert decoded(ROLE_BINDINGS, bound(apiGroup="other.io"))["roleRef"]["apiGroup"] == "other.io"


@pytest.mark.parametrize(
    ("subject", "fields"),
    [
        ({"kind": "User", "name": "jane"}, []),
        (ACCOUNT, []),
        ({"kind": "User", "name": ""}, ["subjects[0].name"]),
        ({"kind": "User", "name": "jane", "apiGroup": "other.io"}, ["subjects[0].apiGroup"]),
        ({"kind": "Group", "name": "devs", "apiGroup": "other.io"}, ["subjects[0].apiGroup"]),
        ({"kind": "Robot", "name": "r2"}, ["subjects[0].kind"]),
        (ACCOUNT | {"apiGroup": GROUP}, ["subjects[0].apiGroup"]),
        (ACCOUNT | {"name": "Not A Name"}, ["subjects[0].name"]),
    ],
)
def test_a_subject_that_can_not_be_meant_is_refused(subject: Json, fields: list[str]) -> None:
    assert [refused.split(":")[0] for refused in refusals(ROLE_BINDINGS, bound(subject))] == fields


def test_an_account_bound_in_the_whole_cluster_needs_its_namespace() -> None:
    without = {"kind": "ServiceAccount", "name": "robot"}
    everywhere = binding("b", "reader", without)
    assert [refused.split(":")[0] for refused in refusals(CLUSTER_ROLE_BINDINGS, everywhere)] == [
        "subjects[0].namespace"
    ]
    assert refusals(ROLE_BINDINGS, bound(without)) == []


@pytest.mark.parametrize(
    ("role", "fields"),
    [
        ({}, []),
        ({"kind": "Role"}, []),
        ({"kind": "Thing"}, ["roleRef.kind"]),
        ({"apiGroup": "other.io"}, ["roleRef.apiGroup"]),
        ({"name": ""}, ["roleRef.name"]),
        ({"name": "a/b"}, ["roleRef.name"]),
    ],
)
def test_a_role_that_can_not_be_meant_is_refused(role: Json, fields: list[str]) -> None:
    assert [refused.split(":")[0] for refused in refusals(ROLE_BINDINGS, bound(**role))] == fields


def test_a_binding_in_the_whole_cluster_is_to_a_role_of_the_whole_cluster() -> None:
    assert refusals(CLUSTER_ROLE_BINDINGS, binding("b", "reader", user("jane"))) == []
    local = binding("b", "reader", user("jane"), kind="Role")
    assert [refused.split(":")[0] for refused in refusals(CLUSTER_ROLE_BINDINGS, local)] == ["roleRef.kind"]


def test_a_binding_may_change_its_subjects_but_not_its_role() -> None:
    old = bound(user("jane"))
    assert update_refusals(ROLE_BINDINGS, bound(user("joe")), old) == []
    refused = update_refusals(ROLE_BINDINGS, bound(user("jane"), name="writer"), old)
    assert [each.split(":")[0] for each in refused] == ["roleRef"]
    assert refused[0].endswith("cannot change roleRef")
