"""References to objects that nobody has: the server finds them only when pods are made, which is too late."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pilothouse.cli.offline.findings import Finding, Severity
from pilothouse.cli.offline.manifests import Manifest
from pilothouse.machinery.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Reference:
    field: str
    kind: str
    path: str
    """Of the objects that are referred to; `{namespace}` is that of the object that refers."""


_SERVICE_ACCOUNT = Reference("serviceAccountName", "ServiceAccount", "/api/v1/namespaces/{namespace}/serviceaccounts")
_IN_POD_SPECS = (
    _SERVICE_ACCOUNT,
    Reference("priorityClassName", "PriorityClass", "/apis/scheduling.k8s.io/v1/priorityclasses"),
    Reference("runtimeClassName", "RuntimeClass", "/apis/node.k8s.io/v1/runtimeclasses"),
)
_STORAGE_CLASS = Reference("storageClassName", "StorageClass", "/apis/storage.k8s.io/v1/storageclasses")
_INGRESS_CLASS = Reference("ingressClassName", "IngressClass", "/apis/networking.k8s.io/v1/ingressclasses")
_TEMPLATE = ("spec", "template", "spec")
_PLACES: dict[tuple[str, str], tuple[tuple[str, ...], tuple[Reference, ...]]] = {
    **{("apps", kind): (_TEMPLATE, _IN_POD_SPECS) for kind in ("Deployment", "StatefulSet", "DaemonSet", "ReplicaSet")},
    ("batch", "Job"): (_TEMPLATE, _IN_POD_SPECS),
    ("batch", "CronJob"): (("spec", "jobTemplate", "spec", "template", "spec"), _IN_POD_SPECS),
    ("", "ReplicationController"): (_TEMPLATE, _IN_POD_SPECS),
    ("", "PersistentVolumeClaim"): (("spec",), (_STORAGE_CLASS,)),
    ("networking.k8s.io", "Ingress"): (("spec",), (_INGRESS_CLASS,)),
}


@dataclass(frozen=True, slots=True)
class Needed:
    """One object that a manifest refers to: where it must be, and which field says so."""

    kind: str
    name: str
    path: str
    field: str

    def missing(self, manifest: Manifest) -> Finding:
        hint = "add it to the manifests, or name a file that has it with --given"
        return manifest.finding(Severity.WARNING, f"there is no {self.kind} {self.name}", path=self.field, hint=hint)


def needed_by(manifest: Manifest, namespace: str) -> Iterator[Needed]:
    """Yield what the server does not ask for when it takes this object, but nothing works without."""
    place, references = _PLACES.get(manifest.group_kind, ((), ()))
    spec = _at(manifest.obj, place)
    for reference in references if isinstance(spec, dict) else ():
        name = spec.get(reference.field)
        if isinstance(name, str) and name:
            path = f"{reference.path.format(namespace=namespace)}/{name}"
            yield Needed(reference.kind, name, path, ".".join((*place, reference.field)))


def _at(value: Any, place: tuple[str, ...]) -> Any:
    """Return what the names lead to; None where the manifest is made otherwise."""
    for name in place:
        value = value.get(name) if isinstance(value, dict) else None
    return value
