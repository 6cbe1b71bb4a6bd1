"""The ABAC authorizer: allows requests that match a policy. It returns no opinion otherwise and never denies.

--authorization-policy-file has one JSON policy per line, versioned or in the old unversioned format.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from pilothouse.apiserver.authn.user import ALL_AUTHENTICATED, User
from pilothouse.apiserver.authz.interface import Answer, Attributes, Decision, NonResourceRule, ResourceRule, Rules
from pilothouse.machinery.codec.json import JsonError, parse_printed
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.names import NO_VERSION_OR_KIND
from pilothouse.machinery.objects import Json

ALL = "*"
_KIND = ("abac.authorization.kubernetes.io/v1beta1", "Policy")
_FIELDS = {
    "user": "user",
    "group": "group",
    "readonly": "readonly",
    "apiGroup": "api_group",
    "resource": "resource",
    "namespace": "namespace",
    "nonResourcePath": "non_resource_path",
}
_OLD_FIELDS = ("user", "group", "readonly", "resource", "namespace")
_LONGEST_LINE = 64 * 1024
_READ = ("get", "list", "watch")
_ALLOW = Answer(Decision.ALLOW)
_NO_OPINION = Answer(Decision.NO_OPINION, "No policy matched.")


class ABACAuthorizer:
    def __init__(self, policies: Sequence[ABACPolicy]) -> None:
        self._policies = tuple(policies)

    async def authorize(self, attributes: Attributes) -> Answer:
        return _ALLOW if any(policy.allows(attributes) for policy in self._policies) else _NO_OPINION

    async def rules_for(self, user: User, namespace: str) -> Rules:
        mine = [policy for policy in self._policies if policy.is_about(user) and policy.namespace in (ALL, namespace)]
        return Rules(
            resources=tuple(
                ResourceRule(item.verbs, (item.api_group,), (item.resource,)) for item in mine if item.resource
            ),
            paths=tuple(
                NonResourceRule(item.verbs, (item.non_resource_path,)) for item in mine if item.non_resource_path
            ),
        )


@dataclass(frozen=True, slots=True)
class ABACPolicy:
    """A policy line. `*` matches everything. The subject is a user, a group, or both; a policy without a subject
    matches nobody.
    """

    user: str = ""
    group: str = ""
    readonly: bool = False
    api_group: str = ""
    resource: str = ""
    namespace: str = ""
    non_resource_path: str = ""

    @property
    def verbs(self) -> tuple[str, ...]:
        return _READ if self.readonly else (ALL,)

    def is_about(self, user: User) -> bool:
        named = not self.user or self.user in (ALL, user.name)
        grouped = not self.group or self.group == ALL or self.group in user.groups
        return bool(self.user or self.group) and named and grouped

    def allows(self, attributes: Attributes) -> bool:
        if not self.is_about(attributes.user) or (self.readonly and attributes.verb not in _READ):
            return False
        return self._allows_resource(attributes) if attributes.is_resource else self._allows_path(attributes.path)

    def _allows_resource(self, attributes: Attributes) -> bool:
        pairs = (
            (self.namespace, attributes.namespace),
            (self.resource, attributes.resource),
            (self.api_group, attributes.group),
        )
        return all(own in (ALL, requested) for own, requested in pairs)

    def _allows_path(self, path: str) -> bool:
        own = self.non_resource_path
        return own in (ALL, path) or (own.endswith(ALL) and path.startswith(own.rstrip(ALL)))


def read_policies(path: Path) -> list[ABACPolicy]:
    """Raises ValueError, OSError."""
    result = []
    for number, line in enumerate(path.read_bytes().splitlines(), start=1):
        if len(line) >= _LONGEST_LINE:
            raise ValueError(f"error reading policy file {path}: bufio.Scanner: token too long")
        if not line.strip() or line.strip().startswith(b"#"):
            continue
        try:
            result.append(_policy(line))
        except ValueError as error:
            decoded = line.decode("utf-8", "replace")
            raise ValueError(f"error reading policy file {path}, line {number}: {decoded}: {error}") from None
    return result


def _policy(line: bytes) -> ABACPolicy:
    try:
        parsed = parse_printed(line).value
    except JsonError as error:
        raise ValueError(f"{NO_VERSION_OR_KIND}{error}") from None
    if not isinstance(parsed, dict):
        raise ValueError(f"{NO_VERSION_OR_KIND}json: cannot unmarshal into an object")
    if (parsed.get("apiVersion"), parsed.get("kind")) != _KIND:
        # The unversioned format: a missing field matches everything.
        policy = _read(parsed, _OLD_FIELDS)
        everybody = not policy.user and not policy.group
        return replace(
            _for_all(replace(policy, group=ALL) if everybody else policy),
            api_group=ALL,
            namespace=policy.namespace or ALL,
            resource=policy.resource or ALL,
            non_resource_path="" if policy.namespace or policy.resource else ALL,
        )
    return _for_all(_read(parsed.get("spec") or {}, tuple(_FIELDS)))


def _read(said: Any, fields: tuple[str, ...]) -> ABACPolicy:
    """Parse one line. Unknown fields are ignored."""
    if not isinstance(said, dict):
        raise ValueError("json: cannot unmarshal into Go struct field Policy.spec of type PolicySpec")
    values: Json = {name: said[name] for name in fields if said.get(name) is not None}
    for name, value in values.items():
        expected = bool if name == "readonly" else str
        if not isinstance(value, expected):
            kind = "bool" if expected is bool else "string"
            raise ValueError(f"json: cannot unmarshal into Go struct field .{name} of type {kind}")
    return ABACPolicy(**{_FIELDS[name]: value for name, value in values.items()})


def _for_all(policy: ABACPolicy) -> ABACPolicy:
    if ALL in (policy.user, policy.group):
        return replace(policy, user="", group=ALL_AUTHENTICATED)
    return policy
