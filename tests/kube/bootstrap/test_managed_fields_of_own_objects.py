"""The objects that the server makes itself say so in their managedFields."""

from __future__ import annotations

from awaiting import until, until_all
from whole_server import whole_server

from pilothouse.client import Json

OWN = ("kube-apiserver", "Update", "")
OWN_STATUS = ("kube-apiserver", "Update", "status")
CIDR_STATUS = ("kubernetes-service-cidr-controller", "Apply", "status")
PRODUCER = ("api-priority-and-fairness-config-producer-v1", "Update", "")
CONSUMER = ("api-priority-and-fairness-config-consumer-v1", "Apply", "status")
COLLECTIONS = {
    ("v1", "namespaces"): [OWN],
    ("v1", "services"): [OWN],
    ("v1", "endpoints"): [OWN],
    ("v1", "configmaps"): [OWN],
    ("discovery.k8s.io/v1", "endpointslices"): [OWN],
    ("networking.k8s.io/v1", "ipaddresses"): [OWN],
    ("networking.k8s.io/v1", "servicecidrs"): [OWN, CIDR_STATUS],
    ("rbac.authorization.k8s.io/v1", "clusterroles"): [OWN],
    ("rbac.authorization.k8s.io/v1", "clusterrolebindings"): [OWN],
    ("rbac.authorization.k8s.io/v1", "roles"): [OWN],
    ("rbac.authorization.k8s.io/v1", "rolebindings"): [OWN],
    ("scheduling.k8s.io/v1", "priorityclasses"): [OWN],
    ("apiregistration.k8s.io/v1", "apiservices"): [OWN],
    ("coordination.k8s.io/v1", "leases"): [OWN],
    ("flowcontrol.apiserver.k8s.io/v1", "prioritylevelconfigurations"): [PRODUCER],
    ("flowcontrol.apiserver.k8s.io/v1", "flowschemas"): [CONSUMER, PRODUCER],
}


def managers(obj: Json) -> set[tuple[str, str, str]]:
    entries = obj["metadata"].get("managedFields", [])
    return {(entry["manager"], entry["operation"], entry.get("subresource", "")) for entry in entries}


async def test_each_names_the_server_as_the_writer_of_its_fields() -> None:
    async with whole_server() as api:
        for collection, expected in COLLECTIONS.items():
            objects = api.client().resource(*collection)

            def owned(found: list[Json], own: list[tuple[str, str, str]] = expected) -> bool:
                return bool(found) and all(managers(obj) == {*own} for obj in found)

            await until_all(objects, owned)


async def test_a_status_that_the_server_writes_is_an_entry_of_its_own() -> None:
    spec = {"group": "g.io", "version": "v1", "groupPriorityMinimum": 1, "versionPriority": 1}
    service = {"namespace": "default", "name": "absent"}
    made = {"metadata": {"name": "v1.g.io"}, "spec": {**spec, "service": service, "insecureSkipTLSVerify": True}}
    async with whole_server() as api:
        await api.request("POST", "/apis/apiregistration.k8s.io/v1/apiservices?fieldManager=me", made)
        judged = api.client().resource("apiregistration.k8s.io/v1", "apiservices")
        await until(judged, "v1.g.io", lambda obj: managers(obj) == {("me", "Update", ""), OWN_STATUS})
