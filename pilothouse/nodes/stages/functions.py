"""Template functions of stages: Go's builtins, kwok's functions, and the sprig functions of kwok's stages."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from typing import Any, Protocol

import orjson

from pilothouse.client.clock import micro_time
from pilothouse.machinery import release
from pilothouse.machinery.codec.yaml_emit import emit_yaml
from pilothouse.machinery.objects import Json
from pilothouse.nodes.behavior.model import HEALTHY
from pilothouse.nodes.fleet.node_object import wanted_conditions
from pilothouse.nodes.stages.pipeline import Functions

_DEEPEST_INDENT = 100
_VERBS = re.compile(r"%[sdvq]")


class Surroundings(Protocol):
    """Values available to templates."""

    node: str
    """Node of the rendered template."""

    def now(self) -> float: ...

    def node_addresses(self, node: str) -> list[str]: ...

    def pod_addresses(self, node: str, host_network: bool, namespace: str, name: str) -> list[str]: ...

    @property
    def kubelet_port(self) -> int:
        """The published kubelet port."""


def functions(around: Surroundings) -> Functions:
    """Return the functions by name."""

    def pod_ips(node: str, host_network: bool, uid: str = "", name: str = "", namespace: str = "") -> list[str]:
        return around.pod_addresses(node, host_network, namespace, name)

    start = around.now()
    return {
        **_PLAIN,
        "Now": lambda: micro_time(around.now()),
        "StartTime": lambda: micro_time(start),
        "NodeName": lambda: around.node,
        "NodeIP": lambda: _first(around.node_addresses(around.node)),
        "NodeIPs": lambda: around.node_addresses(around.node),
        "NodePort": lambda: around.kubelet_port,
        "NodeIPWith": lambda node: _first(around.node_addresses(node)),
        "NodeIPsWith": around.node_addresses,
        "PodIPWith": lambda *arguments: _first(pod_ips(*arguments)),
        "PodIPsWith": pod_ips,
    }


def _first(addresses: list[str]) -> str:
    return addresses[0] if addresses else ""


def _quote(value: Any) -> str:
    data = orjson.dumps(value).decode()
    return data if data.startswith('"') else orjson.dumps(data).decode()


def _yaml(value: Any, indent: int = 0) -> str:
    text, indent = emit_yaml(value).decode(), min(indent, _DEEPEST_INDENT)
    return ("\n" + text).replace("\n", "\n" + "  " * indent) if indent > 0 else text


def _or(first: Any, *others: Any) -> Any:
    for value in (first, *others):
        if value:
            return value
    return others[-1] if others else first


def _and(first: Any, *others: Any) -> Any:
    for value in (first, *others):
        if not value:
            return value
    return others[-1] if others else first


def _index(value: Any, *keys: Any) -> Any:
    for key in keys:
        if value is None:
            return None
        value = value.get(key) if isinstance(value, Mapping) else value[key]
    return value


def _dict(*pairs: Any) -> Json:
    return {str(pairs[position]): pairs[position + 1] for position in range(0, len(pairs) - 1, 2)}


def _printf(form: str, *arguments: Any) -> str:
    if _VERBS.sub("", form).replace("%%", "").count("%"):
        raise ValueError(f"{form!r} has more than %s, %d, %v and %q")
    return form.replace("%v", "%s").replace("%q", '"%s"') % arguments


def _node_conditions() -> list[Json]:
    return [
        {"type": condition.type, "status": condition.status, "reason": condition.reason, "message": condition.message}
        for condition in wanted_conditions(HEALTHY)
    ]


_PLAIN: dict[str, Callable[..., Any]] = {
    "Quote": _quote,
    "YAML": _yaml,
    "Version": lambda: release.current().git_version,
    "NodeConditions": _node_conditions,
    "or": _or,
    "and": _and,
    "not": operator.not_,
    "eq": lambda first, *others: any(first == other for other in others),
    "ne": operator.ne,
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
    "len": len,
    "index": _index,
    "printf": _printf,
    "dict": _dict,
    "list": lambda *items: list(items),
    "default": lambda fallback, value=None: value or fallback,
    "add": lambda *numbers: sum(map(int, numbers)),
    "quote": _quote,
}
