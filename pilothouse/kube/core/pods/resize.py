"""In-place resize: cpu and memory of containers may change, the quality of service may not."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy

from pilothouse.apiserver.registry.metadata import carry_over
from pilothouse.apiserver.server.features import enabled
from pilothouse.kinds.pods import is_sidecar
from pilothouse.kube.core.pods.equality import same_spec
from pilothouse.kube.core.pods.qos import compute_qos_class, qos_class
from pilothouse.kube.core.pods.update import is_static
from pilothouse.kube.core.pods.validation.claims import NO_FIELD
from pilothouse.kube.core.pods.validation.options_from_stored import options_for_pod
from pilothouse.kube.core.pods.validation.pod import validate_pod
from pilothouse.machinery import version_rules
from pilothouse.machinery.field import Errors, FieldError, Path, forbidden, invalid, root
from pilothouse.machinery.objects import Json

_SPEC = root("spec")
_POD_LEVEL = "InPlacePodLevelResourcesVerticalScaling"
_RESIZABLE = ("cpu", "memory")
_LISTS = ("containers", "initContainers")


def not_resizable(old: Json) -> FieldError | None:
    """Return an error for a pod that never can be resized, otherwise None."""
    if is_static(old):
        return forbidden(NO_FIELD, "static pods cannot be resized")
    if (old["spec"].get("os") or {}).get("name") == "windows":
        return forbidden(NO_FIELD, "windows pods cannot be resized")
    return None


def keep_all_but_resources(pod: Json, old: Json) -> bool:
    """Copy everything except resources from the stored pod.

    Return False if containers were added or removed; validation rejects such a pod.
    """
    spec, stored = pod["spec"], old["spec"]
    if any(len(spec.get(kind) or ()) != len(stored.get(kind) or ()) for kind in _LISTS):
        return False
    resized = deepcopy(stored)
    for kind in _LISTS:
        if spec.get(kind):
            resized[kind] = _with_resources(spec[kind], resized.get(kind) or [])
    if enabled(_POD_LEVEL):
        carry_over(resized, spec, "resources")
    pod["spec"], pod["status"] = resized, old.get("status") or {}
    return True


def _with_resources(containers: Sequence[Json], stored: list[Json]) -> Sequence[Json]:
    for container, before in zip(containers, stored, strict=True):
        if container.get("name") != before.get("name"):
            return containers
        carry_over(before, container, "resources", "resizePolicy")
    return stored


def validate_resize(pod: Json, old: Json) -> Errors:
    """Validate a resize, except the metadata and `not_resizable`."""
    spec, stored, masked = pod["spec"], old["spec"], deepcopy(pod["spec"])
    errors = [*validate_pod(pod, options_for_pod(old)), *_validate_pod_can_resize(pod, old)]
    if _has_resources(spec) or _has_resources(stored):
        if not enabled(_POD_LEVEL):
            off = f"{_POD_LEVEL}Enabled feature gate is disabled"
            reason = f"resize of pods with pod-level resources is forbidden when {off}"
            yield from [*errors, forbidden(NO_FIELD, reason)]
            return
        errors += _validate_pod_level(masked, stored)
    if (old.get("status") or {}).get("nodeAllocatableResourceClaimStatuses"):
        errors.append(forbidden(_SPEC, "pods with node allocatable resource claims cannot be resized"))
    order = list(_validate_order(spec, stored))
    errors += order
    if not order:
        errors += [*_validate_nothing_removed(spec, stored), *_validate_only_compute(masked, stored)]
    yield from errors
    if not errors and not same_spec(masked, stored):
        yield forbidden(_SPEC, "only cpu and memory resources are mutable")


def _validate_pod_can_resize(pod: Json, old: Json) -> Errors:
    if qos_class(old) != compute_qos_class(pod["spec"]):
        stored_class = (pod.get("status") or {}).get("qosClass") or ""
        yield invalid(_SPEC, stored_class, "Pod QOS Class may not change as a result of resizing")
    statuses = (old.get("status") or {}).get("containerStatuses") or ()
    running = next((status for status in statuses if (status.get("state") or {}).get("running") is not None), None)
    # A kubelet with resize support reports the resources of running containers.
    if running is not None and running.get("resources") is None:
        yield forbidden(_SPEC, "Pod running on node without support for resize")


def _has_resources(spec: Json) -> bool:
    resources = spec.get("resources") or {}
    return bool(resources.get("requests") or resources.get("limits"))


def _validate_pod_level(masked: Json, stored: Json) -> Errors:
    path, new, old = _SPEC.child("resources"), masked.get("resources"), stored.get("resources")
    if old is not None and new is None:
        yield forbidden(path, "pod-level resources cannot be removed")
        return
    for kind in ("requests", "limits"):
        if old is not None and _removes(new or {}, old, kind):
            yield forbidden(path.child(kind), f"pod-level resource {kind} cannot be removed")
    _mask(masked, stored)
    if old is None and not any((masked.get("resources") or {}).values()):
        masked.pop("resources", None)
    if not same_spec(masked.get("resources"), old):
        yield forbidden(_SPEC, "only cpu and memory resources are mutable at pod-level")


def _validate_order(spec: Json, stored: Json) -> Errors:
    for kind in _LISTS:
        containers, before = spec.get(kind) or (), stored.get(kind) or ()
        if len(containers) != len(before):
            yield forbidden(_SPEC.child(kind), f"{kind} may not be added or removed on resize")
            continue
        for position, (container, old_container) in enumerate(zip(containers, before, strict=True)):
            if container.get("name") != old_container.get("name"):
                at = _SPEC.child(kind).index(position).child("name")
                yield forbidden(at, f"{kind} may not be renamed or reordered on resize")


def _validate_nothing_removed(spec: Json, stored: Json) -> Errors:
    for kind in reversed(_LISTS):
        for position, before in enumerate(stored.get(kind) or ()):
            if kind == "initContainers" and not _can_resize(before):
                continue
            path: Path = _SPEC.child(kind).index(position).child("resources")
            new, old = spec[kind][position].get("resources") or {}, before.get("resources") or {}
            for what in ("requests", "limits"):
                if _removes(new, old, what):
                    yield forbidden(path.child(what), f"resource {what} cannot be removed")


def _removes(resources: Json, stored: Json, kind: str) -> bool:
    return not (stored.get(kind) or {}).keys() <= (resources.get(kind) or {}).keys()


def _validate_only_compute(masked: Json, stored: Json) -> Errors:
    """Reset mutable resources to the stored values. Any remaining difference is an error."""
    for container, before in zip(masked.get("containers") or (), stored.get("containers") or (), strict=True):
        _mask_container(container, before)
        if not same_spec(container, before):
            yield forbidden(_SPEC, "only cpu and memory resources are mutable")
    pairs = zip(masked.get("initContainers") or (), stored.get("initContainers") or (), strict=True)
    for position, (container, before) in enumerate(pairs):
        modified, path = not same_spec(container, before), _SPEC.child("initContainers").index(position)
        if not _can_resize(container):
            if modified:
                yield forbidden(_SPEC, "resources for non-sidecar init containers are immutable")
            continue
        _mask_container(container, before)
        if not same_spec(container, before):
            yield forbidden(path, "only cpu and memory resources for init or sidecar containers are mutable")
        if modified and not is_sidecar(container):
            for policy in container.get("resizePolicy") or ():
                if policy.get("restartPolicy") == "RestartContainer":
                    reason = "non-sidecar init containers with a resize policy of RestartContainer cannot be resized"
                    yield forbidden(path, reason)


def _can_resize(init_container: Json) -> bool:
    return is_sidecar(init_container) or enabled("InPlacePodVerticalScalingInitContainers")


def _mask_container(container: Json, stored: Json) -> None:
    """Reset the resources of a container. Before 1.37, containers with claims never can be resized."""
    _mask(container, stored)
    if not version_rules.holds("ResizesBesideClaims"):
        (container.get("resources") or {}).pop("claims", None)


def _mask(part: Json, stored: Json) -> None:
    """Replace new cpu and memory amounts by the stored amounts."""
    resources = part.get("resources")
    if resources is None:
        return
    before = stored.get("resources") or {}
    for kind in ("limits", "requests"):
        amounts = {name: amount for name, amount in (resources.get(kind) or {}).items() if name not in _RESIZABLE}
        kept = before.get(kind) or {}
        amounts |= {name: kept[name] for name in _RESIZABLE if name in kept}
        if amounts:
            resources[kind] = amounts
        else:
            resources.pop(kind, None)
