"""Routes as OpenAPI shows them: what a method at a path takes and gives. Both document versions are made from these."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import field
from typing import TYPE_CHECKING, TypeAlias

from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.names import GroupVersion, GroupVersionKind
from pilothouse.machinery.release import MAJOR, MINOR

if TYPE_CHECKING:
    from pilothouse.apiserver.openapi.definitions import OpenAPIDefinitions

STRING = "string"
"""In place of a definition's name: a plain string, as logs and proxied answers are."""

Responses: TypeAlias = dict[int, str]
"""From status codes to the names of definitions."""


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
    """`operation` is the operation id before the group and version are put into it: `readNamespacedConfigMap`."""

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
    version: str = f"{MAJOR}.{MINOR}"


@dataclass(frozen=True, slots=True, eq=False)
class RouteContainer:
    """The routes of one v3 document, made when they are needed, and the schemas that they speak of.

    `path` is the document's, without slashes at its ends: `api/v1`, `apis/apps`, `version`.
    """

    path: str
    routes: Callable[[], Iterable[Route]]
    definitions: OpenAPIDefinitions | None = None
    """None for the packaged ones alone."""
    group_version: GroupVersion | None = None
    """Whose kinds alone are told of kinds that every group has; None to tell all."""
    info: Info = field(default_factory=Info)
    secured: bool = True
    """Whether the document says how clients authenticate."""
