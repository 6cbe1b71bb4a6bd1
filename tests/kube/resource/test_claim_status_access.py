"""Who may write which part of a claim's status, and where admin access is granted."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from whole_server import whole_server

from pilothouse.apiserver.authn.user import User
from pilothouse.apiserver.authz.interface import Answer, Attributes, Decision
from pilothouse.apiserver.registry.operations import RequestContext, UpdateRequest
from pilothouse.apiserver.registry.options import WriteOptions
from pilothouse.apiserver.registry.store import RegistryStore
from pilothouse.apiserver.storage.sqlite.store import SqliteStore
from pilothouse.kube.resource.claim_authorization import ADMIN_LABEL, AdminAccess, ResourceClaimStatusStore
from pilothouse.kube.resource.resource_claims import RESOURCE_CLAIMS
from pilothouse.machinery.errors import Invalid
from pilothouse.machinery.objects import Json

NODE: Json = {
    "nodeSelectorTerms": [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["worker"]}]}]
}
ALLOCATED: Json = {
    "devices": {"results": [{"request": "r", "driver": "x.io", "pool": "p", "device": "d"}]},
    "nodeSelector": NODE,
}
DEVICE: Json = {"driver": "x.io", "pool": "p", "device": "d"}
DRIVER = User("system:serviceaccount:ns:driver", extra={"authentication.kubernetes.io/node-name": ("worker",)})


@dataclass
class Listing:
    """Allows what is on the list, by verb, subresource and name; remembers what it was asked."""

    allowed: set[tuple[str, str, str]] = field(default_factory=set)
    asked: list[tuple[str, str, str]] = field(default_factory=list)

    async def authorize(self, attributes: Attributes) -> Answer:
        asked = (attributes.verb, attributes.subresource, attributes.name)
        self.asked.append(asked)
        return Answer(Decision.ALLOW if asked in self.allowed else Decision.NO_OPINION, "why")


async def allow(*_: Json) -> None:
    """Admission has nothing to say here."""


@pytest.fixture
async def registry(tmp_path: Path) -> AsyncIterator[RegistryStore]:
    store = await SqliteStore.open(tmp_path)
    registry = RegistryStore(RESOURCE_CLAIMS, store)
    await registry.create(context(DRIVER), claim(), options=WriteOptions(), validate=allow)
    yield registry
    await store.close()


def claim(**exactly: bool) -> Json:
    requests = [{"name": "r", "exactly": {"deviceClassName": "gpu", **exactly}}]
    obj: Json = {
        "kind": "ResourceClaim",
        "apiVersion": "resource.k8s.io/v1",
        "metadata": {"name": "c", "namespace": "ns"},
        "spec": {"devices": {"requests": requests}},
    }
    RESOURCE_CLAIMS.strategy.default(obj)
    return obj


def context(user: User) -> RequestContext:
    return RequestContext("ns", RESOURCE_CLAIMS.group_resource, user, warn=lambda text: None, verb="patch")


async def write(registry: RegistryStore, authorizer: Listing, status: Json, user: User = DRIVER) -> None:
    async def changed(current: Json | None) -> Json:
        assert current is not None
        return current | {"status": status}

    asked = UpdateRequest(changed, WriteOptions(), validate_create=allow, validate_update=allow)
    await ResourceClaimStatusStore(registry, authorizer).update(context(user), "c", asked)


async def refusals(registry: RegistryStore, authorizer: Listing, status: Json) -> list[str]:
    with pytest.raises(Invalid) as refused:
        await write(registry, authorizer, status)
    return [f"{cause['field']}: {cause['message']}" for cause in (refused.value.details or {})["causes"]]


BINDING = ("patch", "binding", "")
FROM_NODE = ("associated-node:patch", "driver", "x.io")
FROM_ANYWHERE = ("arbitrary-node:patch", "driver", "x.io")


async def test_an_allocation_is_written_by_those_who_may_bind_claims(registry: RegistryStore) -> None:
    (refusal,) = await refusals(registry, Listing(), {"allocation": ALLOCATED})
    assert refusal == (
        "status.allocation: Forbidden: changing status.allocation or status.reservedFor requires "
        'resource="resourceclaims/binding", verb="patch" permission: resourceclaims.resource.k8s.io is forbidden: '
        'User "system:serviceaccount:ns:driver" cannot patch resource "resourceclaims/binding" in API group '
        '"resource.k8s.io" at the cluster scope: why'
    )
    await write(registry, Listing({BINDING}), {"allocation": ALLOCATED})


async def test_a_devices_status_is_written_for_its_driver(registry: RegistryStore) -> None:
    await write(registry, Listing({BINDING}), {"allocation": ALLOCATED})
    with_device = {"allocation": ALLOCATED, "devices": [DEVICE]}
    (refusal,) = await refusals(registry, Listing(), with_device)
    assert refusal.startswith(
        'status.devices: Forbidden: changing status.devices requires resource="resourceclaims/driver", '
        'verb="[associated-node:patch arbitrary-node:patch]" permission: '
    )
    elsewhere = User("system:serviceaccount:ns:driver")
    asked = Listing({FROM_ANYWHERE})
    await write(registry, asked, with_device, elsewhere)
    assert asked.asked == [FROM_ANYWHERE]


async def test_unauthorized_change_is_reported_with_validation_errors(
    registry: RegistryStore,
) -> None:
    await write(registry, Listing({BINDING}), {"allocation": ALLOCATED})
    other = {"allocation": ALLOCATED | {"nodeSelector": None}, "devices": [DEVICE | {"device": "other"}]}
    forbidden, *others = await refusals(registry, Listing({FROM_ANYWHERE}), other)
    assert forbidden.startswith("status.allocation: Forbidden: changing status.allocation or status.reservedFor")
    assert [message.partition(": Invalid value")[0] for message in others] == ["status.devices[0]", "status.allocation"]


async def test_driver_on_the_claims_node_needs_a_narrower_permission(registry: RegistryStore) -> None:
    await write(registry, Listing({BINDING}), {"allocation": ALLOCATED})
    asked = Listing({FROM_NODE})
    await write(registry, asked, {"allocation": ALLOCATED, "devices": [DEVICE]})
    assert asked.asked == [FROM_NODE]


async def test_unchanged_status_needs_no_permission(registry: RegistryStore) -> None:
    whole = {"allocation": ALLOCATED, "devices": [DEVICE]}
    await write(registry, Listing({BINDING, FROM_NODE}), whole)
    asked = Listing()
    await write(registry, asked, whole)
    assert asked.asked == []


async def ask_for_admin_access(labels: dict[str, str] | None, **exactly: bool) -> list[str]:
    async def of_namespace(name: str) -> dict[str, str] | None:
        return labels

    async with AdminAccess(of_namespace, ("spec",)).around_create(claim(**exactly), dry_run=False) as objections:
        return list(map(str, objections or ()))


async def test_admin_access_is_granted_in_labelled_namespaces() -> None:
    assert await ask_for_admin_access({ADMIN_LABEL: "true"}, adminAccess=True) == []
    assert await ask_for_admin_access({}, adminAccess=False) == []
    assert await ask_for_admin_access({}) == []


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ({}, f"requires the `{ADMIN_LABEL}: true` label on the containing namespace"),
        (None, 'could not retrieve namespace to verify admin access: namespaces "ns" not found'),
    ],
)
async def test_admin_access_is_rejected_in_unlabelled_namespaces(labels: dict[str, str] | None, message: str) -> None:
    [objection] = await ask_for_admin_access(labels, adminAccess=True)
    assert message in objection


async def test_rejected_admin_access_is_reported_with_validation_errors() -> None:
    request = {"name": "r", "exactly": {"deviceClassName": "", "adminAccess": True}}
    made = {"metadata": {"name": "c"}, "spec": {"devices": {"requests": [request]}}}
    async with whole_server() as api:
        refused = await api.request("POST", "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims", made)
    assert refused.status == 422
    assert [(cause["reason"], cause["field"]) for cause in refused.json["details"]["causes"]] == [
        ("FieldValueForbidden", "spec.devices.requests[0].adminAccess"),
        ("FieldValueRequired", "spec.devices.requests[0].exactly.deviceClassName"),
    ]
