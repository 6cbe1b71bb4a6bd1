"""The configuration that every server starts with.

Mandatory objects keep the server alive: nobody may change what they say. Suggested ones are a good beginning that
operators may edit.
"""

from __future__ import annotations

from collections.abc import Sequence

from pilothouse.machinery.objects import Json

AUTO_UPDATE = "apf.kubernetes.io/autoupdate-spec"
GROUP = "flowcontrol.apiserver.k8s.io"
EXEMPT = "exempt"
CATCH_ALL = "catch-all"

_QUEUE_LENGTH = 50


def _level(shares: int, lendable: int, *, queues: int = 0, hand: int = 0) -> Json:
    """A limited priority level; without queues, what is over the limit is refused."""
    queuing = {"queues": queues, "handSize": hand, "queueLengthLimit": _QUEUE_LENGTH}
    response = {"type": "Queue", "queuing": queuing} if queues else {"type": "Reject"}
    limited = {"nominalConcurrencyShares": shares, "limitResponse": response, "lendablePercent": lendable}
    return {"type": "Limited", "limited": limited}


def _schema(level: str, precedence: int, distinguisher: str, *rules: Json) -> Json:
    spec: Json = {"priorityLevelConfiguration": {"name": level}, "matchingPrecedence": precedence}
    if distinguisher:
        spec["distinguisherMethod"] = {"type": distinguisher}
    return spec | {"rules": list(rules)}


def _group(name: str) -> Json:
    return {"kind": "Group", "group": {"name": name}}


def _user(name: str) -> Json:
    return {"kind": "User", "user": {"name": name}}


_ANY = ("*",)


def _resources(
    *resources: str, groups: Sequence[str] = _ANY, verbs: Sequence[str] = _ANY, cluster: bool = True
) -> Json:
    rule: Json = {"verbs": list(verbs), "apiGroups": list(groups), "resources": list(resources)}
    return rule | ({"clusterScope": True} if cluster else {}) | {"namespaces": ["*"]}


def _urls(*urls: str, verbs: Sequence[str] = _ANY) -> Json:
    return {"verbs": list(verbs), "nonResourceURLs": list(urls)}


def _everything(*subjects: Json) -> Json:
    return {"subjects": list(subjects), "resourceRules": [_resources("*")], "nonResourceRules": [_urls("*")]}


def _only_resources(subjects: list[Json], *rules: Json) -> Json:
    return {"subjects": subjects, "resourceRules": list(rules)}


_EVERYONE = (_group("system:unauthenticated"), _group("system:authenticated"))
_NODES = _group("system:nodes")
_CONTROLLER_MANAGER = _user("system:kube-controller-manager")
_SCHEDULER = _user("system:kube-scheduler")
_SYSTEM_ACCOUNTS: Json = {"kind": "ServiceAccount", "serviceAccount": {"namespace": "kube-system", "name": "*"}}
_LEASES = ("coordination.k8s.io",)
_PROBES = _urls("/healthz", "/readyz", "/livez", verbs=("get",))

MANDATORY_LEVELS: dict[str, Json] = {
    EXEMPT: {"type": "Exempt", "exempt": {"nominalConcurrencyShares": 0, "lendablePercent": 0}},
    CATCH_ALL: _level(5, 0),
}
SUGGESTED_LEVELS: dict[str, Json] = {
    "system": _level(30, 33, queues=64, hand=6),
    "node-high": _level(40, 25, queues=64, hand=6),
    "leader-election": _level(10, 0, queues=16, hand=4),
    "workload-high": _level(40, 50, queues=128, hand=6),
    "workload-low": _level(100, 90, queues=128, hand=6),
    "global-default": _level(20, 50, queues=128, hand=6),
}
MANDATORY_SCHEMAS: dict[str, Json] = {
    EXEMPT: _schema(EXEMPT, 1, "", _everything(_group("system:masters"))),
    CATCH_ALL: _schema(CATCH_ALL, 10000, "ByUser", _everything(*_EVERYONE)),
}
SUGGESTED_SCHEMAS: dict[str, Json] = {
    "system-nodes": _schema("system", 500, "ByUser", _everything(_NODES)),
    "system-node-high": _schema(
        "node-high",
        400,
        "ByUser",
        _only_resources(
            [_NODES],
            _resources("nodes", "nodes/status", groups=("",)),
            _resources("leases", groups=_LEASES, cluster=False),
        ),
    ),
    "probes": _schema(EXEMPT, 2, "", {"subjects": list(_EVERYONE), "nonResourceRules": [_PROBES]}),
    "system-leader-election": _schema(
        "leader-election",
        100,
        "ByUser",
        _only_resources(
            [_CONTROLLER_MANAGER, _SCHEDULER, _SYSTEM_ACCOUNTS],
            _resources("leases", groups=_LEASES, verbs=("get", "create", "update"), cluster=False),
        ),
    ),
    "kube-controller-manager": _schema("workload-high", 800, "ByNamespace", _everything(_CONTROLLER_MANAGER)),
    "kube-scheduler": _schema("workload-high", 800, "ByNamespace", _everything(_SCHEDULER)),
    "kube-system-service-accounts": _schema("workload-high", 900, "ByNamespace", _everything(_SYSTEM_ACCOUNTS)),
    "service-accounts": _schema("workload-low", 9000, "ByUser", _everything(_group("system:serviceaccounts"))),
    "global-default": _schema("global-default", 9900, "ByUser", _everything(*_EVERYONE)),
}
