"""Installation of declared kinds in a generic API server: registries, endpoints, OpenAPI definitions."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import cached_property, wraps
from types import SimpleNamespace
from typing import Any

from pilothouse.apiserver.endpoints.groups import APIGroup, APIVersion
from pilothouse.apiserver.endpoints.serializers.registry import TEXT
from pilothouse.apiserver.openapi.definitions import Definition
from pilothouse.apiserver.registry.store import RegistryStore
from pilothouse.apiserver.storage.interface import Store
from pilothouse.builder.function_backed.registry import FunctionBackedRegistry, function_backed_registry
from pilothouse.builder.kind import Kind
from pilothouse.builder.resource import Resource
from pilothouse.builder.strategy import AuthoredStatusStrategy, AuthoredStrategy
from pilothouse.builder.subresources import subresources_of
from pilothouse.extensions.customresources.model import CustomResource, Version
from pilothouse.extensions.customresources.strategy import CustomResourceStrategy
from pilothouse.extensions.customresources.version_endpoints import Rules, api_versions, declared
from pilothouse.extensions.openapi.definitions import CustomDefinitions
from pilothouse.machinery.names import GroupVersion
from pilothouse.machinery.objects import Json
from pilothouse.machinery.versions import preference


class ServedKind:
    """One kind with its store. Raises InvalidDeclaration."""

    def __init__(self, kind: Kind, store: Store, *, root: str) -> None:
        self.kind = kind
        self.resource = kind.custom_resource
        self.function_backed: FunctionBackedRegistry | None = None
        self.registry: RegistryStore
        if kind.options.storage is None:
            self.registry = RegistryStore(declared(self.resource), store, root=root, on_read=self._on_read())
        else:
            functions = typed_functions(kind, kind.options.storage)
            self.function_backed = function_backed_registry(declared(self.resource), store, functions, root=root)
            self.registry = self.function_backed.registry

    async def start(self) -> None:
        """Start the registry, and wait until its objects can be listed."""
        await self.registry.start()
        await self.registry.wait_ready()

    async def stop(self) -> None:
        await self.registry.stop()

    @cached_property
    def versions(self) -> list[APIVersion]:
        """Endpoints of each version, with the author's subresources."""
        versions = api_versions(
            self.resource, self.registry, self.kind.convert, _AuthoredRules(self.kind, self.function_backed)
        )
        for version in versions:
            cls = self.kind.of(version.group_version.version)
            version.resources.extend(subresources_of(cls, version.resources[0], self.registry))
        return versions

    def _on_read(self) -> Callable[[Json], None]:
        """Return the function that upgrades a stored object, which may have a former storage version."""
        resource, kind = self.resource, self.kind
        current = resource.kind(kind.stored).api_version

        def read(obj: Json) -> None:
            if obj["apiVersion"] != current and obj["apiVersion"].rpartition("/")[2] in kind.versions:
                converted = kind.convert(obj, current)
                obj.clear()
                obj.update(converted)
            schema = resource.schemas.of(kind.stored)
            schema.prune(obj, drop_invalid=True)
            schema.default(obj)

        return read


class _AuthoredRules(Rules):
    serializers = TEXT

    def __init__(self, kind: Kind, function_backed: FunctionBackedRegistry | None) -> None:
        self._kind = kind
        self._function_backed = function_backed

    def strategy(self, resource: CustomResource, version: Version) -> CustomResourceStrategy:
        return AuthoredStrategy(self._kind, resource, version)

    def status_strategy(self, resource: CustomResource, version: Version) -> CustomResourceStrategy:
        return AuthoredStatusStrategy(self._kind, resource, version)

    def default(self, resource: CustomResource, version: Version, obj: Json) -> None:
        super().default(resource, version, obj)
        if self._kind.of(version.name).default is not Resource.default:
            self._kind.change(version.name, obj, lambda typed: typed.default())

    def storage(self, registry: RegistryStore) -> object:
        return registry if self._function_backed is None else self._function_backed.storage_of(registry)

    def warning(self, resource: CustomResource, version: Version) -> str:
        return resource.deprecation_warning(version)


def api_group(group: str, served: Sequence[ServedKind]) -> APIGroup:
    """Return the API group with all kinds, preferred version first."""
    versions: dict[str, APIVersion] = {}
    for kind in served:
        for version in kind.versions:
            name = version.group_version.version
            versions.setdefault(name, APIVersion(version.group_version)).resources.extend(version.resources)
    return APIGroup(group, [versions[name] for name in sorted(versions, key=preference)])


class AuthoredDefinitions:
    """OpenAPI definitions of the kinds, in addition to the packaged definitions."""

    def __init__(self, group: str, served: Iterable[ServedKind]) -> None:
        by_version: dict[str, list[CustomResource]] = {}
        for kind in served:
            for name in kind.kind.versions:
                by_version.setdefault(name, []).append(kind.resource)
        self._parts = [
            CustomDefinitions(lambda resources=resources: resources, GroupVersion(group, name))  # type: ignore[misc]
            for name, resources in by_version.items()
        ]

    def v2(self, name: str) -> Definition:
        return self._find(name, lambda part: part.v2(name))

    def v3(self, name: str) -> Definition:
        return self._find(name, lambda part: part.v3(name))

    def _find(self, name: str, look: Callable[[CustomDefinitions], Definition]) -> Definition:
        for part in self._parts:
            try:
                return look(part)
            except KeyError:
                continue
        raise KeyError(name)


_VERBS = ("get", "list", "create", "update", "delete", "watch")
_TAKES_OBJECT = ("create", "update")


def typed_functions(kind: Kind, author: object) -> object:
    """Wrap the author's functions, which take and return class instances, as functions on JSON."""
    cls = kind.of(kind.stored)
    functions = {verb: getattr(author, verb) for verb in _VERBS if hasattr(author, verb)}
    return SimpleNamespace(**{verb: _on_json(cls, verb, function) for verb, function in functions.items()})


def _on_json(cls: type[Resource], verb: str, function: Callable[..., Any]) -> Callable[..., Any]:
    if verb == "watch":
        return function

    @wraps(function)
    async def call(*arguments: Any) -> Any:
        sent = (cls.from_json(arguments[0]),) if verb in _TAKES_OBJECT else arguments
        answer: Awaitable[Any] = function(*sent)
        return _json(await answer)

    return call


def _json(answer: Any) -> Json | list[Json] | None:
    if isinstance(answer, Resource):
        return answer.to_json()
    return [_json(item) for item in answer] if isinstance(answer, list | tuple) else answer  # type: ignore[misc]
