"""A large definition, and parts that many of them share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from schema_shapes import Shape, choice, list_map, listing, number, resource, struct, table, text, unique

from pilothouse.client import Json

GROUP = "large.example.com"

CONDITIONS = list_map(
    struct(
        ["type", "status", "lastTransitionTime", "reason", "message"],
        type=text("Ready", maxLength=316),
        status=choice("True", "False", "Unknown"),
        reason=text("Done", minLength=1, maxLength=1024, pattern="^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$"),
        message=text("all is well", maxLength=32768),
        observedGeneration=number(1, format="int64", minimum=0),
        lastTransitionTime=text("2026-01-02T03:04:05Z", format="date-time"),
    ),
    "type",
    maxItems=8,
)
READY = {"name": "Ready", "type": "string", "jsonPath": '.status.conditions[?(@.type=="Ready")].status'}
AGE = {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}

SELECTOR = struct(
    matchLabels=table(text("value")),
    matchExpressions=listing(
        struct(["key", "operator"], key=text("app"), operator=text("In"), values=unique(text("web")))
    ),
)


@dataclass(frozen=True)
class Large:
    """A definition, and an object of it in which every field is set."""

    definition: Json
    spec: Json
    status: Json

    @property
    def plural(self) -> str:
        return str(self.definition["spec"]["names"]["plural"])

    @property
    def versions(self) -> list[str]:
        return [version["name"] for version in self.definition["spec"]["versions"]]

    def path(self, version: str = "") -> str:
        return f"/apis/{GROUP}/{version or self.versions[-1]}/namespaces/default/{self.plural}"

    def object(self, name: str = "a", *, version: str = "", **spec: Any) -> Json:
        """The stored version is the last."""
        kind = self.definition["spec"]["names"]["kind"]
        api_version = f"{GROUP}/{version or self.versions[-1]}"
        return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name}, "spec": self.spec | spec}


def large(kind: str, spec: Shape, status: Shape, *, versions: tuple[str, ...] = ("v1",), **said: Any) -> Large:
    plural = f"{kind.lower()}s"
    served = [
        {
            "name": name,
            "served": True,
            "storage": name == versions[-1],
            "schema": {"openAPIV3Schema": resource(spec, status)},
            "subresources": {"status": {}},
            **said,
        }
        for name in versions
    ]
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{GROUP}"},
        "spec": {
            "group": GROUP,
            "scope": "Namespaced",
            "names": {"plural": plural, "kind": kind, "categories": ["large"], "shortNames": [kind[:3].lower()]},
            "versions": served,
        },
    }
    return Large(definition, spec.example, status.example)
