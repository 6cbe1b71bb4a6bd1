"""Rules: the operations and resources of a webhook or policy configuration."""

from __future__ import annotations

from collections.abc import Iterable

from pilothouse.apiserver.admission.interface import Attributes
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.names import GroupVersionResource
from pilothouse.machinery.objects import Json

_ANY = "*"
_NAMESPACES = GroupVersionResource("", "v1", "namespaces")


@dataclass(frozen=True, slots=True)
class RuleWithOperations:
    operations: frozenset[str]
    groups: frozenset[str]
    versions: frozenset[str]
    resources: tuple[tuple[str, str], ...]
    """(resource, subresource) pairs; either may be the wildcard, and an empty subresource means the resource itself."""
    scope: str = _ANY
    names: frozenset[str] = frozenset()
    """Object names; empty matches all names."""

    @classmethod
    def of(cls, rule: Json) -> RuleWithOperations:
        parts = (resource.partition("/") for resource in rule.get("resources") or ())
        return cls(
            operations=frozenset(rule.get("operations") or ()),
            groups=frozenset(rule.get("apiGroups") or ()),
            versions=frozenset(rule.get("apiVersions") or ()),
            resources=tuple((resource, subresource) for resource, _, subresource in parts),
            scope=rule.get("scope") or _ANY,
            names=frozenset(rule.get("resourceNames") or ()),
        )

    def matches(self, attributes: Attributes, resource: GroupVersionResource) -> bool:
        """Return whether the rule matches; `resource` is the request's resource or an equivalent."""
        return (
            _includes(self.operations, attributes.operation.value)
            and _includes(self.groups, resource.group)
            and _includes(self.versions, resource.version)
            and any(
                wanted in (_ANY, resource.resource) and wanted_subresource in (_ANY, attributes.subresource)
                for wanted, wanted_subresource in self.resources
            )
            and self._in_scope(attributes, resource)
            and (not self.names or attributes.name in self.names)
        )

    def _in_scope(self, attributes: Attributes, resource: GroupVersionResource) -> bool:
        """Return whether the scope matches. Namespaces are cluster-scoped, although their requests carry a
        namespace."""
        if self.scope == _ANY:
            return True
        namespaced = bool(attributes.namespace) and resource != _NAMESPACES
        return self.scope == ("Namespaced" if namespaced else "Cluster")


def rules_of(rules: Iterable[Json] | None) -> tuple[RuleWithOperations, ...]:
    return tuple(RuleWithOperations.of(rule) for rule in rules or ())


def _includes(items: frozenset[str], wanted: str) -> bool:
    return wanted in items or _ANY in items
