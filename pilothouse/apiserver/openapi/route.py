"""Routes for OpenAPI: parameters, body and responses of a method at a path. Both document versions are built from
routes. Query parameters are the fields of the verb's options kind, without nested objects.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import field
from typing import TYPE_CHECKING, TypeAlias

from pilothouse.machinery import release
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.names import GroupVersion, GroupVersionKind

if TYPE_CHECKING:
    from pilothouse.apiserver.openapi.definitions import OpenAPIDefinitions
from functools import cache

from pilothouse.machinery.schema import option_documentation
from pilothouse.machinery.wire_facts import facts_of, message_of

STRING = "string"
"""Replaces the name of a definition: a plain string, such as logs and proxied responses."""

Responses: TypeAlias = dict[int, str]
"""status code -> name of a definition"""


@dataclass(frozen=True, slots=True)
class Parameter:
    name: str
    location: str
    """`query` or `path`."""
    type: str
    description: str = ""

    @property
    def required(self) -> bool:
        return self.location == "path"


@dataclass(frozen=True, slots=True)
class Body:
    definition: str
    required: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """`operation` is the operation id without group and version: `readNamespacedConfigMap`."""

    method: str
    path: str
    operation: str
    description: str
    responses: Responses
    produces: tuple[str, ...]
    consumes: tuple[str, ...] = ("*/*",)
    parameters: tuple[Parameter, ...] = ()
    body: Body | None = None
    action: str = ""
    kind: GroupVersionKind | None = None


@dataclass(frozen=True, slots=True)
class Info:
    title: str = "Kubernetes"
    version: str = field(default_factory=lambda: release.current().name)


@dataclass(frozen=True, slots=True, eq=False)
class RouteContainer:
    """The routes of one v3 document, built lazily, and the schemas that they reference.

    `path` is the path of the document without slashes at its ends: `api/v1`, `apis/apps`, `version`.
    """

    path: str
    routes: Callable[[], Iterable[Route]]
    definitions: OpenAPIDefinitions | None = None
    """None for the packaged definitions only."""
    group_version: GroupVersion | None = None
    """Restricts the kinds listed for definitions that every group shares; None lists all."""
    info: Info = field(default_factory=Info)
    secured: bool = True
    """Whether the document describes authentication."""


_META = GroupVersion("meta.k8s.io", "v1")
GET_OPTIONS = _META.kind("GetOptions")
LIST_OPTIONS = _META.kind("ListOptions")
CREATE_OPTIONS = _META.kind("CreateOptions")
UPDATE_OPTIONS = _META.kind("UpdateOptions")
PATCH_OPTIONS = _META.kind("PatchOptions")
DELETE_OPTIONS = _META.kind("DeleteOptions")

PRETTY = Parameter("pretty", "query", "string", option_documentation.of("pretty"))
NAMESPACE, PATH = (
    Parameter(name, "path", "string", option_documentation.of(name, option_documentation.IN_PATH))
    for name in ("namespace", "path")
)

_JSON_TYPES = {"string": "string", "bool": "boolean", "int32": "integer", "int64": "integer", "double": "number"}


def name_parameter(kind: str) -> Parameter:
    return Parameter("name", "path", "string", f"name of the {kind}")


@cache
def parameters_of(options: GroupVersionKind) -> tuple[Parameter, ...]:
    """Return the query parameters of an options kind; empty if the kind is not built in."""
    message = message_of(options)
    if message is None:
        return ()
    facts = facts_of(message.package, message.message).values()
    return tuple(
        Parameter(fact.name, "query", _JSON_TYPES[fact.type], option_documentation.of(fact.name, options.kind))
        for fact in facts
        if fact.type in _JSON_TYPES
    )


def without(parameters: tuple[Parameter, ...], *names: str) -> tuple[Parameter, ...]:
    return tuple(parameter for parameter in parameters if parameter.name not in names)
