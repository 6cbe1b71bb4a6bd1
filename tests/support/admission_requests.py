"""Writes as admission plugins see them."""

from __future__ import annotations

from typing import Any

from pilothouse.apiserver import AdmissionAttributes, Operation, User
from pilothouse.client import GroupVersionKind, GroupVersionResource, Json


def writing(
    obj: Json,
    *,
    resource: str = "pods",
    kind: str = "Pod",
    old: Json | None = None,
    subresource: str = "",
    user: str = "u",
    **more: Any,
) -> AdmissionAttributes:
    """A create, or an update where there is an old object, in the namespace `default`."""
    return AdmissionAttributes(
        operation=Operation.CREATE if old is None else Operation.UPDATE,
        kind=GroupVersionKind("", "v1", kind),
        resource=GroupVersionResource("", "v1", resource),
        subresource=subresource,
        namespace="default",
        name=(obj.get("metadata") or {}).get("name", ""),
        user=User(user),
        obj=obj,
        old=old,
        **more,
    )


def pod(**spec: Any) -> Json:
    return {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}], **spec}}
