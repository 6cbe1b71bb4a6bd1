"""Which expressions of a policy do not fit the types of the objects that the policy is about."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

from pilothouse.client.discovery import DiscoveryClient
from pilothouse.client.rest.client import Client
from pilothouse.client.rest_mapper import NoMatch, RESTMapper
from pilothouse.controllers.validatingadmissionpolicystatus.schemas import SchemaResolver
from pilothouse.machinery.cel.admission import CompilationFailed, Declarations
from pilothouse.machinery.cel.declared import Declared
from pilothouse.machinery.cel.type_checking import KnownTypes, TypeCheckingCompiler
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.names import GroupVersion, GroupVersionKind, GroupVersionResource
from pilothouse.machinery.objects import Json

_MOST_TYPES = 10


@dataclass(frozen=True, slots=True)
class _Target:
    kind: GroupVersionKind
    declared: Declared | None


class TypeChecker:
    def __init__(self, client: Client) -> None:
        self._mapper = RESTMapper(DiscoveryClient(client))
        self._schemas = SchemaResolver(client)

    async def check(self, policy: Json) -> list[Json]:
        """What goes into the policy's status."""
        targets = [
            _Target(kind, declared)
            for kind in await self._kinds(policy)
            if (declared := await self._schemas.declared(kind)) is not None
        ]
        kind = policy["spec"].get("paramKind")
        params = await self._schemas.declared(_param_kind(kind)) if kind else None
        return await asyncio.to_thread(lambda: list(_warnings(policy["spec"], targets, params)))

    async def _kinds(self, policy: Json) -> list[GroupVersionKind]:
        """Sorted. Rules that are about anything say nothing about types."""
        found: set[GroupVersionKind] = set()
        for rule in (policy["spec"].get("matchConstraints") or {}).get("resourceRules") or ():
            count = 0
            for resource in _resources(rule):
                kind = await self._kind_of(resource)
                if kind is not None:
                    found.add(kind)
                    count += 1
                if count == _MOST_TYPES:
                    return _sorted(found)
        return _sorted(found)

    async def _kind_of(self, resource: GroupVersionResource) -> GroupVersionKind | None:
        try:
            mapping = await self._mapper.mapping_for(resource.resource, group=resource.group, version=resource.version)
        except NoMatch:
            return None
        return mapping.kind


def _sorted(kinds: set[GroupVersionKind]) -> list[GroupVersionKind]:
    return sorted(kinds, key=lambda kind: (kind.group, kind.version, kind.kind))


def _param_kind(kind: Json) -> GroupVersionKind:
    return GroupVersion.parse(kind.get("apiVersion") or "").kind(kind.get("kind") or "")


def _resources(rule: Json) -> Iterator[GroupVersionResource]:
    groups, versions = rule.get("apiGroups") or (), rule.get("apiVersions") or ()
    if any("*" in name for name in (*groups, *versions)):
        return
    resources = [name for name in rule.get("resources") or () if "*" not in name and "/" not in name]
    for group in sorted(groups):
        for version in sorted(versions):
            for resource in sorted(resources):
                yield GroupVersionResource(group, version, resource)


def _warnings(spec: Json, targets: list[_Target], params: Declared | None) -> Iterator[Json]:
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
