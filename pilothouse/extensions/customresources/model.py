"""The served view of a CustomResourceDefinition: accepted names, versions, compiled schemas."""

from __future__ import annotations

import base64
from dataclasses import field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from pilothouse.apiserver.registry.resource import Names
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.names import GroupVersion, GroupVersionKind
from pilothouse.machinery.objects import Json
from pilothouse.machinery.pem import ca_bundle_problem
from pilothouse.machinery.versions import preference

if TYPE_CHECKING:
    from pilothouse.extensions.schema.compiled import CompiledSchema


@dataclass(frozen=True)
class Version:
    """A version of the definition."""

    declared: Json

    @property
    def name(self) -> str:
        return str(self.declared["name"])

    @property
    def served(self) -> bool:
        return bool(self.declared.get("served"))

    @property
    def storage(self) -> bool:
        return bool(self.declared.get("storage"))

    @property
    def schema(self) -> Json | None:
        return (self.declared.get("schema") or {}).get("openAPIV3Schema")

    @property
    def has_status(self) -> bool:
        return (self.declared.get("subresources") or {}).get("status") is not None

    @property
    def scale(self) -> Json | None:
        return (self.declared.get("subresources") or {}).get("scale")

    @property
    def columns(self) -> list[Json]:
        return self.declared.get("additionalPrinterColumns") or []

    @property
    def selectable_fields(self) -> list[str]:
        """JSON paths of the selectable fields."""
        return [selectable["jsonPath"] for selectable in self.declared.get("selectableFields") or ()]


@dataclass(frozen=True)
class CustomResource:
    definition: Json = field(repr=False)

    @property
    def spec(self) -> dict[str, Any]:
        spec: dict[str, Any] = self.definition["spec"]
        return spec

    @property
    def group(self) -> str:
        return str(self.spec["group"])

    @property
    def plural(self) -> str:
        return str(self.spec["names"]["plural"])

    @property
    def namespaced(self) -> bool:
        return bool(self.spec["scope"] == "Namespaced")

    @cached_property
    def names(self) -> Names:
        accepted = self.definition["status"]["acceptedNames"]
        return Names(
            accepted["plural"],
            kind=accepted["kind"],
            singular=accepted.get("singular") or "",
            list_kind=accepted.get("listKind") or "",
            short=accepted.get("shortNames") or (),
            categories=accepted.get("categories") or (),
        )

    @cached_property
    def versions(self) -> dict[str, Version]:
        return {version["name"]: Version(version) for version in self.spec["versions"]}

    @cached_property
    def storage_version(self) -> Version:
        return next(version for version in self.versions.values() if version.storage)

    @property
    def converts_by_webhook(self) -> bool:
        return (self.spec.get("conversion") or {}).get("strategy") == "Webhook"

    @cached_property
    def conversion_problem(self) -> str:
        """Return the configuration problem of the conversion webhook; empty if usable."""
        config = ((self.spec.get("conversion") or {}).get("webhook") or {}).get("clientConfig") or {}
        bundle = config.get("caBundle") if self.converts_by_webhook else None
        return ca_bundle_problem(base64.b64decode(bundle)) if bundle else ""

    def stored_in(self, version: str) -> CustomResource:
        """Return the resource with this version as the storage version."""
        versions = [declared | {"storage": declared["name"] == version} for declared in self.spec["versions"]]
        view = CustomResource(self.definition | {"spec": self.spec | {"versions": versions}})
        view.__dict__["schemas"] = self.schemas  # compiled schemas are shared by all views
        return view

    def kind(self, version: str) -> GroupVersionKind:
        return GroupVersion(self.group, version).kind(self.names.kind)

    @cached_property
    def schemas(self) -> Schemas:
        schemas = {name: version.schema for name, version in self.versions.items()}
        return Schemas(schemas, preserve_unknown_fields=bool(self.spec.get("preserveUnknownFields")))

    def deprecation_warning(self, version: Version) -> str:
        """Return the deprecation warning; empty for versions that are not deprecated."""
        if not version.declared.get("deprecated"):
            return ""
        own: str | None = version.declared.get("deprecationWarning")
        return self._default_warning(version.name) if own is None else own

    def _default_warning(self, deprecated: str) -> str:
        kind = self.spec["names"]["kind"]
        text = f"{self.group}/{deprecated} {kind} is deprecated"
        maintained = [
            version.name
            for version in self.versions.values()
            if version.served and not version.declared.get("deprecated")
        ]
        better = [name for name in maintained if preference(name) < preference(deprecated)]
        return f"{text}; use {self.group}/{min(better, key=preference)} {kind}" if better else text


class Schemas:
    """Schemas of all versions, compiled on first use."""

    def __init__(self, schemas: dict[str, Json | None], *, preserve_unknown_fields: bool) -> None:
        self._schemas = schemas
        self._preserve = preserve_unknown_fields
        self._compiled: dict[str, CompiledSchema] = {}

    def of(self, version: str) -> CompiledSchema:
        """Return the compiled schema; unknown versions get an empty schema."""
        name = version if version in self._schemas else ""
        if name not in self._compiled:
            # Imported with the first schema.
            from pilothouse.extensions.schema.compiled import compile_schema

            schema = self._schemas.get(name)
            self._compiled[name] = compile_schema(schema, preserve_unknown_fields=self._preserve)
        return self._compiled[name]
