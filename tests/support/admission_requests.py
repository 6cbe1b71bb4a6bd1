"""Writes as admission plugins see them."""

from __future__ import annotations

from typing import Any

from pilothouse.apiserver.admission.interface import Attributes, Operation
from pilothouse.apiserver.authn.user import User
from pilothouse.machinery.names import GroupVersionKind, GroupVersionResource
from pilothouse.machinery.objects import Json


def writing(
    obj: Json,
    *,
    resource: str = "pods",
    kind: str = "Pod",
    old: Json | None = None,
    subresource: str = "",
    user: str = "u",
    **more: Any,
) -> Attributes:
    """A create, or an update where there is an old object, in the namespace `default`."""
    return Attributes(
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
