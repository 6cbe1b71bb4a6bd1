"""Other forms of a definition: upstream's internal form, and v1beta1.

Internal form: fields equal in all versions move to the top level.

    versions: [{name: v1, schema: S}, {name: v2, schema: S}]   →   validation: S, versions: [{name: v1}, {name: v2}]

v1beta1 is upstream's storage version, so an etcd written by kube-apiserver contains it.

    version: v1                     →   versions: [{name: v1, served: true, storage: true, schema: S}]
    validation: S                       preserveUnknownFields: true
    conversion: {webhookClientConfig: C, conversionReviewVersions: V}
                                    →   conversion: {webhook: {clientConfig: C, conversionReviewVersions: V}}
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
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

    def go_versions(self) -> list[Json] | None:
        """Return the versions in the form of Go's messages; None if the definition has no list of versions."""
        return None if self.spec.get("versions") is None else [_go_version(version) for version in self.versions]


def _go_version(version: Json) -> Json:
    # Import with the first message that shows a version.
    from pilothouse.extensions.schema.definition.go_form import go_schema

    schema = (version.get("schema") or {}).get("openAPIV3Schema")
    return {
        "Name": version.get("name") or "",
        "Served": bool(version.get("served")),
        "Storage": bool(version.get("storage")),
        "Deprecated": bool(version.get("deprecated")),
        "DeprecationWarning": version.get("deprecationWarning"),
        "Schema": None
        if version.get("schema") is None
        else {"OpenAPIV3Schema": None if schema is None else go_schema(schema)},
        "Subresources": _go_subresources(version.get("subresources")),
        "AdditionalPrinterColumns": _each(_go_column, version.get("additionalPrinterColumns")),
        "SelectableFields": _each(_go_selectable_field, version.get("selectableFields")),
    }


def _each(printed: Callable[[Json], Json], values: list[Json] | None) -> list[Json] | None:
    return None if values is None else [printed(value) for value in values]


def _go_selectable_field(field: Json) -> Json:
    return {"JSONPath": field.get("jsonPath") or ""}


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


BETA = "apiextensions.k8s.io/v1beta1"

_FIELDS_OF_ALL_VERSIONS = {
    "subresources": "subresources",
    "validation": "schema",
    "additionalPrinterColumns": "additionalPrinterColumns",
    "selectableFields": "selectableFields",
}
"""Field shared by all versions → its name within a version."""


def from_beta(definition: Json) -> None:
    """Convert a v1beta1 definition to v1 in place, with v1beta1's defaults; other versions stay unchanged."""
    if definition.get("apiVersion") != BETA:
        return
    definition["apiVersion"] = "apiextensions.k8s.io/v1"
    spec: Json = definition.setdefault("spec", {})
    _default(spec)
    versions: list[Json] = spec.get("versions") or []
    for field, in_version in _FIELDS_OF_ALL_VERSIONS.items():
        if (value := spec.pop(field, None)) is not None:
            for version in versions:
                version[in_version] = value
    for version in versions:
        if columns := version.get("additionalPrinterColumns"):
            version["additionalPrinterColumns"] = [_column(column) for column in columns]
    _convert_conversion(spec["conversion"])
    _default_stored_versions(definition)


def _default(spec: Json) -> None:
    names: Json = spec.setdefault("names", {})
    kind: str = names.get("kind") or ""
    names["singular"] = names.get("singular") or kind.lower()
    names["listKind"] = names.get("listKind") or (f"{kind}List" if kind else "")
    spec["scope"] = spec.get("scope") or "Namespaced"
    version = spec.pop("version", "")
    if version and not spec.get("versions"):
        spec["versions"] = [{"name": version, "served": True, "storage": True}]
    spec["conversion"] = spec.get("conversion") or {"strategy": "None"}
    if spec.get("preserveUnknownFields") is None:
        spec["preserveUnknownFields"] = True
    elif not spec["preserveUnknownFields"]:
        del spec["preserveUnknownFields"]  # v1 omits the field


def _column(column: Json) -> Json:
    return {"jsonPath" if name == "JSONPath" else name: value for name, value in column.items()}


def _convert_conversion(conversion: Json) -> None:
    client, reviews = conversion.pop("webhookClientConfig", None), conversion.pop("conversionReviewVersions", None)
    if conversion.get("strategy") == "Webhook":
        reviews = reviews or ["v1beta1"]
    if client is None and reviews is None:
        return
    conversion["webhook"] = {"conversionReviewVersions": reviews}
    if client is not None:
        conversion["webhook"]["clientConfig"] = client
        if (service := client.get("service")) is not None:
            service.setdefault("port", 443)


def _default_stored_versions(definition: Json) -> None:
    status: Json = definition.setdefault("status", {})
    if not status.get("storedVersions"):
        versions = definition["spec"].get("versions") or ()
        status["storedVersions"] = [version["name"] for version in versions if version.get("storage")][:1]
