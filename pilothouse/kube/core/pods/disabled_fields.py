"""Fields whose features are off: they are dropped, unless the stored object has them already."""

from __future__ import annotations

from collections.abc import Iterator

from pilothouse.kube.core.pods.containers import all_containers
from pilothouse.machinery.objects import Json

_PROJECTIONS = ("clusterTrustBundle", "podCertificate")
_STATUSES = ("containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses")


def drop_disabled_fields(spec: Json, old: Json | None = None) -> None:
    """Drop the fields of features that are off, of a pod or a template, unless `old`, the stored spec, has them."""
    old = old or {}
    if "schedulingGroup" in spec and "schedulingGroup" not in old:
        del spec["schedulingGroup"]
    if spec.get("volumes"):
        _drop_projections(spec, old)
    if not any(map(_has_stop_signal, all_containers(old))):
        for container in filter(_has_stop_signal, all_containers(spec)):
            _drop_stop_signal(container)


def drop_disabled_template_fields(template: Json | None, old: Json | None = None) -> None:
    if template is not None:
        drop_disabled_fields(template.setdefault("spec", {}), (old or {}).get("spec"))


def drop_disabled_status_fields(status: Json, old: Json | None = None) -> None:
    old = old or {}
    if not old.get("nodeAllocatableResourceClaimStatuses"):
        status.pop("nodeAllocatableResourceClaimStatuses", None)
    if not any("volumeStatus" in mount for mount in _mount_statuses(old)):
        for mount in _mount_statuses(status):
            mount.pop("volumeStatus", None)


def _projections(spec: Json) -> Iterator[Json]:
    for volume in spec.get("volumes") or ():
        yield from (volume.get("projected") or {}).get("sources") or ()


def _drop_projections(spec: Json, old: Json) -> None:
    for kind in _PROJECTIONS:
        if any(kind in source for source in _projections(old)):
            continue
        for source in _projections(spec):
            source.pop(kind, None)


def _has_stop_signal(container: Json) -> bool:
    lifecycle = container.get("lifecycle")
    return lifecycle is not None and "stopSignal" in lifecycle


def _drop_stop_signal(container: Json) -> None:
    del container["lifecycle"]["stopSignal"]
    if not container["lifecycle"]:
        del container["lifecycle"]


def _mount_statuses(status: Json) -> Iterator[Json]:
    for kind in _STATUSES:
        for container in status.get(kind) or ():
            yield from container.get("volumeMounts") or ()
