"""The fields of a pod that its containers may be told: as variables, or as files."""

from __future__ import annotations

from collections.abc import Mapping

from pilothouse.machinery.objects import Json, annotations_of, labels_of, name_of, namespace_of, uid_of


def field_text(pod: Json, path: str) -> str:
    """Return the text of the field; nothing for one that there is not."""
    status, spec = pod.get("status") or {}, pod.get("spec") or {}
    simple = {
        "metadata.name": name_of(pod),
        "metadata.namespace": namespace_of(pod),
        "metadata.uid": uid_of(pod),
        "spec.nodeName": spec.get("nodeName"),
        "spec.serviceAccountName": spec.get("serviceAccountName"),
        "status.hostIP": status.get("hostIP"),
        "status.podIP": status.get("podIP"),
    }
    if path in simple:
        return str(simple[path] or "")
    for prefix, values in (("metadata.labels", labels_of(pod)), ("metadata.annotations", annotations_of(pod))):
        if path == prefix:
            return _lines(values)
        if path.startswith(f"{prefix}['") and path.endswith("']"):
            return str(values.get(path[len(prefix) + 2 : -2]) or "")
    return ""


def _lines(values: Mapping[str, str]) -> str:
    quoted = ((name, value.replace("\\", "\\\\").replace('"', '\\"')) for name, value in sorted(values.items()))
    return "\n".join(f'{name}="{value}"' for name, value in quoted)
