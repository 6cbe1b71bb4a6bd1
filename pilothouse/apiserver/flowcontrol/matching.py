"""Request classification: the first matching flow schema by precedence, then by name."""

from __future__ import annotations

from pilothouse.apiserver.authn.service_accounts import PREFIX
from pilothouse.apiserver.authn.user import User
from pilothouse.apiserver.request_info import RequestInfo
from pilothouse.machinery.objects import Json, name_of, uid_of


class FlowSchema:
    def __init__(self, schema: Json) -> None:
        spec = schema["spec"]
        self.name = name_of(schema)
        self.uid = uid_of(schema)
        self.level: str = spec["priorityLevelConfiguration"]["name"]
        self.order = (spec.get("matchingPrecedence") or 0, self.name)
        self._by: str = (spec.get("distinguisherMethod") or {}).get("type") or ""
        self._rules: list[Json] = spec.get("rules") or []

    def matches(self, user: User, info: RequestInfo) -> bool:
        return any(_matches_rule(rule, user, info) for rule in self._rules)

    def flow(self, user: User, info: RequestInfo) -> str:
        """Return the flow distinguisher: user, namespace, or an empty string."""
        if self._by == "ByUser":
            return user.name
        return info.namespace if self._by == "ByNamespace" else ""


def _matches_rule(rule: Json, user: User, info: RequestInfo) -> bool:
    if not any(_matches_subject(subject, user) for subject in rule.get("subjects") or ()):
        return False
    if info.is_resource:
        return any(_matches_resource(resources, info) for resources in rule.get("resourceRules") or ())
    return any(
        (
            _includes(paths.get("verbs"), info.verb)
            and any(
                url in ("*", info.path) or info.path.startswith(url.removesuffix("*").rstrip("/") + "/")
                for url in paths.get("nonResourceURLs") or ()
            )
        )
        for paths in rule.get("nonResourceRules") or ()
    )


def _matches_subject(subject: Json, user: User) -> bool:
    kind = subject.get("kind")
    if kind == "User":
        return (subject.get("user") or {}).get("name") in ("*", user.name)
    if kind == "Group":
        name = (subject.get("group") or {}).get("name")
        return name == "*" or name in user.groups
    account = subject.get("serviceAccount")
    if kind != "ServiceAccount" or account is None:
        return False
    prefix = f"{PREFIX}{account.get('namespace')}:"
    return user.name.startswith(prefix) if account.get("name") == "*" else user.name == prefix + str(account["name"])


def _matches_resource(rule: Json, info: RequestInfo) -> bool:
    resource = f"{info.resource}/{info.subresource}" if info.subresource else info.resource
    if not (
        _includes(rule.get("verbs"), info.verb)
        and _includes(rule.get("resources"), resource)
        and _includes(rule.get("apiGroups"), info.group)
    ):
        return False
    return _includes(rule.get("namespaces"), info.namespace) if info.namespace else bool(rule.get("clusterScope"))


def _includes(names: list[str] | None, name: str) -> bool:
    return names is not None and (names == ["*"] or name in names)
