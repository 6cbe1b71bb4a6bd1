"""Definitions of the test bench's kinds, served like custom resources."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from pilothouse.extensions.customresources.model import CustomResource
from pilothouse.kinds.definitions import printer_column, text_field
from pilothouse.machinery.objects import Json

GROUP: Final = "testing.pilothouse.dev"
VERSION: Final = "v1alpha1"
API_VERSION: Final = f"{GROUP}/{VERSION}"
DURATION: Final = r"^-?([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+$"
"""Pattern of a Go duration."""


def number(description: str, **more: Any) -> Json:
    return {"type": "integer", "format": "int64", "description": description, **more}


def duration(description: str) -> Json:
    return text_field(description, pattern=DURATION, maxLength=64)


def texts(description: str, *, of: Sequence[str] = ()) -> Json:
    item: Json = {"type": "string", "maxLength": 253} | ({"enum": list(of)} if of else {})
    return {"type": "array", "description": description, "items": item, "maxItems": 64, "x-kubernetes-list-type": "set"}


def record(description: str, properties: Json, *, required: Sequence[str] = (), rules: Mapping[str, str] = {}) -> Json:
    """Return an object schema. `rules` maps CEL expressions to their error messages."""
    schema: Json = {"type": "object", "description": description, "properties": properties}
    if required:
        schema["required"] = list(required)
    if rules:
        schema["x-kubernetes-validations"] = [{"rule": rule, "message": message} for rule, message in rules.items()]
    return schema


AGE: Final = printer_column("Age", ".metadata.creationTimestamp", "date")


def bench_resource(
    kind: str,
    plural: str,
    description: str,
    *,
    spec: Json,
    status: Json,
    columns: Sequence[Json],
    rules: Mapping[str, str] = {},
) -> CustomResource:
    """Return one kind of the group: cluster-scoped, with a status that the server writes."""
    structure = {"apiVersion": {"type": "string"}, "kind": {"type": "string"}, "metadata": {"type": "object"}}
    schema = record(description, structure | {"spec": spec, "status": status}, rules=rules)
    names = {"plural": plural, "singular": kind.lower(), "kind": kind, "listKind": f"{kind}List"}
    version = {
        "name": VERSION,
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema},
        "subresources": {"status": {}},
        "additionalPrinterColumns": [*columns, AGE],
    }
    names_with_category = {**names, "categories": ["testing"]}
    spec_of_definition = {
        "group": GROUP,
        "scope": "Cluster",
        "names": names_with_category,
        "versions": [version],
        "conversion": {"strategy": "None"},
    }
    return CustomResource(
        {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": f"{plural}.{GROUP}", "uid": plural},
            "spec": spec_of_definition,
            "status": {"acceptedNames": names_with_category, "conditions": [], "storedVersions": [VERSION]},
        }
    )
