"""Keeps the bootstrap configuration in place: at start, and every minute.

missing                        → created
mandatory                      → always brought back to what it must say
suggested, still auto-updated  → follows the server's own idea of it
suggested, edited              → left alone, and marked so
auto-updated, but unknown      → a leftover of another version: deleted
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from contextlib import suppress
from copy import deepcopy

from pilothouse.apiserver.flowcontrol.mandatory import (
    EVERYONE,
    EXEMPT,
    MANDATORY_LEVELS,
    MANDATORY_SCHEMAS,
    all_requests_of,
    flow_schema_spec,
    group_subject,
)
from pilothouse.apiserver.registry.own_access import OwnAccess
from pilothouse.apiserver.registry.store import RegistryStore
from pilothouse.apiserver.server.hooks import HookContext
from pilothouse.kube.served import tracked_access
from pilothouse.machinery.errors import AlreadyExists, NotFound
from pilothouse.machinery.objects import Json, annotations_of, metadata, name_of
from pilothouse.machinery.status_error import StatusError
from pilothouse.machinery.validation.immutable import semantically_equal

AUTO_UPDATE = "apf.kubernetes.io/autoupdate-spec"
_PERIOD = 60.0
_TRUE = frozenset({"1", "t", "T", "true", "TRUE", "True"})
_FALSE = frozenset({"0", "f", "F", "false", "FALSE", "False"})
_FIELD_MANAGER = "api-priority-and-fairness-config-producer-v1"
_log = logging.getLogger(__name__)

_QUEUE_LENGTH = 50

_ANY = ("*",)

_NODES = group_subject("system:nodes")

_SYSTEM_ACCOUNTS: Json = {"kind": "ServiceAccount", "serviceAccount": {"namespace": "kube-system", "name": "*"}}

_LEASES = ("coordination.k8s.io",)


class BootstrapConfigurationEnsurer:
    def __init__(self, levels: RegistryStore, schemas: RegistryStore) -> None:
        self._levels = tracked_access(levels, manager=_FIELD_MANAGER)
        self._schemas = tracked_access(schemas, manager=_FIELD_MANAGER)

    async def start(self, context: HookContext) -> None:
        await self.ensure()
        context.spawn(self._keep(), name="priority-and-fairness-config-producer")

    async def _keep(self) -> None:
        while True:
            await asyncio.sleep(_PERIOD)
            try:
                await self.ensure()
            except StatusError as error:
                _log.error("APF bootstrap ensurer ran into error, will retry later: %s", error)

    async def ensure(self) -> None:
        await _ensure(self._levels, SUGGESTED_LEVELS, mandatory=False)
        await _ensure(self._schemas, SUGGESTED_SCHEMAS, mandatory=False)
        await _ensure(self._levels, MANDATORY_LEVELS, mandatory=True)
        await _ensure(self._schemas, MANDATORY_SCHEMAS, mandatory=True)
        await _remove_leftovers(self._schemas, {**SUGGESTED_SCHEMAS, **MANDATORY_SCHEMAS})
        await _remove_leftovers(self._levels, {**SUGGESTED_LEVELS, **MANDATORY_LEVELS})


async def _ensure(access: OwnAccess, specs: Mapping[str, Json], *, mandatory: bool) -> None:
    """Ensure the objects concurrently: the writes share a commit."""
    await asyncio.gather(*(_ensure_one(access, name, spec, mandatory=mandatory) for name, spec in specs.items()))


async def _ensure_one(access: OwnAccess, name: str, spec: Json, *, mandatory: bool) -> None:
    current = await access.get(name)
    # Another server was faster: the next round checks the object.
    with suppress(AlreadyExists, NotFound):
        if current is None:
            kind = access.registry.resource.kind
            await access.create(
                {
                    "kind": kind.kind,
                    "apiVersion": kind.api_version,
                    "metadata": {"name": name, "annotations": {AUTO_UPDATE: "true"}},
                    "spec": deepcopy(spec),
                }
            )
        elif revise(current, spec, mandatory=mandatory) is not None:
            await _revise_stored(access, current, spec, mandatory=mandatory)


async def _revise_stored(access: OwnAccess, observed: Json, spec: Json, *, mandatory: bool) -> None:
    def change(current: Json) -> None:
        revised = revise(current, spec, mandatory=mandatory)
        if revised is not None:
            current.update(revised)

    await access.update(observed, change)


async def _remove_leftovers(access: OwnAccess, wanted: Mapping[str, Json]) -> None:
    for obj in await access.list():
        if name_of(obj) not in wanted and _flag(annotations_of(obj).get(AUTO_UPDATE)):
            await access.delete(name_of(obj))


def revise(current: Json, spec: Json, *, mandatory: bool) -> Json | None:
    """Return the desired object, or None if the stored object is up to date."""
    follows = mandatory or _follows_server(current)
    marked = _flag(annotations_of(current).get(AUTO_UPDATE)) is follows
    differs = follows and not _has_spec(current, spec)
    if marked and not differs:
        return None
    revised = deepcopy(current)
    if differs:
        revised["spec"] = deepcopy(spec)
    if not marked:
        metadata(revised).setdefault("annotations", {})[AUTO_UPDATE] = "true" if follows else "false"
    return revised


def _follows_server(current: Json) -> bool:
    """Report whether the server updates the object: by annotation, otherwise while the object is unedited."""
    flag = _flag(annotations_of(current).get(AUTO_UPDATE))
    return metadata(current).get("generation") == 1 if flag is None else flag


def _has_spec(current: Json, spec: Json) -> bool:
    if name_of(current) == EXEMPT and "exempt" in spec:
        # The exempt level's own numbers belong to the operator.
        return "exempt" in current["spec"] and semantically_equal(current["spec"] | {"exempt": spec["exempt"]}, spec)
    return semantically_equal(current["spec"], spec)


def _flag(text: str | None) -> bool | None:
    return True if text in _TRUE else False if text in _FALSE else None


def _level(shares: int, lendable: int, *, queues: int, hand: int) -> Json:
    """Return the spec of a limited priority level."""
    queuing = {"queues": queues, "handSize": hand, "queueLengthLimit": _QUEUE_LENGTH}
    response = {"type": "Queue", "queuing": queuing}
    limited = {"nominalConcurrencyShares": shares, "limitResponse": response, "lendablePercent": lendable}
    return {"type": "Limited", "limited": limited}


def _user(name: str) -> Json:
    return {"kind": "User", "user": {"name": name}}


def _resources(
    *resources: str, groups: Sequence[str] = _ANY, verbs: Sequence[str] = _ANY, cluster: bool = True
) -> Json:
    rule: Json = {"verbs": list(verbs), "apiGroups": list(groups), "resources": list(resources)}
    return rule | ({"clusterScope": True} if cluster else {}) | {"namespaces": ["*"]}


def _urls(*urls: str, verbs: Sequence[str] = _ANY) -> Json:
    return {"verbs": list(verbs), "nonResourceURLs": list(urls)}


def _only_resources(subjects: list[Json], *rules: Json) -> Json:
    return {"subjects": subjects, "resourceRules": list(rules)}


_CONTROLLER_MANAGER = _user("system:kube-controller-manager")

_SCHEDULER = _user("system:kube-scheduler")

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
