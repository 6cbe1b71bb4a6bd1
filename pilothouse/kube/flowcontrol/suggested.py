"""The suggested flow schemas and priority levels: every server starts with them, and operators may edit them."""

from __future__ import annotations

from collections.abc import Sequence

from pilothouse.apiserver.flowcontrol.mandatory import (
    EVERYONE,
    EXEMPT,
    all_requests_of,
    flow_schema_spec,
    group_subject,
)
from pilothouse.machinery.objects import Json

_QUEUE_LENGTH = 50


def _level(shares: int, lendable: int, *, queues: int, hand: int) -> Json:
    """Return the spec of a limited priority level."""
    queuing = {"queues": queues, "handSize": hand, "queueLengthLimit": _QUEUE_LENGTH}
    response = {"type": "Queue", "queuing": queuing}
    limited = {"nominalConcurrencyShares": shares, "limitResponse": response, "lendablePercent": lendable}
    return {"type": "Limited", "limited": limited}


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


def _only_resources(subjects: list[Json], *rules: Json) -> Json:
    return {"subjects": subjects, "resourceRules": list(rules)}


_NODES = group_subject("system:nodes")
_CONTROLLER_MANAGER = _user("system:kube-controller-manager")
_SCHEDULER = _user("system:kube-scheduler")
_SYSTEM_ACCOUNTS: Json = {"kind": "ServiceAccount", "serviceAccount": {"namespace": "kube-system", "name": "*"}}
_LEASES = ("coordination.k8s.io",)
_PROBES = _urls("/healthz", "/readyz", "/livez", verbs=("get",))

SUGGESTED_LEVELS: dict[str, Json] = {
    "system": _level(30, 33, queues=64, hand=6),
    "node-high": _level(40, 25, queues=64, hand=6),
    "leader-election": _level(10, 0, queues=16, hand=4),
    "workload-high": _level(40, 50, queues=128, hand=6),
    "workload-low": _level(100, 90, queues=128, hand=6),
    "global-default": _level(20, 50, queues=128, hand=6),
}
SUGGESTED_SCHEMAS: dict[str, Json] = {
    "system-nodes": flow_schema_spec("system", 500, "ByUser", all_requests_of(_NODES)),
    "system-node-high": flow_schema_spec(
        "node-high",
        400,
        "ByUser",
        _only_resources(
            [_NODES],
            _resources("nodes", "nodes/status", groups=("",)),
            _resources("leases", groups=_LEASES, cluster=False),
        ),
    ),
    "probes": flow_schema_spec(EXEMPT, 2, "", {"subjects": list(EVERYONE), "nonResourceRules": [_PROBES]}),
    "system-leader-election": flow_schema_spec(
        "leader-election",
        100,
        "ByUser",
        _only_resources(
            [_CONTROLLER_MANAGER, _SCHEDULER, _SYSTEM_ACCOUNTS],
            _resources("leases", groups=_LEASES, verbs=("get", "create", "update"), cluster=False),
        ),
    ),
    "kube-controller-manager": flow_schema_spec(
        "workload-high", 800, "ByNamespace", all_requests_of(_CONTROLLER_MANAGER)
    ),
    "kube-scheduler": flow_schema_spec("workload-high", 800, "ByNamespace", all_requests_of(_SCHEDULER)),
    "kube-system-service-accounts": flow_schema_spec(
        "workload-high", 900, "ByNamespace", all_requests_of(_SYSTEM_ACCOUNTS)
    ),
    "service-accounts": flow_schema_spec(
        "workload-low", 9000, "ByUser", all_requests_of(group_subject("system:serviceaccounts"))
    ),
    "global-default": flow_schema_spec("global-default", 9900, "ByUser", all_requests_of(*EVERYONE)),
}
