"""A kind with all versions, and the definition that serves it.

The definition has the form of a CustomResourceDefinition, because the server of custom resources serves these kinds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cached_property
from typing import Any

from pilothouse.apiserver.endpoints.fieldmanager.structured_merge import copy_of
from pilothouse.apiserver.offload import NeedsOffload
from pilothouse.builder.resource import Resource, plural_of
from pilothouse.builder.types.wire import changing, schema_of
from pilothouse.extensions.customresources.model import CustomResource
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.errors import BadRequest, Invalid
from pilothouse.machinery.field import FieldError
from pilothouse.machinery.gofmt import quote
from pilothouse.machinery.names import GroupKind, version_of
from pilothouse.machinery.objects import Json, name_of
from pilothouse.machinery.status_error import StatusError

STRUCTURE = {"apiVersion": {"type": "string"}, "kind": {"type": "string"}, "metadata": {"type": "object"}}
"""Schemas of the fields that every object has."""


class InvalidDeclaration(Exception):
    """A resource cannot be served as declared.

    >>> from pilothouse.builder import APIServer, InvalidDeclaration, Resource
    >>> server = APIServer(group="wardle.example.com")
    >>> class Flunder(Resource):
    ...     pass
    >>> _ = server.resource(version="v1")(Flunder)
    >>> try:
    ...     _ = server.resource(version="v1")(Flunder)
    ... except InvalidDeclaration as error:
    ...     print(error)
    Flunder has a version v1 already
    """


@dataclass(frozen=True)
class VersionOptions:
    """Arguments of `APIServer.resource` for one version of a kind."""

    version: str
    kind: str
    plural: str = ""
    singular: str = ""
    short_names: Sequence[str] = ()
    categories: Sequence[str] = ()
    namespaced: bool = True
    storage_version: bool = False
    served: bool = True
    deprecated: str | None = None
    storage: object | None = None
    """The author's storage functions, if the objects are not in the store."""


@dataclass(frozen=True)
class Kind:
    """One resource of the server. `versions` are in declaration order."""

    group: str
    versions: dict[str, tuple[type[Resource], VersionOptions]]

    @property
    def options(self) -> VersionOptions:
        """Options of the storage version, which apply to the whole resource."""
        return self.versions[self.stored][1]

    @cached_property
    def stored(self) -> str:
        """Name of the storage version: the marked version, or the only version. Raises InvalidDeclaration."""
        chosen = [name for name, (_, options) in self.versions.items() if options.storage_version]
        if not chosen and len(self.versions) == 1:
            return next(iter(self.versions))
        if len(chosen) != 1:
            kind = next(iter(self.versions.values()))[1].kind
            raise InvalidDeclaration(f"exactly one version of {kind} must have storage_version=True")
        return chosen[0]

    def of(self, version: str) -> type[Resource]:
        return self.versions[version][0]

    @property
    def plural(self) -> str:
        return self.options.plural or plural_of(self.options.kind)

    @cached_property
    def custom_resource(self) -> CustomResource:
        """The kind as a custom resource. Raises InvalidDeclaration with all problems."""
        definition = self.definition()
        if problems := list(_problems(definition)):
            raise InvalidDeclaration(f"{self.options.kind} cannot be served: {'; '.join(problems)}")
        return CustomResource(definition)

    def definition(self) -> Json:
        """Return the equivalent CustomResourceDefinition."""
        options = self.options
        names = {
            "plural": self.plural,
            "singular": options.singular or options.kind.lower(),
            "kind": options.kind,
            "listKind": f"{options.kind}List",
            "shortNames": list(options.short_names),
            "categories": list(options.categories),
        }
        spec = {
            "group": self.group,
            "scope": "Namespaced" if options.namespaced else "Cluster",
            "names": {key: value for key, value in names.items() if value},
            "versions": [self._version(name) for name in self.versions],
            "conversion": {"strategy": "None"},
        }
        return {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": f"{self.plural}.{self.group}", "uid": self.plural},
            "spec": spec,
            "status": {"acceptedNames": spec["names"], "conditions": [], "storedVersions": [self.stored]},
        }

    def _version(self, name: str) -> Json:
        cls, options = self.versions[name]
        schema = whole_schema(cls)
        status: Json = {"status": {}} if "status" in schema["properties"] else {}
        out: Json = {
            "name": name,
            "served": options.served,
            "storage": name == self.stored,
            "schema": {"openAPIV3Schema": schema},
            "subresources": (status | ({"scale": cls.scale.declared()} if cls.scale else {})),
            "additionalPrinterColumns": [column.declared(schema) for column in cls.columns],
            "selectableFields": [{"jsonPath": path} for path in cls.selectable_fields],
        }
        if options.deprecated is not None:
            out |= {"deprecated": True} | ({"deprecationWarning": options.deprecated} if options.deprecated else {})
        return {key: value for key, value in out.items() if value not in ([], {})}

    def convert(self, obj: Json, api_version: str) -> Json:
        """Convert the object to another version via the storage version. Metadata is kept.

        Raises Invalid for an object that violates its schema, BadRequest if `convert_to` raises ValueError.
        """
        source, target = version_of(obj["apiVersion"]), version_of(api_version)
        if source == target:
            return obj
        try:
            with attributing_errors(self.custom_resource, source, obj):
                typed = self._converted(self.of(source).from_json(obj), source, target)
                return {**typed.to_json(), "apiVersion": api_version, "metadata": copy_of(obj["metadata"])}
        except ValueError as error:
            if source == self.stored:
                raise
            kind = self.options.kind
            raise BadRequest(f"{kind} in version {quote(source)} cannot be handled as a {kind}: {error}") from error

    def _converted(self, typed: Any, source: str, target: str) -> Any:
        if source != self.stored:
            typed = typed.convert_to(self.of(self.stored))
        return typed if target == self.stored else self.of(target).convert_from(typed)

    def change(self, version: str, obj: Json, hook: Callable[[Any], object]) -> None:
        """Let the hook change the object as a class instance. Fields that the hook does not change stay as sent.

        Raises Invalid if the hook fails on an object that violates its schema.
        """
        with attributing_errors(self.custom_resource, version, obj), changing(self.of(version), obj) as typed:
            hook(typed)


def whole_schema(cls: type[Resource]) -> Json:
    """Return the structural schema of the kind. Raises TypeError for annotations without a schema."""
    schema = schema_of(cls, names=vars(cls))
    properties = {name: child for name, child in schema["properties"].items() if name != "metadata"}
    return schema | {"properties": STRUCTURE | properties}


def _problems(definition: Json) -> Iterator[str]:
    from pilothouse.extensions.customresourcedefinitions.validation.definition import validate_definition

    # The approval rule for groups under k8s.io applies to CustomResourceDefinitions only.
    errors = validate_definition(definition)
    return (str(error) for error in errors if not error.field.startswith("metadata.annotations"))


@contextmanager
def attributing_errors(resource: CustomResource, version: str, obj: Json) -> Iterator[None]:
    """Run author functions on an object that is not validated yet.

    Author functions may rely on the declared types. If a function raises and the object violates its schema, Invalid is
    raised with the violations; otherwise the error of the function is raised.
    """
    try:
        yield
    except StatusError:
        raise
    except Exception:
        require_valid(resource, version, obj)
        raise


def require_valid(resource: CustomResource, version: str, obj: Json) -> None:
    """Raises Invalid with all violations of the schema. Rules that would block the event loop are left out: types and
    values are checked before."""
    errors: list[FieldError] = []
    with suppress(NeedsOffload):
        errors.extend(resource.schemas.of(version).validate(obj))
    if errors:
        raise Invalid.of(GroupKind(resource.group, resource.names.kind), name_of(obj), errors) from None
