"""Fields of disabled features: dropped from pods, unless the stored object uses the field."""

from __future__ import annotations

from collections.abc import Iterator

from pilothouse.apiserver.server.features import enabled
from pilothouse.kinds.pods import all_containers
from pilothouse.kube.strategy import drop_disabled, gated
from pilothouse.machinery.objects import Json

_CONTAINERS = ("containers[]", "initContainers[]", "ephemeralContainers[]")
_STATUSES = ("containerStatuses[]", "initContainerStatuses[]", "ephemeralContainerStatuses[]")

_IMAGE_VOLUME = "ImageVolume"

_SPEC_FIELDS = (
    gated("GenericWorkload", "schedulingGroup"),
    gated("ClusterTrustBundleProjection", "volumes[].projected.sources[].clusterTrustBundle"),
    gated("PodCertificateRequest", "volumes[].projected.sources[].podCertificate"),
    gated("HostnameOverride", "hostnameOverride"),
    gated("EnvFiles", *(f"{container}.env[].valueFrom.fileKeyRef" for container in _CONTAINERS)),
    gated("MatchLabelKeysInPodTopologySpread", "topologySpreadConstraints[].matchLabelKeys"),
)

_STATUS_FIELDS = (
    gated("CSIVolumeHealth", "volumeHealth"),
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
    if found := list(_rare_fields(spec)):
        in_use = {gate for gate, _, _ in _rare_fields(old or {})}
        for gate, holder, name in found:
            if gate not in in_use and not enabled(gate):
                del holder[name]
    if not enabled(_IMAGE_VOLUME) and not any(map(_is_image, (old or {}).get("volumes") or ())):
        _drop_image_volumes(spec)
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


def _rare_fields(spec: Json) -> Iterator[tuple[str, Json, str]]:
    """Yield gate, holder and name of each set field of the features that only some pods use.

    One pass over the containers and volumes is cheaper than a path for each field.
    """
    if "evictionResponders" in spec:
        yield "EvictionRequestAPI", spec, "evictionResponders"
    for container in all_containers(spec):
        for mount in container.get("volumeMounts") or ():
            if "bindMountOptions" in mount:
                yield "VolumeBindMountOptions", mount, "bindMountOptions"
        lifecycle = container.get("lifecycle") or {}
        handlers = [container.get(probe) for probe in ("livenessProbe", "readinessProbe", "startupProbe")]
        for handler in (*handlers, lifecycle.get("postStart"), lifecycle.get("preStop")):
            if handler:
                if "protocol" in (handler.get("httpGet") or ()):
                    yield "H2CContainerProbe", handler["httpGet"], "protocol"
                if "mode" in (handler.get("grpc") or ()):
                    yield "GRPCContainerProbeTLS", handler["grpc"], "mode"
    for volume in spec.get("volumes") or ():
        if "mode" in (volume.get("emptyDir") or ()):
            yield "EmptyDirVolumeMode", volume["emptyDir"], "mode"
        for holder, name in _users_of_files(volume):
            yield "AtomicWriteVolumeUserFields", holder, name


def _users_of_files(volume: Json) -> Iterator[tuple[Json, str]]:
    projected = volume.get("projected") or {}
    sources = [volume.get(kind) or {} for kind in ("secret", "configMap", "downwardAPI")]
    for source in (*sources, projected):
        if "defaultUser" in source:
            yield source, "defaultUser"
    for projection in projected.get("sources") or ():
        sources += [source for source in projection.values() if source]
    for source in sources:
        for holder in (source, *(source.get("items") or ())):
            if "user" in holder:
                yield holder, "user"


def _is_image(volume: Json) -> bool:
    return volume.get("image") is not None


def _drop_image_volumes(spec: Json) -> None:
    names = {volume.get("name") for volume in spec.get("volumes") or () if _is_image(volume)}
    if not names:
        return
    for holder, field, key in ((spec, "volumes", "name"), *((c, "volumeMounts", "name") for c in all_containers(spec))):
        kept = [each for each in holder.get(field) or () if each.get(key) not in names]
        holder[field] = kept
        if not kept:
            del holder[field]


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
