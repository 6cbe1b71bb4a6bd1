"""Ephemeral containers: they can be added to a pod, and never changed or removed."""

from __future__ import annotations

from pilothouse.kube.core.pods.equality import same_spec
from pilothouse.kube.core.pods.internal_form import difference, internal_form
from pilothouse.kube.core.pods.update import validate_annotation_updates
from pilothouse.kube.core.pods.validation.claims import NO_FIELD
from pilothouse.kube.core.pods.validation.options_from_stored import options_for_pod
from pilothouse.kube.core.pods.validation.pod import validate_pod
from pilothouse.kube.mirror_pods import is_mirror_pod
from pilothouse.machinery.field import Errors, forbidden, root
from pilothouse.machinery.gofmt import quote
from pilothouse.machinery.objects import Json

_PATH = root("spec", "ephemeralContainers")


def is_static(pod: Json) -> bool:
    return is_mirror_pod(pod)


def validate_ephemeral_containers_update(pod: Json, old: Json) -> Errors:
    """Validate all but the metadata. A static pod is refused for that alone: see `static_pod_error`."""
    options = options_for_pod(old)
    yield from validate_pod(pod, options)
    yield from validate_annotation_updates(pod, old, options)
    present = {container.get("name"): container for container in pod["spec"].get("ephemeralContainers") or ()}
    for container in old["spec"].get("ephemeralContainers") or ():
        name = container.get("name") or ""
        if name not in present:
            yield forbidden(_PATH, f"existing ephemeral containers {quote(name)} may not be removed\n")
        elif not same_spec(container, present[name]):
            changes = difference(
                internal_form("EphemeralContainer", container), internal_form("EphemeralContainer", present[name])
            )
            yield forbidden(_PATH, f"existing ephemeral containers {quote(name)} may not be changed\n{changes}")


def static_pod_error() -> Errors:
    yield forbidden(NO_FIELD, "static pods do not support ephemeral containers")
