"""The service account of an extension server, and what it may: to ask the cluster who users are and what they may do,
and what the server itself needs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from pilothouse.builder.place import Place
from pilothouse.machinery.names import GroupVersionResource
from pilothouse.machinery.objects import Json

_RBAC = "rbac.authorization.k8s.io"


def permissions(place: Place, watched: Iterable[GroupVersionResource]) -> Iterator[Json]:
    """Yield the account, and the roles and bindings that give it its rights."""
    subject = {"kind": "ServiceAccount", "name": place.name, "namespace": place.namespace}
    yield {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": _metadata(place, namespace=place.namespace)}
    yield _binding(_metadata(place, "auth-delegator"), "ClusterRole", "system:auth-delegator", subject)
    reader = "extension-apiserver-authentication-reader"
    yield _binding(_metadata(place, reader, namespace="kube-system"), "Role", reader, subject)
    yield from _granted(_metadata(place), list(_in_the_cluster(place, watched)), subject)
    yield from _granted(_metadata(place, namespace=place.namespace), list(_in_its_namespace(place)), subject)


def _in_the_cluster(place: Place, watched: Iterable[GroupVersionResource]) -> Iterator[Json]:
    yield _rule("", "namespaces", "get")  # nothing is created in one that is going
    names = [f"{version}.{place.group}" for version in place.versions]
    if names:
        # It tells them the CA that its certificate is from.
        yield {**_rule("apiregistration.k8s.io", "apiservices", "get", "patch"), "resourceNames": names}
    yield _rule("", "events", "create", "patch")
    for each in sorted({(each.group, each.resource) for each in watched}):
        yield _rule(*each, "get", "list", "watch")


def _in_its_namespace(place: Place) -> Iterator[Json]:
    yield _rule("", "secrets", "create")  # its CA, which all replicas share
    yield {**_rule("", "secrets", "get"), "resourceNames": [f"{place.name}-ca"]}
    yield _rule("coordination.k8s.io", "leases", "create")
    yield {**_rule("coordination.k8s.io", "leases", "get", "update"), "resourceNames": [place.name]}


def _granted(metadata: Json, rules: list[Json], subject: Json) -> Iterator[Json]:
    kind = "Role" if "namespace" in metadata else "ClusterRole"
    yield {"apiVersion": f"{_RBAC}/v1", "kind": kind, "metadata": metadata, "rules": rules}
    yield _binding(metadata, kind, metadata["name"], subject)


def _binding(metadata: Json, role_kind: str, role: str, subject: Json) -> Json:
    return {
        "apiVersion": f"{_RBAC}/v1",
        "kind": "RoleBinding" if "namespace" in metadata else "ClusterRoleBinding",
        "metadata": metadata,
        "roleRef": {"apiGroup": _RBAC, "kind": role_kind, "name": role},
        "subjects": [subject],
    }


def _metadata(place: Place, role: str = "", *, namespace: str = "") -> Json:
    """Objects outside of the server's namespace also have the namespace in their names: another may be like it."""
    name = place.name if namespace == place.namespace else f"{place.namespace}:{place.name}"
    metadata: Json = {"name": f"{name}:{role}" if role else name, "labels": {"app": place.name}}
    return {**metadata, "namespace": namespace} if namespace else metadata


def _rule(group: str, resource: str, *verbs: str) -> Json:
    return {"apiGroups": [group], "resources": [resource], "verbs": list(verbs)}
