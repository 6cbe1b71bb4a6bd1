"""Minimal roles and bindings that allow exactly the requests of a Recording.

Permissions in one namespace become a Role, all others a ClusterRole. Permissions of every user are left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final, TypeAlias

from pilothouse.machinery.objects import Json

_RBAC: Final = "rbac.authorization.k8s.io"
_PUBLIC_PATHS: Final = re.compile(r"/(api|apis|openapi|healthz|livez|readyz|version)(/.*)?$")
"""Paths that system:discovery and system:public-info-viewer allow every authenticated user."""
_ACCOUNT: Final = re.compile(r"system:serviceaccount:([^:]+):([^:]+)$")
_NAMELESS: Final = frozenset({"", "*"})

_RuleTarget: TypeAlias = tuple[str, str, tuple[str, ...]]
"""(group, resource with subresource, object names); no names mean all objects."""


def roles_of(recording: Json) -> list[Json]:
    """Return a role and a binding for each user and namespace, cluster-wide roles first."""
    by_scope: dict[tuple[str, str], list[Json]] = {}
    for request in (recording.get("status") or {}).get("requests") or ():
        if not _PUBLIC_PATHS.match(request.get("nonResourceURL") or ""):
            by_scope.setdefault((request["user"], request.get("namespace") or ""), []).append(request)
    name = recording["metadata"]["name"]
    users = sorted({user for user, _ in by_scope})
    return [
        obj
        for (user, namespace), requests in sorted(by_scope.items())
        for obj in _role_and_binding(_name(name, user, users), user, namespace, requests)
    ]


def rules_of(recording: Json) -> list[Json]:
    """Return the rules that allow all requests of a recording, of every user and in every namespace."""
    requests = (recording.get("status") or {}).get("requests") or ()
    return [*_rules(one for one in requests if not _PUBLIC_PATHS.match(one.get("nonResourceURL") or ""))]


def _name(recording: str, user: str, users: list[str]) -> str:
    """Return the name of the roles; with several users, each user has separate roles."""
    if len(users) == 1:
        return recording
    return f"{recording}-{re.sub('[^a-z0-9.-]+', '-', user.lower()).strip('-')}"


def _role_and_binding(name: str, user: str, namespace: str, requests: list[Json]) -> list[Json]:
    kind = "Role" if namespace else "ClusterRole"
    metadata = {"name": name, "namespace": namespace} if namespace else {"name": name}
    role = {"apiVersion": f"{_RBAC}/v1", "kind": kind, "metadata": metadata, "rules": [*_rules(requests)]}
    binding = {
        "apiVersion": f"{_RBAC}/v1",
        "kind": f"{kind}Binding",
        "metadata": dict(metadata),
        "roleRef": {"apiGroup": _RBAC, "kind": kind, "name": name},
        "subjects": [_subject(user)],
    }
    return [role, binding]


def _subject(user: str) -> Json:
    if account := _ACCOUNT.match(user):
        return {"kind": "ServiceAccount", "namespace": account[1], "name": account[2]}
    return {"apiGroup": _RBAC, "kind": "User", "name": user}


def _rules(requests: Iterable[Json]) -> Iterator[Json]:
    """Yield a rule per resource and set of verbs; rules with names come last."""
    paths: dict[str, set[str]] = {}
    resources: dict[tuple[str, str, str], set[str]] = {}
    for request in requests:
        if path := request.get("nonResourceURL"):
            paths.setdefault(path, set()).add(request["verb"])
            continue
        behind = f"/{request['subresource']}" if request.get("subresource") else ""
        name = "" if (request.get("name") or "") in _NAMELESS else request["name"]
        place = (request.get("group") or "", request["resource"] + behind, name)
        resources.setdefault(place, set()).add(request["verb"])
    for (group, resource, names), verbs in sorted(_merge_names(resources).items()):
        rule: Json = {"apiGroups": [group], "resources": [resource]}
        yield rule | ({"resourceNames": list(names)} if names else {}) | {"verbs": list(verbs)}
    for path, methods in sorted(paths.items()):
        yield {"nonResourceURLs": [path], "verbs": sorted(methods)}


def _merge_names(resources: dict[tuple[str, str, str], set[str]]) -> dict[_RuleTarget, tuple[str, ...]]:
    """Merge names with the same verbs into one rule. Verbs that are allowed on all objects need no names."""
    named: dict[tuple[str, str, tuple[str, ...]], list[str]] = {}
    rules: dict[_RuleTarget, tuple[str, ...]] = {}
    for (group, resource, name), verbs in sorted(resources.items()):
        if not name:
            rules[group, resource, ()] = tuple(sorted(verbs))
            continue
        left = tuple(sorted(verbs - resources.get((group, resource, ""), set())))
        if left:
            named.setdefault((group, resource, left), []).append(name)
    return rules | {(group, resource, tuple(names)): verbs for (group, resource, verbs), names in named.items()}
