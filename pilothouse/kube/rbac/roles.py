"""Roles and ClusterRoles."""

from __future__ import annotations

from pilothouse.apiserver.registry.resource import Names, Resource
from pilothouse.apiserver.registry.table import DEFAULT_COLUMNS
from pilothouse.kube.strategy import KubeStrategy
from pilothouse.kube.validation.selectors import selector_of
from pilothouse.machinery.field import Errors, Path, declared, invalid, required, root
from pilothouse.machinery.objects import Json
from pilothouse.machinery.validation.labels import validate_label_selector
from pilothouse.machinery.validation.names import name_is_path_segment

GROUP = "rbac.authorization.k8s.io"


class RoleStrategy(KubeStrategy):
    allow_create_on_update = True
    validate_update = KubeStrategy.validate_again

    def name_rule(self, name: str, prefix: bool) -> list[str]:
        return name_is_path_segment(name)

    def validate(self, obj: Json) -> Errors:
        yield from self.validate_metadata(obj)
        for position, rule in enumerate(obj.get("rules") or ()):
            yield from validate_policy_rule(rule, self.namespaced, root("rules").index(position))


class ClusterRoleStrategy(RoleStrategy):
    namespaced = False

    def validate(self, obj: Json) -> Errors:
        yield from super().validate(obj)
        rule = obj.get("aggregationRule")
        if rule is not None:
            path, selectors = root("aggregationRule", "clusterRoleSelectors"), rule.get("clusterRoleSelectors")
            if not selectors:
                yield required(path, "at least one clusterRoleSelector required if aggregationRule is non-nil")
            for position, selector in enumerate(selectors or ()):
                yield from validate_label_selector(selector, path.index(position))
                if selector_of(selector) is None:
                    yield invalid(path.index(position), None, "invalid label selector.")


def validate_policy_rule(rule: Json, namespaced: bool, path: Path) -> Errors:
    """A rule is about resources or about paths, never both."""
    if not rule.get("verbs"):
        yield declared(required(path.child("verbs"), "verbs must contain at least one value"))
    urls = rule.get("nonResourceURLs")
    if urls:
        non_resource_urls_path = path.child("nonResourceURLs")
        if namespaced:
            yield invalid(non_resource_urls_path, urls, "namespaced rules cannot apply to non-resource URLs")
        if rule.get("apiGroups") or rule.get("resources") or rule.get("resourceNames"):
            yield invalid(
                non_resource_urls_path, urls, "rules cannot apply to both regular resources and non-resource URLs"
            )
        return
    if not rule.get("apiGroups"):
        yield required(path.child("apiGroups"), "resource rules must supply at least one api group")
    if not rule.get("resources"):
        yield required(path.child("resources"), "resource rules must supply at least one resource")


ROLES = Resource(names=Names("roles", kind="Role"), strategy=RoleStrategy(), group=GROUP, columns=DEFAULT_COLUMNS)
CLUSTER_ROLES = Resource(
    names=Names("clusterroles", kind="ClusterRole"),
    strategy=ClusterRoleStrategy(),
    group=GROUP,
    columns=DEFAULT_COLUMNS,
)
