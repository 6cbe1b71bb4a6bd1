"""Upstream's internal form of a spec: fields equal in all versions move to the top level.

versions: [{name: v1, schema: S}, {name: v2, schema: S}]   →   validation: S, versions: [{name: v1}, {name: v2}]
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.objects import Json
from pilothouse.machinery.validation.immutable import semantically_equal

_MOVED = ("subresources", "schema", "additionalPrinterColumns", "selectableFields")


@dataclass(frozen=True, slots=True)
class InternalSpec:
    spec: Json
    versions: list[Json]
    """Versions without the common fields."""
    common: Json
    """Fields equal in all versions, by their name within a version."""

    @classmethod
    def of(cls, spec: Json) -> InternalSpec:
        versions = [dict(version) for version in spec.get("versions") or ()]
        common: Json = {}
        for field in _MOVED:
            values = [version.get(field) for version in versions]
            if values and all(semantically_equal(value, values[0]) for value in values):
                common[field] = values[0]
                for version in versions:
                    version.pop(field, None)
        return cls(spec, versions, common)

    @property
    def version(self) -> str:
        return (self.versions[0].get("name") or "") if self.versions else ""

    @property
    def preserves_unknown_fields(self) -> bool:
        return bool(self.spec.get("preserveUnknownFields"))

    def of_version(self, version: Json, field: str) -> Any:
        """Return the version's field, or the common field."""
        return version.get(field, self.common.get(field))

    def schema_of(self, version: Json) -> Json | None:
        schema: Json | None = (self.of_version(version, "schema") or {}).get("openAPIV3Schema")
        return schema

    def schemas(self) -> Iterator[Json]:
        """Yield each schema once, including a common schema."""
        for holder in (self.common, *self.versions):
            schema = (holder.get("schema") or {}).get("openAPIV3Schema")
            if schema is not None:
                yield schema

    def go_versions(self) -> list[Json]:
        """Return the versions in the form of Go's messages."""
        return [_go_version(version) for version in self.versions]


def _go_version(version: Json) -> Json:
    schema = (version.get("schema") or {}).get("openAPIV3Schema")
    return {
        "Name": version.get("name") or "",
        "Served": bool(version.get("served")),
        "Storage": bool(version.get("storage")),
        "Deprecated": bool(version.get("deprecated")),
        "DeprecationWarning": version.get("deprecationWarning"),
        "Schema": {"OpenAPIV3Schema": schema} if version.get("schema") is not None else None,
        "Subresources": _go_subresources(version.get("subresources")),
        "AdditionalPrinterColumns": [_go_column(c) for c in version.get("additionalPrinterColumns") or ()] or None,
        "SelectableFields": [{"JSONPath": f.get("jsonPath") or ""} for f in version.get("selectableFields") or ()]
        or None,
    }


def _go_column(column: Json) -> Json:
    texts = {name: column.get(name.lower()) or "" for name in ("Name", "Type", "Format", "Description")}
    return texts | {"Priority": column.get("priority") or 0, "JSONPath": column.get("jsonPath") or ""}


def _go_subresources(subresources: Json | None) -> Json | None:
    if subresources is None:
        return None
    scale = subresources.get("scale")
    return {
        "Status": None if subresources.get("status") is None else {},
        "Scale": None
        if scale is None
        else {
            "SpecReplicasPath": scale.get("specReplicasPath") or "",
            "StatusReplicasPath": scale.get("statusReplicasPath") or "",
            "LabelSelectorPath": scale.get("labelSelectorPath"),
        },
    }
