"""validatingadmissionpolicy-status-controller: type checks each generation of a policy, and writes the warnings."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

from pilothouse.client.cache.handlers import ResourceEventHandlerFuncs
from pilothouse.client.controller import Controller, Requeue
from pilothouse.client.discovery import DiscoveryClient
from pilothouse.client.rest.client import Client
from pilothouse.client.rest_mapper import NoMatch, RESTMapper
from pilothouse.client.workqueue.rate_limiting import RateLimitingQueue
from pilothouse.controllers.context import ControllerContext
from pilothouse.machinery.cel.admission import CompilationFailed, Declarations
from pilothouse.machinery.cel.declared import Declared
from pilothouse.machinery.cel.openapi_types import OpenAPITypes
from pilothouse.machinery.cel.type_checking import KnownTypes, TypeCheckingCompiler
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.errors import NotFound
from pilothouse.machinery.names import GroupVersion, GroupVersionKind, GroupVersionResource
from pilothouse.machinery.objects import Json, items, metadata, name_of, number, part

NAME = "validatingadmissionpolicy-status"
POLICIES = GroupVersionResource("admissionregistration.k8s.io", "v1", "validatingadmissionpolicies")
_WORKERS = 5
_MOST_TYPES = 10
_KINDS = "x-kubernetes-group-version-kind"


async def run(context: ControllerContext) -> None:
    queue: RateLimitingQueue[str] = RateLimitingQueue(NAME, registry=context.registry, clock=context.clock)
    informer = context.informer(POLICIES)
    handler = ResourceEventHandlerFuncs(
        add=lambda policy: queue.add(name_of(policy)), update=lambda old, new: queue.add(name_of(new))
    )
    informer.add_event_handler(handler)
    checker, policies = TypeChecker(context.client), context.client.for_resource(POLICIES)

    async def sync(name: str) -> Requeue | None:
        policy = informer.indexer.get_by_key(name)
        if policy is None:
            return None
        if (metadata(policy).get("generation") or 0) <= number(policy, "status", "observedGeneration"):
            return None
        try:
            warnings = await checker.check(policy)
            await policies.apply(
                {
                    "apiVersion": str(POLICIES.group_version),
                    "kind": "ValidatingAdmissionPolicy",
                    "metadata": {"name": name_of(policy)},
                    "status": {
                        "observedGeneration": metadata(policy)["generation"],
                        "typeChecking": {"expressionWarnings": warnings} if warnings else {},
                    },
                },
                field_manager=NAME,
                force=True,
                subresource="status",
            )
        except NotFound:
            return None
        return None

    await Controller(NAME, sync, caches=(informer,), workers=_WORKERS, queue=queue, clock=context.clock).run()


@dataclass(frozen=True, slots=True)
class _CheckedKind:
    kind: GroupVersionKind
    declared: Declared | None


class TypeChecker:
    """Finds expressions of a policy that do not match the types of its resources."""

    def __init__(self, client: Client) -> None:
        self._mapper = RESTMapper(DiscoveryClient(client))
        self._schemas = _Schemas(client)

    async def check(self, policy: Json) -> list[Json]:
        """Return the warnings for the policy's status, in expression order."""
        targets = [
            _CheckedKind(kind, declared)
            for kind in await self._kinds(policy)
            if (declared := await self._schemas.declared(kind)) is not None
        ]
        params = None
        if kind := policy["spec"].get("paramKind"):
            group_version = GroupVersion.parse(kind.get("apiVersion") or "")
            params = await self._schemas.declared(group_version.kind(kind.get("kind") or ""))
        return await asyncio.to_thread(lambda: list(_warnings(policy["spec"], targets, params)))

    async def _kinds(self, policy: Json) -> list[GroupVersionKind]:
        """Return the sorted kinds matched by the policy; wildcard rules are ignored, because they determine no
        types."""
        kinds: set[GroupVersionKind] = set()
        for rule in items(policy["spec"], "matchConstraints", "resourceRules"):
            count = 0
            for resource in _resources(rule):
                kind = await self._kind_of(resource)
                if kind is not None:
                    kinds.add(kind)
                    count += 1
                if count == _MOST_TYPES:
                    return _sorted(kinds)
        return _sorted(kinds)

    async def _kind_of(self, resource: GroupVersionResource) -> GroupVersionKind | None:
        try:
            mapping = await self._mapper.mapping_for(resource.resource, group=resource.group, version=resource.version)
        except NoMatch:
            return None
        return mapping.kind


def _sorted(kinds: set[GroupVersionKind]) -> list[GroupVersionKind]:
    return sorted(kinds, key=lambda kind: (kind.group, kind.version, kind.kind))


def _resources(rule: Json) -> Iterator[GroupVersionResource]:
    groups, versions = rule.get("apiGroups") or (), rule.get("apiVersions") or ()
    if any("*" in name for name in (*groups, *versions)):
        return
    resources = [name for name in rule.get("resources") or () if "*" not in name and "/" not in name]
    for group in sorted(groups):
        for version in sorted(versions):
            for resource in sorted(resources):
                yield GroupVersionResource(group, version, resource)


def _warnings(spec: Json, targets: list[_CheckedKind], params: Declared | None) -> Iterator[Json]:
    known = [(target.kind, KnownTypes(target.declared, params)) for target in targets]
    for index, validation in enumerate(spec.get("validations") or ()):
        for field in ("expression", "messageExpression"):
            expression = validation.get(field) or ""
            found = ((kind, _problem(spec, expression, types)) for kind, types in known if expression)
            problems = [f"{kind}: {problem}\n" for kind, problem in found if problem]
            if problems:
                yield {"fieldRef": f"spec.validations[{index}].{field}", "warning": "\n".join(problems)}


def _problem(spec: Json, expression: str, types: KnownTypes) -> str:
    compiler, declarations = TypeCheckingCompiler(types), Declarations(params=spec.get("paramKind") is not None)
    for variable in spec.get("variables") or ():
        try:
            compiler.declare_variable(variable["name"], variable["expression"], declarations)
        except CompilationFailed:
            continue
    try:
        compiler.compile(expression, declarations)
    except CompilationFailed as error:
        return str(error)
    return ""


class _Schemas:
    """Types of kinds, from the server's OpenAPI documents."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def declared(self, kind: GroupVersionKind) -> Declared | None:
        """Return the type of a kind's objects; None without a schema."""
        try:
            version = kind.group_version
            document = await self._client.get_json(
                f"/openapi/v3/apis/{version}" if version.group else f"/openapi/v3/api/{version}"
            )
        except NotFound:
            return None
        return await asyncio.to_thread(_declared, document, kind)


def _declared(document: Json, kind: GroupVersionKind) -> Declared | None:
    schemas = part(document, "components", "schemas")
    wanted = {"group": kind.group, "version": kind.version, "kind": kind.kind}
    matching = (schema for schema in schemas.values() if wanted in (schema.get(_KINDS) or ()))
    schema = next(matching, None)
    return None if schema is None else OpenAPITypes(schemas).of(schema)
