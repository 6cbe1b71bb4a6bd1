"""Schemas of specs, in the eyes of a CustomResourceDefinition."""

from __future__ import annotations

from pilothouse.client import Json
from pilothouse.extensions.schema.definition.validate import VersionContext, validate_crd_schema
from pilothouse.machinery.field import root


def definition_errors(schema: Json) -> list[str]:
    """What a definition with this schema of its spec is refused for."""
    whole = {"type": "object", "properties": {"spec": schema}}
    return [str(each) for each in validate_crd_schema(whole, path=root("schema"), version_context=VersionContext())]
