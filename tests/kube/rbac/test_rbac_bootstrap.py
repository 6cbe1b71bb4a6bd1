"""The bootstrap roles and bindings: what they are, and how they are brought back."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from rbac_store import RBACStore, allow, rbac_store, role, user
from recorded import recorded

from pilothouse.kube.rbac.bootstrap_policy import AUTO_UPDATE, bootstrap_objects
from pilothouse.machinery.objects import Json, metadata

FACTS = recorded("facts") / "rbac-bootstrap.json"
PLURALS = {
    "clusterroles": "ClusterRole",
    "clusterrolebindings": "ClusterRoleBinding",
    "roles": "Role",
    "rolebindings": "RoleBinding",
}


@pytest.fixture
async def rbac(tmp_path: Path) -> AsyncIterator[RBACStore]:
    async with rbac_store(tmp_path) as opened:
        await opened.bootstrap()
        yield opened


async def _get(rbac: RBACStore, kind: str, name: str) -> Json:
    found = await rbac.access(kind).get(name)
    assert found is not None
    return found


async def _change(rbac: RBACStore, kind: str, name: str, **fields: object) -> None:
    await rbac.access(kind).update(await _get(rbac, kind, name), lambda obj: obj.update(fields))


def _flat(obj: Json) -> Json:
    """As the recorded ones are, in which namespaced objects are without annotations."""
    flat = {key: value for key, value in obj.items() if key not in ("kind", "apiVersion", "metadata")}
    meta = {key: value for key, value in metadata(obj).items() if key in ("name", "namespace", "labels", "annotations")}
    if "namespace" in meta:
        meta.pop("annotations")
    return flat | meta


@pytest.mark.parametrize("plural", PLURALS)
async def test_a_new_cluster_has_what_kube_apiserver_makes(rbac: RBACStore, plural: str) -> None:
    found = {(obj.get("namespace"), obj["name"]): obj for obj in map(_flat, await rbac.access(PLURALS[plural]).list())}
    wanted = {(obj.get("namespace"), obj["name"]): obj for obj in json.loads(FACTS.read_text())[plural]}
    assert found == wanted


async def test_a_second_start_writes_nothing(rbac: RBACStore) -> None:
    before = await rbac.store.current_revision()
    await rbac.bootstrap()
    assert await rbac.store.current_revision() == before


async def test_what_was_deleted_comes_back(rbac: RBACStore) -> None:
    for kind, name in (("ClusterRole", "system:node"), ("ClusterRoleBinding", "system:basic-user")):
        await rbac.access(kind).delete(name)
    await rbac.bootstrap()
    assert await rbac.access("ClusterRole").get("system:node")
    assert await rbac.access("ClusterRoleBinding").get("system:basic-user")


async def test_rules_that_are_missing_are_added_and_others_stay(rbac: RBACStore) -> None:
    own = allow("get", "widgets")
    await _change(rbac, "ClusterRole", "system:auth-delegator", rules=[own])
    await rbac.bootstrap()
    assert (await _get(rbac, "ClusterRole", "system:auth-delegator"))["rules"] == [
        own,
        allow("create", "tokenreviews", group="authentication.k8s.io"),
        allow("create", "subjectaccessreviews", group="authorization.k8s.io"),
    ]


async def test_a_role_that_allows_all_the_same_in_other_words_stays_as_it_is(rbac: RBACStore) -> None:
    await _change(rbac, "ClusterRole", "system:node-bootstrapper", rules=[allow("*", "*", group="*")])
    before = await rbac.store.current_revision()
    await rbac.bootstrap()
    assert await rbac.store.current_revision() == before


async def test_subjects_that_are_missing_are_added_and_others_stay(rbac: RBACStore) -> None:
    await _change(rbac, "ClusterRoleBinding", "system:kube-scheduler", subjects=[user("me")])
    await rbac.bootstrap()
    found = await _get(rbac, "ClusterRoleBinding", "system:kube-scheduler")
    assert found["subjects"] == [user("me"), user("system:kube-scheduler")]


async def test_labels_and_annotations_come_back_but_keep_the_values_that_they_were_given(rbac: RBACStore) -> None:
    name = "system:node-proxier"
    await rbac.access("ClusterRole").update(
        await _get(rbac, "ClusterRole", name),
        lambda obj: metadata(obj).update(labels={"kubernetes.io/bootstrapping": "mine"}, annotations={}),
    )
    await rbac.bootstrap()
    meta = metadata(await _get(rbac, "ClusterRole", name))
    assert meta["labels"] == {"kubernetes.io/bootstrapping": "mine"}
    assert meta["annotations"] == {AUTO_UPDATE: "true"}


async def test_what_wants_to_be_left_alone_is(rbac: RBACStore) -> None:
    def protect(obj: Json) -> None:
        metadata(obj)["annotations"] = {AUTO_UPDATE: "false"}
        obj["rules"] = []

    await rbac.access("ClusterRole").update(await _get(rbac, "ClusterRole", "system:node"), protect)
    await rbac.bootstrap()
    assert (await _get(rbac, "ClusterRole", "system:node"))["rules"] is None


async def test_a_binding_to_another_role_is_replaced(rbac: RBACStore) -> None:
    access = rbac.access("ClusterRoleBinding")
    wrong = await _get(rbac, "ClusterRoleBinding", "system:basic-user")
    await access.delete("system:basic-user")
    reference = wrong["roleRef"] | {"name": "cluster-admin"}
    await access.create({**wrong, "metadata": {"name": "system:basic-user"}, "roleRef": reference})
    await rbac.bootstrap()
    assert (await _get(rbac, "ClusterRoleBinding", "system:basic-user"))["roleRef"]["name"] == "system:basic-user"


async def test_a_role_that_was_made_to_gather_others_stops_doing_so(rbac: RBACStore) -> None:
    rule = {"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]}
    await _change(rbac, "ClusterRole", "cluster-admin", aggregationRule=rule)
    await _change(rbac, "ClusterRole", "view", aggregationRule=rule)
    await rbac.bootstrap()
    assert "aggregationRule" not in await _get(rbac, "ClusterRole", "cluster-admin")
    selectors = (await _get(rbac, "ClusterRole", "view"))["aggregationRule"]["clusterRoleSelectors"]
    labels = [selector["matchLabels"] for selector in selectors]
    assert labels == [{"a": "b"}, {"rbac.authorization.k8s.io/aggregate-to-view": "true"}]


async def test_rules_of_a_role_that_became_aggregated_move_to_its_part(tmp_path: Path) -> None:
    own = allow("get", "widgets")
    async with rbac_store(tmp_path) as rbac:
        await rbac.access("ClusterRole").create(role("edit", own))
        await rbac.bootstrap()
        assert own in (await _get(rbac, "ClusterRole", "system:aggregate-to-edit"))["rules"]
        assert own not in (await _get(rbac, "ClusterRole", "system:aggregate-to-view"))["rules"]


async def test_a_binding_that_was_split_off_has_the_subjects_of_the_old_one(rbac: RBACStore) -> None:
    await _change(rbac, "ClusterRoleBinding", "system:discovery", subjects=[user("me")])
    await rbac.access("ClusterRoleBinding").delete("system:public-info-viewer")
    await rbac.bootstrap()
    found = await _get(rbac, "ClusterRoleBinding", "system:public-info-viewer")
    assert [subject["name"] for subject in found["subjects"]] == [
        "me",
        "system:authenticated",
        "system:unauthenticated",
    ]


def test_all_objects_of_the_tables_say_that_they_are_kept_up_to_date() -> None:
    for objects in bootstrap_objects().by_kind.values():
        assert all(metadata(obj)["annotations"] == {AUTO_UPDATE: "true"} for obj in objects)
