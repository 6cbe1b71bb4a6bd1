"""RuntimeClasses: container runtimes with overhead and scheduling constraints."""

from __future__ import annotations

from collections.abc import Iterable

from pilothouse.apiserver.registry.resource import Names, Resource
from pilothouse.apiserver.registry.strategy import Strategy
from pilothouse.apiserver.registry.table import AGE, NAME, Column
from pilothouse.kube.core.pods.internal_form import internal_form
from pilothouse.kube.core.pods.validation.container_resources import validate_overhead
from pilothouse.kube.core.pods.validation.options import PodValidationOptions
from pilothouse.kube.validation.fields import follow
from pilothouse.kube.validation.selectors import DEPRECATED_NODE_LABELS
from pilothouse.kube.validation.tolerations import validate_tolerations
from pilothouse.machinery import version_rules
from pilothouse.machinery.field import Errors, declared, duplicate, required, root
from pilothouse.machinery.objects import Json, items, part, text
from pilothouse.machinery.validation.immutable import validate_declared_immutable
from pilothouse.machinery.validation.labels import validate_labels
from pilothouse.machinery.validation.names import name_is_dns_label

GROUP = "node.k8s.io"

_SCHEDULING = root("scheduling")


class RuntimeClassStrategy(Strategy):
    namespaced = False
    allow_create_on_update = True
    allow_unconditional_update = False
    repeats_warnings_on_update = True

    def validate(self, obj: Json) -> Errors:
        yield from self.validate_metadata(obj)
        if not obj.get("handler") and version_rules.holds("AlignedMessages"):
            yield declared(required(root("handler")))
        else:
            for error in follow(name_is_dns_label, text(obj, "handler"), root("handler")):
                yield declared(error, error.detail)
        if obj.get("overhead") is not None:
            overhead = part(obj, "overhead", "podFixed")
            yield from validate_overhead(overhead, root("overhead"), PodValidationOptions())
        scheduling = part(obj, "scheduling")
        yield from validate_labels(scheduling.get("nodeSelector"), _SCHEDULING.child("nodeSelector"))
        tolerations = items(scheduling, "tolerations")
        path = _SCHEDULING.child("tolerations")
        yield from validate_tolerations(tolerations, path)
        seen: set[tuple[str, ...]] = set()
        for position, toleration in enumerate(tolerations):
            key = tuple(text(toleration, field) for field in ("key", "operator", "value", "effect"))
            if key in seen:
                yield duplicate(path.index(position), internal_form("Toleration", toleration))
            seen.add(key)

    def validate_update(self, obj: Json, old: Json) -> Errors:
        yield from self.validate_again(obj, old)
        yield from validate_declared_immutable(text(obj, "handler"), text(old, "handler"), root("handler"))

    def warnings_on_create(self, obj: Json) -> Iterable[str]:
        for label in sorted(part(obj, "scheduling", "nodeSelector")):
            if message := DEPRECATED_NODE_LABELS.get(label):
                yield f"scheduling.nodeSelector: {message}"


RUNTIME_CLASSES = Resource(
    names=Names("runtimeclasses", kind="RuntimeClass"),
    strategy=RuntimeClassStrategy(),
    group=GROUP,
    columns=[NAME, Column("Handler", lambda obj: text(obj, "handler")), AGE],
)
