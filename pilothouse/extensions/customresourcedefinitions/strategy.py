"""The CustomResourceDefinition strategy: defaults, writable fields, and the resource declaration.

Validation needs schemas and CEL, and is imported with the first write of a definition.
"""

from __future__ import annotations

from collections.abc import Iterable
from copy import deepcopy
from typing import Any

from pilothouse.apiserver.registry.metadata import begin_generation, carry_over
from pilothouse.apiserver.registry.resource import Names, Resource
from pilothouse.apiserver.registry.strategy import Strategy
from pilothouse.apiserver.registry.table import DEFAULT_COLUMNS
from pilothouse.extensions.customresourcedefinitions.forms import from_beta
from pilothouse.machinery.field import Errors
from pilothouse.machinery.gofmt import quote
from pilothouse.machinery.names import GroupVersion
from pilothouse.machinery.objects import Json, metadata
from pilothouse.machinery.validation.immutable import semantically_equal
from pilothouse.machinery.validation.webhook_clients import default_client_config

GROUP_VERSION = GroupVersion("apiextensions.k8s.io", "v1")


class DefinitionStrategy(Strategy):
    namespaced = False
    allow_unconditional_update = False
    reset_fields = ("status",)

    def default(self, obj: Json) -> None:
        spec = obj["spec"]
        names, kind = spec["names"], spec["names"].get("kind") or ""
        if kind and not names.get("singular"):
            names["singular"] = kind.lower()
        if kind and not names.get("listKind"):
            names["listKind"] = f"{kind}List"
        if spec.get("conversion") is None:
            spec["conversion"] = {"strategy": "None"}
        default_client_config((spec["conversion"].get("webhook") or {}).get("clientConfig") or {})
        if not obj["status"].get("storedVersions") and (stored := storage_version(spec)) is not None:
            obj["status"]["storedVersions"] = [stored]

    def prepare_for_create(self, obj: Json) -> None:
        obj["status"] = {"conditions": None, "acceptedNames": {"plural": "", "kind": ""}, "storedVersions": None}
        metadata(obj)["generation"] = 1
        _remember_storage_version(obj)

    def validate(self, obj: Json) -> Errors:
        from pilothouse.extensions.customresourcedefinitions.validation.definition import validate_definition

        yield from validate_definition(obj)

    def warnings_on_create(self, obj: Json) -> Iterable[str]:
        return [_unrecognized(name) for name in _unrecognized_formats(obj)]

    def prepare_for_update(self, obj: Json, old: Json) -> None:
        obj["status"] = deepcopy(old["status"])
        if not semantically_equal(obj["spec"], old["spec"]):
            begin_generation(obj, old)
        _remember_storage_version(obj)

    def validate_update(self, obj: Json, old: Json) -> Errors:
        from pilothouse.extensions.customresourcedefinitions.validation.definition import validate_definition_update

        yield from validate_definition_update(obj, old)

    def warnings_on_update(self, obj: Json, old: Json) -> Iterable[str]:
        known = set(_unrecognized_formats(old))
        return [_unrecognized(name) for name in _unrecognized_formats(obj) if name not in known]


class DefinitionStatusStrategy(DefinitionStrategy):
    reset_fields = ("spec",)

    def prepare_for_update(self, obj: Json, old: Json) -> None:
        carry_over(obj, old, "spec")

    def validate_update(self, obj: Json, old: Json) -> Errors:
        from pilothouse.extensions.customresourcedefinitions.validation.definition import validate_status_update

        yield from validate_status_update(obj, old)

    def warnings_on_update(self, obj: Json, old: Json) -> Iterable[str]:
        return ()


def _unrecognized_formats(obj: Json) -> Iterable[str]:
    from pilothouse.extensions.customresourcedefinitions.validation.definition import unrecognized_formats

    return unrecognized_formats(obj["spec"])


def _unrecognized(name: str) -> str:
    return f"unrecognized format {quote(name)}"


def storage_version(spec: Json) -> str | None:
    versions: list[dict[str, Any]] = spec.get("versions") or []
    return next((version["name"] for version in versions if version.get("storage")), None)


def _remember_storage_version(obj: Json) -> None:
    """Add the storage version to `storedVersions`; versions stay listed until a client removes them."""
    stored, name = obj["status"].get("storedVersions") or [], storage_version(obj["spec"])
    if name is not None and name not in stored:
        obj["status"]["storedVersions"] = [*stored, name]


CUSTOM_RESOURCE_DEFINITIONS = Resource(
    names=Names(
        "customresourcedefinitions",
        kind="CustomResourceDefinition",
        short=["crd", "crds"],
        categories=["api-extensions"],
    ),
    strategy=DefinitionStrategy(),
    group=GROUP_VERSION.group,
    status_has_tables=False,
    version=GROUP_VERSION.version,
    storage_path="apiextensions.k8s.io/customresourcedefinitions",
    columns=DEFAULT_COLUMNS,
    from_older=from_beta,
)
