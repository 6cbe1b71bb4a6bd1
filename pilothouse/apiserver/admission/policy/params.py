"""Policy parameters: objects that a binding names or selects. The policy is evaluated once per parameter."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.names import GroupVersionKind, GroupVersionResource
from pilothouse.machinery.objects import Json
from pilothouse.machinery.selectors.labels import Selector, from_label_selector
from pilothouse.machinery.selectors.requirement import InvalidSelector

NO_PARAMS: Sequence[Json | None] = (None,)


class ConfigurationError(Exception):
    """The policy or binding is misconfigured."""


@dataclass(frozen=True, slots=True)
class ParamResource:
    resource: GroupVersionResource
    namespaced: bool


class ParamReader(Protocol):
    """Reads objects of any resource, including kind and apiVersion. Raises StatusError only."""

    async def resource(self, kind: GroupVersionKind) -> ParamResource | None: ...

    async def get(self, resource: ParamResource, namespace: str, name: str) -> Json | None: ...

    async def list(self, resource: ParamResource, namespace: str, selector: Selector) -> list[Json]: ...


async def collect_params(
    reader: ParamReader, resource: ParamResource | None, reference: Json | None, namespace: str
) -> Sequence[Json | None]:
    """Return the parameters; `resource` is the resource of paramKind, if any. Raises ConfigurationError or
    StatusError."""
    if resource is None or reference is None:
        return NO_PARAMS
    params = await _read(reader, resource, reference, _namespace(resource, reference, namespace))
    if not params and reference.get("parameterNotFoundAction") == "Deny":
        raise ConfigurationError("no params found for policy binding with `Deny` parameterNotFoundAction")
    return params


def _namespace(resource: ParamResource, reference: Json, namespace: str) -> str:
    named: str = reference.get("namespace") or ""
    if not resource.namespaced:
        if named:
            raise ConfigurationError("paramRef.namespace must not be provided for a cluster-scoped `paramKind`")
        return ""
    if not named and not namespace:
        raise ConfigurationError(
            "cannot use namespaced paramRef in policy binding that matches cluster-scoped resources"
        )
    return named or namespace


async def _read(reader: ParamReader, resource: ParamResource, reference: Json, namespace: str) -> Sequence[Json]:
    name, selector = reference.get("name") or "", reference.get("selector")
    if name and selector is not None:
        raise ConfigurationError("paramRef.name and paramRef.selector are mutually exclusive")
    if name:
        found = await reader.get(resource, namespace, name)
        return [] if found is None else [found]
    if selector is None:
        raise ConfigurationError("one of name or selector must be provided")
    try:
        return await reader.list(resource, namespace, from_label_selector(selector))
    except InvalidSelector as error:
        raise ConfigurationError(str(error)) from None
