"""The audit policy: the first matching rule determines the audit level."""

from __future__ import annotations

from enum import IntEnum
from pathlib import Path

from pilothouse.apiserver.authz.interface import Attributes
from pilothouse.machinery.codec.yaml import parse_yaml
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.field import Errors, invalid, not_supported, required, root
from pilothouse.machinery.field import Path as FieldPath
from pilothouse.machinery.objects import Json
from pilothouse.machinery.status_error import aggregate
from pilothouse.machinery.validation.names import name_is_dns_subdomain


class Level(IntEnum):
    """Audit levels in increasing order of detail."""

    NONE = 0
    METADATA = 1
    REQUEST = 2
    REQUEST_RESPONSE = 3


LEVELS = {
    "None": Level.NONE,
    "Metadata": Level.METADATA,
    "Request": Level.REQUEST,
    "RequestResponse": Level.REQUEST_RESPONSE,
}
STAGES = ("RequestReceived", "ResponseStarted", "ResponseComplete", "Panic")


@dataclass(frozen=True, slots=True)
class RequestAuditConfig:
    """The audit configuration of a request."""

    level: Level
    omit_stages: frozenset[str] = frozenset()
    omit_managed_fields: bool = False


NOT_AUDITED = RequestAuditConfig(Level.NONE)


class AuditPolicy:
    def __init__(self, policy: Json) -> None:
        """Compile a valid Policy."""
        everywhere = frozenset(policy.get("omitStages") or ())
        managed = bool(policy.get("omitManagedFields"))
        self._rules = [(_Rule(rule), _decision(rule, everywhere, managed)) for rule in policy.get("rules") or ()]

    def decide(self, attributes: Attributes) -> RequestAuditConfig:
        """Return the decision of the first matching rule; requests without a match are not audited."""
        return next((decision for rule, decision in self._rules if rule.matches(attributes)), NOT_AUDITED)


def read_policy(path: Path) -> AuditPolicy:
    """Read and validate the policy. Raises OSError, or ValueError with all errors."""
    try:
        policy = parse_yaml(path.read_bytes()).value
    except ValueError as error:
        raise ValueError(f"loading audit policy file: {path}: {error}") from None
    kind = (policy.get("apiVersion"), policy.get("kind")) if isinstance(policy, dict) else ()
    if kind != ("audit.k8s.io/v1", "Policy"):
        raise ValueError(f"loading audit policy file: {path} is no Policy of audit.k8s.io/v1")
    if not policy.get("rules"):
        raise ValueError(f"loading audit policy file: loaded illegal policy with 0 rules from file {path}")
    if problems := [str(error) for error in _problems(policy)]:
        raise ValueError(f"loading audit policy file: {aggregate(problems)}")
    return AuditPolicy(policy)


def _decision(rule: Json, omit_stages: frozenset[str], omit_managed_fields: bool) -> RequestAuditConfig:
    own = rule.get("omitManagedFields")
    return RequestAuditConfig(
        LEVELS[rule["level"]],
        omit_stages | frozenset(rule.get("omitStages") or ()),
        omit_managed_fields if own is None else bool(own),
    )


class _Rule:
    """A compiled rule; empty lists match everything."""

    def __init__(self, rule: Json) -> None:
        self._users = frozenset(rule.get("users") or ())
        self._groups = frozenset(rule.get("userGroups") or ())
        self._verbs = frozenset(rule.get("verbs") or ())
        self._namespaces = frozenset(rule.get("namespaces") or ())
        self._resources: list[Json] = list(rule.get("resources") or ())
        self._paths: list[str] = list(rule.get("nonResourceURLs") or ())

    def matches(self, attributes: Attributes) -> bool:
        if self._users and attributes.user.name not in self._users:
            return False
        if self._groups and self._groups.isdisjoint(attributes.user.groups):
            return False
        if self._verbs and attributes.verb not in self._verbs:
            return False
        if self._namespaces or self._resources:
            if not attributes.is_resource or (self._namespaces and attributes.namespace not in self._namespaces):
                return False
            return not self._resources or any(_matches_group(entry, attributes) for entry in self._resources)
        if self._paths:
            path = attributes.path
            return not attributes.is_resource and any(
                spec in ("*", path) or (spec.endswith("*") and path.startswith(spec.rstrip("*")))
                for spec in self._paths
            )
        return True


def _matches_group(entry: Json, attributes: Attributes) -> bool:
    if entry.get("group", "") not in (attributes.group, "*"):
        return False
    if not (resources := entry.get("resources")):
        return True
    if (names := entry.get("resourceNames")) and attributes.name not in names:
        return False
    resource, subresource = attributes.resource, attributes.subresource
    wanted = {"*", f"{resource}/{subresource}" if subresource else resource, f"{resource}/*"}
    if subresource:
        wanted.add(f"*/{subresource}")
    return not wanted.isdisjoint(resources)


def _problems(policy: Json) -> Errors:
    yield from _stage_problems(policy.get("omitStages") or [], root("omitStages"))
    for index, rule in enumerate(policy.get("rules") or ()):
        path = root("rules").index(index)
        level = rule.get("level") or ""
        if not level:
            yield required(path.child("level"), "")
        elif level not in LEVELS:
            yield not_supported(path.child("level"), level, LEVELS)
        yield from _path_problems(rule.get("nonResourceURLs") or [], path.child("nonResourceURLs"))
        for entry in rule.get("resources") or ():
            yield from _resource_problems(entry, path.child("resources"))
        yield from _stage_problems(rule.get("omitStages") or [], path.child("omitStages"))
        if rule.get("nonResourceURLs") and (rule.get("resources") or rule.get("namespaces")):
            reason = "rules cannot apply to both regular resources and non-resource URLs"
            yield invalid(path.child("nonResourceURLs"), rule["nonResourceURLs"], reason)


def _path_problems(urls: list[str], path: FieldPath) -> Errors:
    for index, url in enumerate(urls):
        if url == "*":
            continue
        if not url.startswith("/"):
            yield invalid(path.index(index), url, "non-resource URL rules must begin with a '/' character")
        if "*" in url[:-1]:
            reason = "non-resource URL wildcards '*' must be the final character of the rule"
            yield invalid(path.index(index), url, reason)


def _resource_problems(entry: Json, path: FieldPath) -> Errors:
    group = entry.get("group") or ""
    if group not in ("", "*") and (wrong := name_is_dns_subdomain(group)):
        yield invalid(path.child("group"), group, ",".join(wrong))
    if entry.get("resourceNames") and not entry.get("resources"):
        yield invalid(
            path.child("resourceNames"), entry["resourceNames"], "using resourceNames requires at least one resource"
        )


def _stage_problems(stages: list[str], path: FieldPath) -> Errors:
    for index, stage in enumerate(stages):
        if stage not in STAGES:
            yield invalid(path.index(index), stage, f"allowed stages are {','.join(STAGES)}")
