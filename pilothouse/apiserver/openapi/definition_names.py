"""The names of definitions: `io.k8s.api.apps.v1.Deployment` for a built-in kind, `com.example.v1.Shelf` for others."""

from __future__ import annotations

from pilothouse.machinery.names import GroupVersionKind
from pilothouse.machinery.wire_facts import definition_name, message_of

META = "io.k8s.apimachinery.pkg.apis.meta.v1"


def definition_of(kind: GroupVersionKind) -> str:
    message = message_of(kind)
    if message is not None:
        return definition_name(message.package, message.message)
    return ".".join((*reversed(kind.group.split(".")), kind.version, kind.kind))
