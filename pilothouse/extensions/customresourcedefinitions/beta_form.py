"""Conversion of v1beta1 definitions, upstream's storage version, for an etcd written by kube-apiserver.

version: v1                     →   versions: [{name: v1, served: true, storage: true, schema: S}]
validation: S                       preserveUnknownFields: true
conversion: {webhookClientConfig: C, conversionReviewVersions: V}
                                →   conversion: {webhook: {clientConfig: C, conversionReviewVersions: V}}
"""

from __future__ import annotations

from pilothouse.machinery.objects import Json

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
