"""Fields of disabled features: dropped from pods, unless the stored object uses the field."""

from __future__ import annotations

from pilothouse.apiserver.server.features import enabled
from pilothouse.kinds.pods import all_containers
from pilothouse.kube.strategy import drop_disabled, gated
from pilothouse.machinery.objects import Json

_CONTAINERS = ("containers[]", "initContainers[]", "ephemeralContainers[]")
_STATUSES = ("containerStatuses[]", "initContainerStatuses[]", "ephemeralContainerStatuses[]")

_SPEC_FIELDS = (
    gated("GenericWorkload", "schedulingGroup"),
    gated("ClusterTrustBundleProjection", "volumes[].projected.sources[].clusterTrustBundle"),
    gated("PodCertificateRequest", "volumes[].projected.sources[].podCertificate"),
    gated("HostnameOverride", "hostnameOverride"),
    gated("EnvFiles", *(f"{container}.env[].valueFrom.fileKeyRef" for container in _CONTAINERS)),
    gated("MatchLabelKeysInPodTopologySpread", "topologySpreadConstraints[].matchLabelKeys"),
)

_STATUS_FIELDS = (
    gated("DRANodeAllocatableResources", "nodeAllocatableResourceClaimStatuses"),
    gated("DRAExtendedResource", "extendedResourceClaimStatus"),
    gated("ImageVolumeWithDigest", *(f"{status}.volumeMounts[].volumeStatus" for status in _STATUSES)),
    gated("InPlacePodLevelResourcesVerticalScaling", "resources", "allocatedResources"),
    gated("ResourceHealthStatus", *(f"{status}.allocatedResourcesStatus" for status in _STATUSES)),
    gated(
        "ResourceHealthStatusMessage",
        *(f"{status}.allocatedResourcesStatus[].resources[].message" for status in _STATUSES),
    ),
)


def drop_disabled_fields(spec: Json, old: Json | None = None) -> None:
    """Drop the fields of disabled features from a spec, unless `old`, the stored spec, uses the field."""
    drop_disabled(spec, old, _SPEC_FIELDS)
    if not enabled("ContainerStopSignals") and not any(map(_has_stop_signal, all_containers(old or {}))):
        for container in filter(_has_stop_signal, all_containers(spec)):
            del container["lifecycle"]["stopSignal"]
            if not container["lifecycle"]:
                del container["lifecycle"]
    if not enabled("ContainerRestartRules") and not _uses_restart_rules(old or {}):
        for kind in ("initContainers", "containers", "ephemeralContainers"):
            for container in spec.get(kind) or ():
                container.pop("restartPolicyRules", None)
                if kind != "initContainers" or container.get("restartPolicy") != "Always":
                    container.pop("restartPolicy", None)


def drop_disabled_template_fields(template: Json | None, old: Json | None = None) -> None:
    if template is not None:
        drop_disabled_fields(template.setdefault("spec", {}), (old or {}).get("spec"))


def drop_disabled_status_fields(status: Json, old: Json | None = None) -> None:
    drop_disabled(status, old, _STATUS_FIELDS)


def _has_stop_signal(container: Json) -> bool:
    lifecycle = container.get("lifecycle")
    return lifecycle is not None and "stopSignal" in lifecycle


def _uses_restart_rules(spec: Json) -> bool:
    return any(map(_restarts_by_rules, spec.get("initContainers") or ())) or any(
        container.get("restartPolicy") is not None for container in spec.get("containers") or ()
    )


def _restarts_by_rules(container: Json) -> bool:
    """Report whether an init container has restart settings beyond those of sidecars."""
    return container.get("restartPolicy") not in (None, "Always") or bool(container.get("restartPolicyRules"))
