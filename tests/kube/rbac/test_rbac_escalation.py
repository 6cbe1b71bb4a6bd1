"""Nobody gives away more than they have, unless they may escalate or bind."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from rbac_store import GROUP, RBACStore, allow, binding, rbac_store, role, user

from pilothouse.apiserver.authn.user import SYSTEM_PRIVILEGED_GROUP, User
from pilothouse.apiserver.registry.operations import RequestContext, UpdateRequest
from pilothouse.apiserver.registry.options import WriteOptions
from pilothouse.kube.rbac.authorizer import RBACAuthorizer
from pilothouse.kube.rbac.escalation import Escalation, PolicyBasedStorage
from pilothouse.machinery.errors import Forbidden, NotFound
from pilothouse.machinery.objects import Json, metadata, name_of, namespace_of
from pilothouse.machinery.status_error import StatusError

EVE = User("eve", groups=("devs",))
GET_PODS, GET_SECRETS = allow("get", "pods"), allow("get", "secrets")


class Writer:
    """Writes as somebody, behind the checks."""

    def __init__(self, rbac: RBACStore, escalation: Escalation) -> None:
        self._rbac = rbac
        self._escalation = escalation

    async def create(self, obj: Json, who: User = EVE) -> None:
        storage = await self._storage(obj)
        await storage.create(_context(storage, obj, who), obj, options=WriteOptions(), validate=_fine)

    async def put(self, obj: Json, who: User = EVE) -> None:
        """As if it were read, changed and written back."""

        async def make(current: Json | None) -> Json:
            return obj

        storage = await self._storage(obj)
        asked = UpdateRequest(make, WriteOptions(), validate_create=_fine, validate_update=_fine_update)
        await storage.update(_context(storage, obj, who), name_of(obj), asked)

    async def _storage(self, obj: Json) -> PolicyBasedStorage:
        await self._escalation.feed.catch_up()  # so that the authorizer knows what the test gave
        check = self._escalation.check_binding if "roleRef" in obj else self._escalation.check_role
        return PolicyBasedStorage(self._rbac.of(obj["kind"]), check)


def _context(storage: PolicyBasedStorage, obj: Json, who: User) -> RequestContext:
    return RequestContext(namespace_of(obj), storage.resource.group_resource, who, warn=lambda _: None)


async def _fine(_: Json) -> None:
    """Admission has nothing against it."""


async def _fine_update(_: Json, __: Json) -> None:
    """The same."""


@pytest.fixture
async def rbac(tmp_path: Path) -> AsyncIterator[RBACStore]:
    async with rbac_store(tmp_path) as opened:
        yield opened


@pytest.fixture
async def write(rbac: RBACStore) -> Writer:
    return Writer(rbac, Escalation(RBACAuthorizer(rbac.policy), await rbac.feed()))


async def _give(rbac: RBACStore, *rules: Json, namespace: str = "a") -> None:
    """To eve: by a cluster role where there is no namespace."""
    kind = "Role" if namespace else "ClusterRole"
    await rbac.access(kind).create(role("eves", *rules, namespace=namespace))
    bound = binding("eves", "eves", user("eve"), namespace=namespace, kind=kind)
    await rbac.access(bound["kind"]).create(bound)


async def test_a_role_may_say_what_its_writer_may_do(rbac: RBACStore, write: Writer) -> None:
    await _give(rbac, allow("get list", "pods secrets"))
    await write.create(role("within", GET_PODS, GET_SECRETS, namespace="a"))
    with pytest.raises(Forbidden):
        await write.create(role("elsewhere", GET_PODS, namespace="b"))


async def test_what_is_not_held_is_named(rbac: RBACStore, write: Writer) -> None:
    await _give(rbac, GET_PODS)
    with pytest.raises(Forbidden) as refused:
        await write.create(role("more", allow("get delete", "pods secrets"), namespace="a"))
    assert refused.value.message == (
        'roles.rbac.authorization.k8s.io "more" is forbidden: user "eve" (groups=["devs"]) is attempting to grant RBAC '
        'permissions not currently held:\n{APIGroups:[""], Resources:["pods"], Verbs:["delete"]}\n'
        '{APIGroups:[""], Resources:["secrets"], Verbs:["get" "delete"]}'
    )


async def test_roles_that_could_not_be_found_are_named_too(rbac: RBACStore, write: Writer) -> None:
    await rbac.access("ClusterRoleBinding").create(binding("x", "gone", user("eve")))
    with pytest.raises(Forbidden) as refused:
        await write.create(role("more", GET_PODS, namespace="a"))
    missing = 'roles.rbac.authorization.k8s.io "gone" not found'
    assert refused.value.message.endswith(f"; resolution errors: [{missing}]")


async def test_an_update_is_checked_as_a_whole(rbac: RBACStore, write: Writer) -> None:
    await _give(rbac, GET_PODS)
    await rbac.access("Role").create(role("strong", GET_SECRETS, namespace="a"))
    found = await rbac.access("Role").get("strong", namespace="a")
    assert found is not None
    metadata(found)["labels"] = {"touched": "yes"}
    with pytest.raises(Forbidden):
        await write.put(found)
    await write.put(found | {"rules": [GET_PODS]})


async def test_a_put_that_creates_is_checked(rbac: RBACStore, write: Writer) -> None:
    await _give(rbac, GET_PODS)
    await write.put(role("weak", GET_PODS, namespace="a"))
    with pytest.raises(Forbidden):
        await write.put(role("strong", GET_SECRETS, namespace="a"))
    assert await rbac.access("Role").get("strong", namespace="a") is None


async def test_garbage_collection_may_touch_roles_that_it_could_not_give(rbac: RBACStore, write: Writer) -> None:
    await rbac.access("Role").create(role("strong", GET_SECRETS, namespace="a"))
    found = await rbac.access("Role").get("strong", namespace="a")
    assert found is not None
    metadata(found)["finalizers"] = ["example.com/wait"]
    await write.put(found)


async def test_who_may_escalate_a_role_may_write_anything_into_it(rbac: RBACStore, write: Writer) -> None:
    await _give(rbac, allow("escalate", "roles", "free", group=GROUP))
    with pytest.raises(Forbidden):  # a create has no name in its path
        await write.create(role("free", GET_SECRETS, namespace="a"))
    await write.put(role("free", GET_SECRETS, namespace="a"))
    with pytest.raises(Forbidden):
        await write.put(role("other", GET_SECRETS, namespace="a"))


async def test_members_of_the_privileged_group_may_everything(write: Writer) -> None:
    root = User("root", groups=(SYSTEM_PRIVILEGED_GROUP,))
    await write.create(role("all", allow("*", "*", group="*")), root)
    await write.create(binding("all", "nowhere", user("root")), root)


async def test_a_binding_gives_what_its_writer_has(rbac: RBACStore, write: Writer) -> None:
    await _give(rbac, GET_PODS)
    await rbac.access("ClusterRole").create(role("weak", GET_PODS))
    await rbac.access("ClusterRole").create(role("strong", GET_SECRETS))
    await write.create(binding("x", "weak", user("joe"), namespace="a"))
    with pytest.raises(Forbidden, match=r'^rolebindings.rbac.authorization.k8s.io "y" is forbidden: user "eve"'):
        await write.create(binding("y", "strong", user("joe"), namespace="a"))
    with pytest.raises(Forbidden):  # in all namespaces is more than in one
        await write.create(binding("z", "weak", user("joe")))


async def test_who_may_bind_a_role_may_give_it_to_anybody(rbac: RBACStore, write: Writer) -> None:
    await _give(rbac, allow("bind", "clusterroles", "strong", group=GROUP))
    await rbac.access("ClusterRole").create(role("strong", GET_SECRETS))
    await rbac.access("ClusterRole").create(role("other", GET_SECRETS))
    await write.create(binding("x", "strong", user("joe"), namespace="a"))
    await write.put(binding("y", "strong", user("joe"), namespace="a"))
    with pytest.raises(Forbidden):
        await write.create(binding("z", "other", user("joe"), namespace="a"))


async def test_a_role_that_is_not_there_can_not_be_bound(write: Writer) -> None:
    with pytest.raises(NotFound, match=r'^rolebindings.rbac.authorization.k8s.io "gone" not found$'):
        await write.create(binding("x", "gone", user("joe"), namespace="a"))
    with pytest.raises(StatusError, match=r'^unsupported role reference kind: "Thing"$'):
        await write.create(binding("x", "gone", user("joe"), namespace="a", kind="Thing"))


async def test_only_who_may_everything_uses_aggregation(rbac: RBACStore, write: Writer) -> None:
    selectors = {"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]}
    await rbac.access("ClusterRole").create(role("old", aggregationRule=selectors))
    with pytest.raises(Forbidden, match=r"must have cluster-admin privileges to use the aggregationRule$"):
        await write.create(role("sum", aggregationRule=selectors))
    with pytest.raises(Forbidden, match=r"must have cluster-admin privileges"):
        await write.put(role("old"))
    await _give(rbac, allow("*", "*", group="*"), namespace="")
    await write.create(role("sum", aggregationRule=selectors))


async def test_a_small_rule_for_very_many_rights_is_refused_at_once(rbac: RBACStore, write: Writer) -> None:
    await _give(rbac, GET_PODS)
    words = [str(at) for at in range(80)]
    wanted = {"verbs": [*words, "get"], "apiGroups": [*words, ""], "resources": [*words, "pods"]}
    began = time.thread_time()
    with pytest.raises(Forbidden, match="permissions not currently held:\n") as caught:
        await write.create(role("r", wanted, namespace="a"))
    assert time.thread_time() - began < 10
    lines = caught.value.message.splitlines()
    assert lines[-1] == "and more"
    assert len(caught.value.message) < 1 << 20
