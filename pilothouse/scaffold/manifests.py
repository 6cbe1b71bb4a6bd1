"""What brings an extension server into a cluster, as files in the order in which they are applied."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from pilothouse.builder.place import Place, api_services
from pilothouse.machinery.codec.yaml_emit import emit_yaml
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.names import GroupVersionResource
from pilothouse.machinery.objects import Json
from pilothouse.scaffold.permissions import permissions

if TYPE_CHECKING:
    from pilothouse.builder.server import APIServer

_PORT, _USER, _DATA = 8443, 65532, "/data"


@dataclass(frozen=True, slots=True)
class Manifests:
    place: Place
    image: str
    watched: tuple[GroupVersionResource, ...] = ()
    """Resources of other servers that the controllers read."""

    @classmethod
    def of(cls, server: APIServer, *, image: str = "", namespace: str = "") -> Manifests:
        """Return those of a server; its own name is that of the image, if none is given."""
        place = replace(server.place, namespace=namespace or server.namespace)
        return cls(place, image or f"{place.name}:latest", tuple(_watched(server)))

    def files(self) -> dict[str, list[Json]]:
        """Return the objects by the names of the files that they belong into."""
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
        """Where the objects of the server's kinds are kept."""
        spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
        return self._object("v1", "PersistentVolumeClaim", spec)

    def _deployment(self) -> Json:
        """One pod at a time: two cannot have the same store, unless --etcd-servers says where they share one."""
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
            "containers": [self._container()],
            "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": self.place.name}}],
        }
        spec = {
            "replicas": 1,
            "strategy": {"type": "Recreate"},
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": pod},
        }
        return self._object("apps/v1", "Deployment", spec)

    def _container(self) -> Json:
        return {
            "name": "apiserver",
            "image": self.image,
            "args": [f"--secure-port={_PORT}", f"--data-dir={_DATA}/{self.place.group}"],
            "ports": [{"name": "https", "containerPort": _PORT}],
            "livenessProbe": _probe("/livez"),
            "readinessProbe": _probe("/readyz"),
            "startupProbe": {**_probe("/readyz"), "failureThreshold": 30},
            "resources": {"requests": {"cpu": "50m", "memory": "128Mi"}},
            "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
            "volumeMounts": [{"name": "data", "mountPath": _DATA}],
        }

    def _service(self) -> Json:
        ports = [{"name": "https", "port": 443, "targetPort": "https"}]
        return self._object("v1", "Service", {"selector": {"app": self.place.name}, "ports": ports})

    def _object(self, api_version: str, kind: str, spec: Json) -> Json:
        place = self.place
        metadata = {"name": place.name, "namespace": place.namespace, "labels": {"app": place.name}}
        return {"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": spec}


def as_yaml(objects: Iterable[Json]) -> str:
    """Return the objects as the documents of one YAML file."""
    return "---\n".join(emit_yaml(obj).decode() for obj in objects)


def _probe(path: str) -> Json:
    return {"httpGet": {"path": path, "port": "https", "scheme": "HTTPS"}, "periodSeconds": 5}


def _watched(server: APIServer) -> Iterator[GroupVersionResource]:
    for controller in server.controllers.values():
        for each in (*controller.owns, *(watched for watched, _ in controller.watches)):
            if isinstance(each, GroupVersionResource) and each.group != server.group:
                yield each
