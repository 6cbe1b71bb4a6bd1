"""Manifests that deploy an extension server, as files in the order of application."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from pilothouse.builder.extension_service import ExtensionService, api_services
from pilothouse.machinery.codec.yaml_emit import emit_yaml
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.names import GroupVersionResource
from pilothouse.machinery.objects import Json

if TYPE_CHECKING:
    from pilothouse.builder.server import APIServer


_PORT, _USER, _DATA = 8443, 65532, "/data"


@dataclass(frozen=True, slots=True)
class Manifests:
    place: ExtensionService
    image: str
    watched: tuple[GroupVersionResource, ...] = ()
    """Resources of other servers that the controllers read."""

    @classmethod
    def of(cls, server: APIServer, *, image: str = "", namespace: str = "") -> Manifests:
        """Return the manifests of a server. The image defaults to the server's name."""
        place = replace(server.place, namespace=namespace or server.namespace)
        return cls(place, image or f"{place.name}:latest", tuple(_watched(server)))

    def files(self) -> dict[str, list[Json]]:
        """File name -> objects."""
        place = self.place
        return {
            "1-namespace.yaml": [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": place.namespace}}],
            "2-rbac.yaml": list(permissions(place, self.watched)),
            "3-deployment.yaml": [self._claim(), self._deployment(), self._service()],
            "4-apiservice.yaml": list(api_services(place, ca_bundle="")),
        }

    def objects(self) -> list[Json]:
        return [obj for objects in self.files().values() for obj in objects]

    def _claim(self) -> Json:
        """Volume of the server's store."""
        spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
        return self._object("v1", "PersistentVolumeClaim", spec)

    def _deployment(self) -> Json:
        """Deployment with one pod at a time: two pods cannot share the store without --etcd-servers."""
        labels = {"app": self.place.name}
        pod = {
            "serviceAccountName": self.place.name,
            "securityContext": {
                "runAsNonRoot": True,
                "runAsUser": _USER,
                "runAsGroup": _USER,
                "fsGroup": _USER,
                "seccompProfile": {"type": "RuntimeDefault"},
            },
            "containers": [
                {
                    "name": "apiserver",
                    "image": self.image,
                    "args": [
                        "--bind-address=0.0.0.0",  # probes and the aggregator use the pod's address
                        f"--secure-port={_PORT}",
                        f"--data-dir={_DATA}/{self.place.group}",
                    ],
                    "ports": [{"name": "https", "containerPort": _PORT}],
                    "livenessProbe": _probe("/livez"),
                    "readinessProbe": _probe("/readyz"),
                    "startupProbe": {**_probe("/readyz"), "failureThreshold": 30},
                    "resources": {"requests": {"cpu": "50m", "memory": "128Mi"}},
                    "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
                    "volumeMounts": [{"name": "data", "mountPath": _DATA}],
                }
            ],
            "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": self.place.name}}],
        }
        spec = {
            "replicas": 1,
            "strategy": {"type": "Recreate"},
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": pod},
        }
        return self._object("apps/v1", "Deployment", spec)

    def _service(self) -> Json:
        ports = [{"name": "https", "port": 443, "targetPort": "https"}]
        return self._object("v1", "Service", {"selector": {"app": self.place.name}, "ports": ports})

    def _object(self, api_version: str, kind: str, spec: Json) -> Json:
        place = self.place
        metadata = {"name": place.name, "namespace": place.namespace, "labels": {"app": place.name}}
        return {"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": spec}


def as_yaml(objects: Iterable[Json]) -> str:
    """Return the objects as one YAML file."""
    return "---\n".join(emit_yaml(obj).decode() for obj in objects)


def _probe(path: str) -> Json:
    return {"httpGet": {"path": path, "port": "https", "scheme": "HTTPS"}, "periodSeconds": 5}


def _watched(server: APIServer) -> Iterator[GroupVersionResource]:
    for controller in server.controllers.values():
        for resource in (*controller.owns, *(watched for watched, _ in controller.watches)):
            if isinstance(resource, GroupVersionResource) and resource.group != server.group:
                yield resource


_RBAC = "rbac.authorization.k8s.io"


def permissions(place: ExtensionService, watched: Iterable[GroupVersionResource]) -> Iterator[Json]:
    """Yield the service account, its roles and its bindings."""
    subject = {"kind": "ServiceAccount", "name": place.name, "namespace": place.namespace}
    yield {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": _metadata(place, namespace=place.namespace)}
    yield _binding(_metadata(place, "auth-delegator"), "ClusterRole", "system:auth-delegator", subject)
    reader = "extension-apiserver-authentication-reader"
    yield _binding(_metadata(place, reader, namespace="kube-system"), "Role", reader, subject)
    yield from role_and_binding(_metadata(place), list(_cluster_rules(place, watched)), subject)
    yield from role_and_binding(_metadata(place, namespace=place.namespace), list(_namespace_rules(place)), subject)


def _cluster_rules(place: ExtensionService, watched: Iterable[GroupVersionResource]) -> Iterator[Json]:
    yield rule("", "namespaces", "get")  # objects are not created in terminating namespaces
    names = [f"{version}.{place.group}" for version in place.versions]
    if names:
        # The server publishes its CA in its APIServices.
        yield {**rule("apiregistration.k8s.io", "apiservices", "get", "patch"), "resourceNames": names}
    yield rule("", "events", "create", "patch")
    for group, resource in sorted({(item.group, item.resource) for item in watched}):
        yield rule(group, resource, "get", "list", "watch")


def _namespace_rules(place: ExtensionService) -> Iterator[Json]:
    yield rule("", "secrets", "create")  # the CA that all replicas share
    yield {**rule("", "secrets", "get", "update"), "resourceNames": [f"{place.name}-ca"]}
    yield rule("coordination.k8s.io", "leases", "create")
    yield {**rule("coordination.k8s.io", "leases", "get", "update"), "resourceNames": [place.name]}


def role_and_binding(metadata: Json, rules: list[Json], subject: Json) -> Iterator[Json]:
    """Yield a Role, or a ClusterRole if the metadata has no namespace, and its binding to the subject."""
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


def _metadata(place: ExtensionService, role: str = "", *, namespace: str = "") -> Json:
    """Return metadata. Names outside of the server's namespace include the namespace, to be unique."""
    name = place.name if namespace == place.namespace else f"{place.namespace}:{place.name}"
    metadata: Json = {"name": f"{name}:{role}" if role else name, "labels": {"app": place.name}}
    return {**metadata, "namespace": namespace} if namespace else metadata


def rule(group: str, resource: str, *verbs: str) -> Json:
    """Return a rule for all objects of a resource."""
    return {"apiGroups": [group], "resources": [resource], "verbs": list(verbs)}
