"""The least roles and bindings by which all that a Recording has is allowed, and nothing else.

Rights in one namespace are a Role there, all others a ClusterRole. What everybody may is left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final, TypeAlias

from pilothouse.machinery.objects import Json, items

_RBAC: Final = "rbac.authorization.k8s.io"
_OF_EVERYBODY: Final = re.compile(r"/(api|apis|openapi|healthz|livez|readyz|version)(/.*)?$")
"""What system:discovery and system:public-info-viewer give to all whom the server knows."""
_ACCOUNT: Final = re.compile(r"system:serviceaccount:([^:]+):([^:]+)$")
_NAMELESS: Final = frozenset({"", "*"})

_Target: TypeAlias = tuple[str, str, tuple[str, ...]]
"""A group, a resource with its subresource, and the names of objects; none for all."""


def roles_of(recording: Json) -> list[Json]:
    """Return a role and a binding for each user and namespace, clusters first."""
    by_place: dict[tuple[str, str], list[Json]] = {}
    for asked in items(recording, "status", "requests"):
        if not _OF_EVERYBODY.match(asked.get("nonResourceURL") or ""):
            by_place.setdefault((asked["user"], asked.get("namespace") or ""), []).append(asked)
    name = recording["metadata"]["name"]
    users = sorted({user for user, _ in by_place})
    return [
        obj
        for (user, namespace), requests in sorted(by_place.items())
        for obj in _role_and_binding(_name(name, user, users), user, namespace, requests)
    ]


def _name(recording: str, user: str, users: list[str]) -> str:
    """One recording may have several users; then each has roles of their own."""
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
    """Yield a rule for each set of verbs of a resource, those with names behind those without."""
    paths: dict[str, set[str]] = {}
    resources: dict[tuple[str, str, str], set[str]] = {}
    for asked in requests:
        if path := asked.get("nonResourceURL"):
            paths.setdefault(path, set()).add(asked["verb"])
            continue
        behind = f"/{asked['subresource']}" if asked.get("subresource") else ""
        name = "" if (asked.get("name") or "") in _NAMELESS else asked["name"]
        place = (asked.get("group") or "", asked["resource"] + behind, name)
        resources.setdefault(place, set()).add(asked["verb"])
    for (group, resource, names), verbs in sorted(_gathered(resources).items()):
        rule: Json = {"apiGroups": [group], "resources": [resource]}
        yield rule | ({"resourceNames": list(names)} if names else {}) | {"verbs": list(verbs)}
    for path, methods in sorted(paths.items()):
        yield {"nonResourceURLs": [path], "verbs": sorted(methods)}


def _gathered(resources: dict[tuple[str, str, str], set[str]]) -> dict[_Target, tuple[str, ...]]:
    """Names with the same verbs stand in one rule; verbs that are allowed on all need no names."""
    named: dict[tuple[str, str, tuple[str, ...]], list[str]] = {}
    found: dict[_Target, tuple[str, ...]] = {}
    for (group, resource, name), verbs in sorted(resources.items()):
        if not name:
            found[group, resource, ()] = tuple(sorted(verbs))
            continue
        left = tuple(sorted(verbs - resources.get((group, resource, ""), set())))
        if left:
            named.setdefault((group, resource, left), []).append(name)
    return found | {(group, resource, tuple(names)): verbs for (group, resource, verbs), names in named.items()}
