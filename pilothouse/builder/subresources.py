"""Subresources of authors.

@Flunder.subresource("approve")                         POST …/flunders/NAME/approve with a body of its own kind
async def approve(flunder: Flunder, body: Approval): …

@Flunder.subresource("approval", verb="update")         GET, PUT and PATCH of the object with other rules
def approval(flunder: Flunder, old: Flunder): …

@Flunder.subresource("log", verb="connect")             a stream, or any other response of the function
async def log(flunder: Flunder, request: Request): …
"""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import replace
from typing import Any, Literal

from pilothouse.apiserver.endpoints.groups import ServedResource
from pilothouse.apiserver.http import Request, Response
from pilothouse.apiserver.registry.metadata import begin_generation
from pilothouse.apiserver.registry.operations import RequestContext, Result, Validate, object_of, unchecked_update
from pilothouse.apiserver.registry.options import GetOptions, WriteOptions
from pilothouse.apiserver.registry.store import RegistryStore
from pilothouse.apiserver.registry.strategy import Strategy
from pilothouse.apiserver.registry.view import StatusStore
from pilothouse.builder.kind import STRUCTURE, attributing_errors, require_valid
from pilothouse.builder.resource import Resource
from pilothouse.builder.types.wire import changing, from_wire, schema_of, to_wire
from pilothouse.extensions.customresources.model import CustomResource
from pilothouse.extensions.customresources.strategy import content
from pilothouse.extensions.customresources.version_endpoints import CustomResourceDecoder
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.field import Errors
from pilothouse.machinery.objects import Json, metadata
from pilothouse.machinery.validation.immutable import semantically_equal

Verb = Literal["create", "update", "connect"]

_JSON, _TEXT = (b"content-type", b"application/json"), (b"content-type", b"text/plain; charset=utf-8")


@dataclass(frozen=True, slots=True)
class Subresource:
    name: str
    verb: Verb
    function: Callable[..., Any]
    methods: frozenset[str]
    """HTTP methods of a connect."""

    @property
    def body_type(self) -> Any:
        """Annotation of the second parameter; default: a dict."""
        _, *others = inspect.signature(self.function, eval_str=True).parameters.values()
        annotated = others[0].annotation if others else inspect.Parameter.empty
        return dict[str, Any] if annotated is inspect.Parameter.empty else annotated

    @property
    def body_kind(self) -> str:
        name = getattr(self.body_type, "__name__", "dict")
        return self.name.capitalize() if name == "dict" else name


def subresources_of(cls: type[Resource], main: ServedResource, registry: RegistryStore) -> Iterator[ServedResource]:
    """Yield the served subresources of the version that `main` serves."""
    for sub in cls.subresources.values():
        if sub.verb == "create":
            yield _served_create(cls, sub, main, registry)
        elif sub.verb == "update":
            storage = StatusStore(registry, _UpdateStrategy(registry.strategy, cls, sub.function, main))
            yield replace(main, storage=storage, subresource=sub.name)
        else:
            yield replace(main, storage=ConnectStore(cls, sub, main, registry), subresource=sub.name)


def body_definition(cls: type[Resource], sub: Subresource) -> CustomResource:
    """Return the definition of the request body's kind."""
    group, _, version = cls.api_version.rpartition("/")
    schema = schema_of(sub.body_type)
    schema = {**schema, "type": "object", "properties": {**STRUCTURE, **schema.get("properties", {})}}
    names = {"plural": sub.name, "kind": sub.body_kind}
    versions = [{"name": version, "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}]
    return CustomResource(
        {
            "metadata": {"name": f"{sub.name}.{group}"},
            "spec": {"group": group, "scope": "Namespaced", "names": names, "versions": versions},
            "status": {"acceptedNames": names},
        }
    )


def _served_create(
    cls: type[Resource], sub: Subresource, main: ServedResource, registry: RegistryStore
) -> ServedResource:
    body, version = body_definition(cls, sub), main.kind.version
    return replace(
        main,
        storage=CreateStore(cls, sub, main, registry, body),
        subresource=sub.name,
        kind=body.kind(version),
        decoder=CustomResourceDecoder(body, version),
        default=body.schemas.of(version).default,
        to_stored=None,
        from_stored=None,
        reset_fields=(),
    )


class _Store:
    """Base of the stores: finds the object of the request as a class instance."""

    def __init__(self, cls: type[Resource], sub: Subresource, main: ServedResource, registry: RegistryStore) -> None:
        self._cls = cls
        self._sub = sub
        self._main = main
        self._registry = registry

    async def _find(self, ctx: RequestContext, name: str) -> Resource:
        """Return the parent object. Raises NotFound."""
        stored = object_of(await self._registry.get(ctx, name, GetOptions()))
        return self._cls.from_json(_in_served_version(self._main, stored))


class CreateStore(_Store):
    """POST on a subresource. Changes to the object are written; the return value is the response."""

    def __init__(
        self,
        cls: type[Resource],
        sub: Subresource,
        main: ServedResource,
        registry: RegistryStore,
        body: CustomResource,
    ) -> None:
        super().__init__(cls, sub, main, registry)
        self._body = body
        self._body_type = sub.body_type

    async def create_named(
        self, ctx: RequestContext, name: str, obj: Json, *, options: WriteOptions, validate: Validate
    ) -> Result:
        require_valid(self._body, self._main.kind.version, obj)
        await validate(obj)
        body = from_wire(self._body_type, obj)
        answer: Any = None

        async def make(old: Json | None) -> Json:
            nonlocal answer
            assert old is not None, "the update never creates"
            obj = _in_served_version(self._main, old)
            with changing(self._cls, obj) as typed:
                answer = await _result(self._sub.function(typed, body))
            return self._main.to_stored(obj) if self._main.to_stored else obj

        await self._registry.with_strategy(_SchemaOnlyStrategy(self._registry.strategy)).update(
            ctx, name, unchecked_update(make, options)
        )
        metadata(obj).pop("managedFields", None)  # the body is not stored
        return obj if answer is None else {**obj, **to_wire(answer)}


class ConnectStore(_Store):
    """CONNECT on a subresource. The function returns bytes, text, JSON, a stream of bytes or text, or a Response."""

    @property
    def methods(self) -> frozenset[str]:
        return self._sub.methods

    async def connect(self, ctx: RequestContext, name: str, request: Request) -> Response:
        answer = await _result(self._sub.function(await self._find(ctx, name), request))
        if isinstance(answer, Response):
            return answer
        if isinstance(answer, bytes | str):
            return Response(200, answer.encode() if isinstance(answer, str) else answer, [_TEXT])
        if hasattr(answer, "__aiter__"):
            return Response(200, _bytes(answer), [_TEXT])
        import orjson

        return Response(200, orjson.dumps(to_wire(answer)), [_JSON])


async def _bytes(parts: AsyncIterator[bytes | str]) -> AsyncIterator[bytes]:
    async for part in parts:
        yield part.encode() if isinstance(part, str) else part


async def _result(value: Any) -> Any:
    return await value if inspect.isawaitable(value) else value


class _SchemaOnlyStrategy(Strategy):
    """Strategy that validates by the schema, without the author's other rules."""

    def __init__(self, rules: Strategy) -> None:
        self._rules = rules
        self.namespaced = rules.namespaced

    def prepare_for_update(self, obj: Json, old: Json) -> None:
        if not semantically_equal(content(obj), content(old)):
            begin_generation(obj, old)

    def validate_update(self, obj: Json, old: Json) -> Errors:
        return self._rules.validate_update(obj, old)

    def canonicalize(self, obj: Json) -> None:
        self._rules.canonicalize(obj)


class _UpdateStrategy(_SchemaOnlyStrategy):
    """Strategy of an update: the author's function decides which sent fields are used."""

    def __init__(
        self, rules: Strategy, cls: type[Resource], function: Callable[..., Any], main: ServedResource
    ) -> None:
        super().__init__(rules)
        self._cls = cls
        self._function = function
        self._main = main

    def prepare_for_update(self, obj: Json, old: Json) -> None:
        sent, before = _in_served_version(self._main, obj), self._cls.from_json(_in_served_version(self._main, old))
        assert isinstance(self._main.decoder, CustomResourceDecoder)
        resource, version = self._main.decoder.resource, self._main.kind.version
        with attributing_errors(resource, version, sent), changing(self._cls, sent) as typed:
            self._function(typed, before)
        if self._main.to_stored is not None:
            changed = self._main.to_stored(sent)
            obj.clear()
            obj.update(changed)
        super().prepare_for_update(obj, old)


def _in_served_version(main: ServedResource, stored: Json) -> Json:
    """Return a stored object in the version that `main` serves."""
    return stored if main.from_stored is None else main.from_stored(stored)
