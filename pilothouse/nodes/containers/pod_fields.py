"""Downward API: pod fields as variables or files."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from pilothouse.machinery.objects import Json, annotations_of, labels_of, name_of, namespace_of, uid_of
from pilothouse.nodes.containers.budget import Budget

_MOST_SORTED: Final = 10_000
"""Above this number, labels are listed in stored order, not sorted."""


async def field_text(pod: Json, path: str, budget: Budget) -> str:
    """Return the text of the field; empty for unknown fields. Raises Killed."""
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
            pairs: Iterable[tuple[str, str]] = values.items()
            lines = []
            for name, value in sorted(pairs) if len(values) <= _MOST_SORTED else pairs:
                await budget.spend(data=len(value))
                quoted = value.replace("\\", "\\\\").replace('"', '\\"')
                lines.append(f'{name}="{quoted}"')
            return "\n".join(lines)
        if path.startswith(f"{prefix}['") and path.endswith("']"):
            return str(values.get(path[len(prefix) + 2 : -2]) or "")
    return ""
