"""Rejections of writes by admission."""

from __future__ import annotations

from pilothouse.apiserver.admission.interface import Attributes
from pilothouse.machinery.errors import Forbidden
from pilothouse.machinery.objects import metadata

NOT_YET_READY = "not yet ready to handle request"


def refused(attributes: Attributes, why: str) -> Forbidden:
    """Build Forbidden; objects with a generated name are named by generateName."""
    meta = metadata(attributes.obj) if attributes.obj is not None else {}
    name = attributes.name or meta.get("name") or meta.get("generateName") or "Unknown"
    return Forbidden.of(attributes.resource.group_resource, name, why)
