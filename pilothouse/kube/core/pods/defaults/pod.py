"""Defaults of pods, pod specs and pod templates."""

from __future__ import annotations

from pilothouse.kube.core.pods.defaults.containers import default_container, default_host_ports
from pilothouse.kube.core.pods.defaults.resources import (
    default_pod_level_resources,
    defaults_pod_level_resources_late,
    request_what_is_limited,
    round_up,
    round_up_requirements,
)
from pilothouse.kube.core.pods.defaults.volumes import default_volume
from pilothouse.machinery.objects import Json

_CONTAINERS = ("initContainers", "containers", "ephemeralContainers")
_CONTAINER_STATUSES = ("initContainerStatuses", "containerStatuses", "ephemeralContainerStatuses")
_GRACE_PERIOD = 30
_INIT_CONTAINER_ANNOTATIONS = frozenset(
    f"pod.{stage}.kubernetes.io/init-container{suffix}" for stage in ("alpha", "beta") for suffix in ("s", "-statuses")
)


def default_pod(pod: Json) -> None:
    spec = pod.setdefault("spec", {})
    for kind in ("containers", "initContainers"):
        for container in spec.get(kind) or ():
            request_what_is_limited(container)
    if not defaults_pod_level_resources_late():
        default_pod_level_resources(spec)
    if spec.get("enableServiceLinks") is None:
        spec["enableServiceLinks"] = True
    if spec.get("hostNetwork"):
        default_host_ports(spec.get("containers"))
        default_host_ports(spec.get("initContainers"))
    default_pod_spec(spec)
    _drop_init_container_annotations(pod.get("metadata") or {})
    if spec["terminationGracePeriodSeconds"] < 0:
        spec["terminationGracePeriodSeconds"] = 1
    if status := pod.get("status"):
        for kind in _CONTAINER_STATUSES:
            for container in status.get(kind) or ():
                round_up(container.get("allocatedResources"))
                round_up_requirements(container.get("resources"))
        round_up(status.get("allocatedResources"))
        round_up_requirements(status.get("resources"))
        # podIP is the first of podIPs. If they differ, an older kubelet has written podIP alone.
        address, addresses = status.get("podIP"), status.get("podIPs")
        if address and (not addresses or addresses[0].get("ip") != address):
            status["podIPs"] = [{"ip": address}]
        elif addresses and addresses[0].get("ip"):
            status["podIP"] = addresses[0]["ip"]


def default_pod_template(template: Json) -> None:
    """Apply the defaults of a template. Templates keep more of the author's input than pods, for stability of old
    objects."""
    default_pod_spec(template.setdefault("spec", {}))
    _drop_init_container_annotations(template.get("metadata") or {})


def default_pod_spec(spec: Json) -> None:
    spec.setdefault("dnsPolicy", "ClusterFirst")
    spec.setdefault("restartPolicy", "Always")
    spec.setdefault("schedulerName", "default-scheduler")
    if spec.get("securityContext") is None:
        spec["securityContext"] = {}
    if spec.get("terminationGracePeriodSeconds") is None:
        spec["terminationGracePeriodSeconds"] = _GRACE_PERIOD
    for volume in spec.get("volumes") or ():
        default_volume(volume)
    for kind in _CONTAINERS:
        for container in spec.get(kind) or ():
            default_container(container)
    round_up(spec.get("overhead"))
    round_up_requirements(spec.get("resources"))
    # `serviceAccount` is the deprecated alias of serviceAccountName.
    name = spec.get("serviceAccountName") or spec.get("serviceAccount")
    if name:
        spec["serviceAccountName"] = spec["serviceAccount"] = name


def _drop_init_container_annotations(meta: Json) -> None:
    """Drop the alpha and beta annotations of init containers."""
    annotations = meta.get("annotations")
    if annotations and not _INIT_CONTAINER_ANNOTATIONS.isdisjoint(annotations):
        others = {key: value for key, value in annotations.items() if key not in _INIT_CONTAINER_ANNOTATIONS}
        meta.pop("annotations")
        if others:
            meta["annotations"] = others
