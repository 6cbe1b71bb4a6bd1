"""Objects of the built-in kinds, right and wrong, made from the compiled types."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Any

from pilothouse.client import GroupVersionKind, Json
from pilothouse.machinery.schema import types
from pilothouse.machinery.schema.nodes import NodeKind, Scalar, TypeNode

_TEXTS = [
    "",
    "a",
    "x-1",
    "A B",
    "0",
    "-1",
    "a/b",
    "a.b/c",
    "10.0.0.1",
    "::1",
    "fd00::/8",
    "10.0.0.0/8",
    "TCP",
    "Always",
    "*",
    "a" * 300,
    "é",
    "\x00",
    "100m",
    "1Gi",
    "1e400",
    "9" * 20,
    "http://x",
    "https://a.b:1/c",
    "true",
    "null",
    "In",
    "Exists",
    "ClusterIP",
    "RuntimeDefault",
    "%s",
    "{{",
    "$(A)",
    "../..",
    "/",
    "*/5 * * * *",
    "@every 1s",
    "apps/v1",
    "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
    "2024-01-01T00:00:00Z",
    "Pod",
    "object.x == 1",
    "[",
    "a,b",
    "a=b",
    "1-5",
    "0-",
    "0,2-4,99",
    "system:node",
    "50%",
    "150%",
]
_WHOLE = [0, 1, -1, 2, 80, 30_000, 65_535, 65_536, (1 << 31) - 1, -(1 << 31)]
_TIMES = ["2024-01-01T00:00:00Z", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59.999999Z", "2024-02-30T00:00:00Z", None]
_VALUES: dict[Scalar, list[Any]] = {
    Scalar.STRING: _TEXTS,
    Scalar.BOOL: [True, False],
    Scalar.INT32: _WHOLE,
    Scalar.INT64: [*_WHOLE, 1 << 31, (1 << 63) - 1, -(1 << 63)],
    Scalar.FLOAT64: [0, 1.5, -1, 1e300],
    Scalar.BYTES: ["", "YQ==", "////", "AAAA"],
    Scalar.TIME: _TIMES,
    Scalar.MICRO_TIME: [*_TIMES, "2024-01-01T00:00:00.123456Z"],
    Scalar.QUANTITY: ["1", "100m", "1Gi", "-1", "0", "1e30", "9" * 30, "1n", "", 5, "1e-400"],
    Scalar.INT_OR_STRING: [0, 1, -1, 80, "http", "50%", "101%", "-1%", "", "9" * 12],
}
_WRONG: list[Any] = [None, "", [], {}, 0, -1, "x", True, 1.5, [None], {"": None}, (1 << 63) - 1, 10**400]


@dataclass(frozen=True)
class Generator:
    random: Random

    def object(self, kind: GroupVersionKind, name: str) -> Json:
        found = types.of(kind)
        assert found is not None, kind
        depth, density = self.random.choice([2, 4, 6, 9]), self.random.choice([0.1, 0.3, 0.6, 0.9])
        return self.named(self.value(found.node, depth, density), kind, name)

    def part(self, kind: GroupVersionKind) -> Json:
        """For a patch."""
        found = types.of(kind)
        assert found is not None, kind
        made: Json = self.value(found.node, 4, 0.4)
        return made

    def named(self, obj: Any, kind: GroupVersionKind, name: str) -> Json:
        whole = obj if isinstance(obj, dict) else {}
        meta = whole.get("metadata")
        meta = meta if isinstance(meta, dict) and self.random.random() < 0.3 else {}
        return whole | {"apiVersion": str(kind.group_version), "kind": kind.kind, "metadata": meta | {"name": name}}

    def value(self, node: TypeNode, depth: int, density: float) -> Any:
        if node.scalar is not None:
            return self._scalar(node.scalar)
        if node.kind is NodeKind.ANY:
            return self.random.choice([{}, {"a": 1}, [], "x", None, {"apiVersion": "v1", "kind": "Pod"}, {"f:a": {}}])
        if depth <= 0:
            return [] if node.kind is NodeKind.LIST else {}
        if node.element is not None:
            items = [self.value(node.element, depth - 1, density) for _ in range(self.random.choice([0, 1, 1, 2, 3]))]
            return items if node.kind is NodeKind.LIST else {self.random.choice(_TEXTS): item for item in items}
        chosen = [each for each in node.fields.values() if self.random.random() < density]
        return {each.name: self.value(each.node, depth - 1, density) for each in chosen}

    def _scalar(self, scalar: Scalar) -> Any:
        if self.random.random() < 0.03:
            return self.random.choice(_WRONG[:-1])
        return self.random.choice(_VALUES.get(scalar, [True, {"type": "object"}, ["a"], [{"type": "string"}]]))

    def mutated(self, value: Any) -> Any:
        if self.random.random() < 0.08:
            return self.random.choice([*_WRONG[:-1], self.random.choice(_TEXTS)])
        if isinstance(value, dict):
            kept = {key: member for key, member in value.items() if self.random.random() > 0.02}
            return {key: self._maybe_mutated(member) for key, member in kept.items()}
        if isinstance(value, list):
            items = [self._maybe_mutated(item) for item in value]
            return items + items[:1] if self.random.random() < 0.1 else items
        return value

    def _maybe_mutated(self, value: Any) -> Any:
        return self.mutated(value) if self.random.random() < 0.5 else value
