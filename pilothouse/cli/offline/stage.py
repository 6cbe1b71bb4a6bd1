"""The stage: objects that must exist before other objects can be checked, created in the temporary store.

No controller runs: the stage also creates what controllers would add.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Sequence
from operator import itemgetter
from typing import Any
from urllib.parse import quote

import orjson

from pilothouse.cli.offline.documents import Finding, Severity
from pilothouse.cli.offline.manifests import Manifest
from pilothouse.cli.offline.passes import STRICT, problems_of, try_object
from pilothouse.cli.offline.server import CallAnswer, KindPath, KindPaths, OfflineServer
from pilothouse.machinery.event_loop import yield_to_loop
from pilothouse.machinery.objects import Json

_APPLY = b"application/apply-patch+yaml"
POLICIES = tuple(
    f"/apis/admissionregistration.k8s.io/v1/{how}admission{what}"
    for how in ("validating", "mutating")
    for what in ("policies", "policybindings")
)
_CACHED_RESOURCES = (
    *POLICIES,
    *(
        f"/apis/rbac.authorization.k8s.io/v1/{kind}{what}"
        for kind in ("", "cluster")
        for what in ("roles", "rolebindings")
    ),
    *(f"/api/v1/{what}" for what in ("namespaces", "serviceaccounts", "limitranges", "resourcequotas", "configmaps")),
    "/apis/scheduling.k8s.io/v1/priorityclasses",
    "/apis/storage.k8s.io/v1/storageclasses",
    "/apis/node.k8s.io/v1/runtimeclasses",
    "/apis/networking.k8s.io/v1/ingressclasses",
)
"""Resources that admission and the authorizer read from caches."""
_POLL_INTERVAL, _TIMEOUT = 0.002, 10.0


class Stage:
    """Creates the prerequisites. `problems` has the findings for each created object; rejected objects are absent."""

    def __init__(self, server: OfflineServer, namespace: str, *, default_account: Json | None = None) -> None:
        """`namespace`: for objects that name none. `default_account`: fields of the default service accounts."""
        self._call = server.admin
        self._namespace = namespace
        self._account = default_account or {}
        self.paths = KindPaths()
        self.problems: dict[Manifest, list[Finding]] = {}
        self.with_quota: set[str] = set()
        self.refused_namespaces: dict[str, str] = {}
        """Namespace -> reason why the server rejects the namespace."""

    async def set_up(
        self, given: Sequence[Manifest], manifests: Sequence[Manifest] = (), named: Sequence[Manifest] = ()
    ) -> None:
        """Create the given objects, the manifests that affect others, and the namespaces of all, including `named`."""
        await self.paths.discover(self._call)
        staged = creation_order(given, manifests)
        for is_early, manifest in staged:
            if is_early:
                self.problems[manifest] = await self._write(manifest)
        own = {manifest.name for manifest in (*given, *manifests) if manifest.group_kind == NAMESPACE}
        await self._make_namespaces(own, [*given, *manifests, *named])
        for is_early, manifest in staged:
            if not is_early:
                self.problems[manifest] = await self._write(manifest)
        await self.settle()

    def locate(self, manifest: Manifest, *, beside: str = "") -> tuple[KindPath, str] | None:
        """Return the REST path and the namespace of the manifest; None for an unknown kind.

        A manifest without a namespace gets the namespace `beside`, if set.
        """
        path = self.paths.get(manifest.obj)
        if path is None:
            return None
        return path, (manifest.namespace or beside or self._namespace) if path.namespaced else ""

    async def _write(self, manifest: Manifest) -> list[Finding]:
        place = self.locate(manifest)
        if place is None:
            return [unknown_kind(manifest, self.paths)]
        path, namespace = place
        if manifest.group_kind == DEFINITION:
            return await self._define(manifest, path)
        tried = await try_object(manifest, lambda obj, query: self.create(obj, path, namespace, query))
        if tried.answer.ok and manifest.group_kind == QUOTA:
            await self._begin_counting(tried.answer.body, path, namespace)
        return tried.findings

    async def create(self, obj: Json, path: KindPath, namespace: str, query: str = STRICT) -> CallAnswer:
        """Create the object, or apply it if it exists, as `kubectl apply` does."""
        data = orjson.dumps(obj)
        answer = await self._call("POST", path.collection(namespace), query, data)
        if answer.already_exists:
            item = path.item(namespace, obj["metadata"]["name"])
            answer = await self._call("PATCH", item, f"{query}&force=true", data, media=_APPLY)
        return answer

    async def _define(self, manifest: Manifest, path: KindPath) -> list[Finding]:
        """Create the definition without its conversion webhook, so that objects of every version can be checked."""

        async def dry_run(obj: Json, query: str) -> CallAnswer:
            return await self._call("POST", path.collection(""), f"{query}&dryRun=All", orjson.dumps(obj))

        tried = await try_object(manifest, dry_run)
        if not tried.answer.ok:
            return tried.findings
        spec = {**tried.obj["spec"], "conversion": {"strategy": "None"}}
        answer = await self.create({**tried.obj, "spec": spec}, path, "", tried.query)
        if not answer.ok:
            return [*tried.findings, *problems_of(manifest, answer)]
        self.paths.add_definition(answer.body)
        return [*tried.findings, *await self._until_served(manifest, answer.body)]

    async def _until_served(self, manifest: Manifest, definition: Json) -> list[Finding]:
        """Wait until the kind is served. Return the server's reason if it is never served."""
        version = next((version for version in definition["spec"]["versions"] if version["served"]), None)
        if version is None:
            return []
        obj = {
            "apiVersion": f"{definition['spec']['group']}/{version['name']}",
            "kind": definition["spec"]["names"]["kind"],
        }
        path = self.paths.get(obj)
        assert path is not None
        deadline = asyncio.get_running_loop().time() + _TIMEOUT
        while not (await self._call("GET", path.collection(self._namespace), "limit=1")).ok:
            item = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{definition['metadata']['name']}"
            conditions = (await self._call("GET", item)).body.get("status", {}).get("conditions") or ()
            refused = [c for c in conditions if c["type"] == "NamesAccepted" and c["status"] == "False"]
            if refused or asyncio.get_running_loop().time() > deadline:
                reason = refused[0]["message"] if refused else "the definition is not established"
                return [manifest.finding(Severity.ERROR, reason, path="spec.names")]
            await asyncio.sleep(_POLL_INTERVAL)
        return []

    async def _begin_counting(self, quota: Json, path: KindPath, namespace: str) -> None:
        """Initialize the status of a quota. Admission alone updates the usage, because no controller runs."""
        hard = quota.get("spec", {}).get("hard") or {}
        quota["status"] = {"hard": hard, "used": dict.fromkeys(hard, "0")}
        await self._call("PUT", f"{path.item(namespace, quota['metadata']['name'])}/status", "", orjson.dumps(quota))
        self.with_quota.add(namespace)

    async def _make_namespaces(self, own: Collection[str], manifests: Iterable[Manifest]) -> None:
        """Create missing namespaces, each with a default service account. Namespaces in `own` have been reported
        already.
        """
        named = {place[1] for manifest in manifests if (place := self.locate(manifest)) and place[1]}
        for name in sorted({self._namespace, *named, *own}):
            answer = await self._make("/api/v1/namespaces", {"metadata": {"name": name}})
            if not answer.ok and not answer.already_exists and name not in own:
                self.refused_namespaces[name] = answer.body.get("message", "")
            account = {"metadata": {"name": "default"}, **self._account}
            await self._make(f"/api/v1/namespaces/{quote(name)}/serviceaccounts", account)

    async def _make(self, collection: str, obj: Json) -> CallAnswer:
        return await self._call("POST", collection, "", orjson.dumps(obj))

    async def settle(self, resources: Sequence[str] = _CACHED_RESOURCES) -> None:
        """Wait until the caches have every write: a list waits for the watch cache, and handlers run in the next loop
        turns.
        """
        for path in resources:
            await self._call("GET", path, "limit=1")
        for _ in range(3):
            await yield_to_loop()


def unknown_kind(manifest: Manifest, paths: KindPaths) -> Finding:
    message = f'no matches for kind "{manifest.kind}" in version "{manifest.obj["apiVersion"]}"'
    versions = paths.versions_of(manifest.kind)
    hint = f"it is served as {', '.join(versions)}" if versions else "name its CustomResourceDefinition with --crds"
    return manifest.finding(Severity.ERROR, message, path="kind", hint=hint)


DEFINITION = ("apiextensions.k8s.io", "CustomResourceDefinition")
NAMESPACE = ("", "Namespace")
QUOTA = ("", "ResourceQuota")
_PLACE: dict[tuple[str, str], int] = {
    DEFINITION: 1,
    NAMESPACE: 2,
    **{("", kind): 3 for kind in ("ServiceAccount", "LimitRange")},
    **{("rbac.authorization.k8s.io", kind): 3 for kind in ("ClusterRole", "Role")},
    **{("rbac.authorization.k8s.io", kind): 4 for kind in ("ClusterRoleBinding", "RoleBinding")},
    ("scheduling.k8s.io", "PriorityClass"): 3,
    ("storage.k8s.io", "StorageClass"): 3,
    ("node.k8s.io", "RuntimeClass"): 3,
    ("networking.k8s.io", "IngressClass"): 3,
    QUOTA: 5,
    **{("admissionregistration.k8s.io", f"{how}AdmissionPolicy"): 7 for how in ("Validating", "Mutating")},
    **{("admissionregistration.k8s.io", f"{how}AdmissionPolicyBinding"): 8 for how in ("Validating", "Mutating")},
}
_OTHERS = 6
_CALLS_OUT = frozenset(
    {
        ("admissionregistration.k8s.io", "ValidatingWebhookConfiguration"),
        ("admissionregistration.k8s.io", "MutatingWebhookConfiguration"),
        ("apiregistration.k8s.io", "APIService"),
    }
)
"""Kinds that are never created here: the server would call webhooks or servers that do not exist."""


def creation_order(given: Collection[Manifest], manifests: Collection[Manifest]) -> list[tuple[bool, Manifest]]:
    """Sort the given objects and the manifests that affect others.

    Return (is_early, manifest); early objects are created before the namespaces of the rest.
    """
    parameters = _parameter_kinds([*given, *manifests])
    placed = [(_place(manifest, parameters), manifest) for manifest in manifests]
    taken = [manifest for manifest in given if manifest.group_kind not in _CALLS_OUT]
    everything = [(_place(manifest, parameters) or _OTHERS, manifest) for manifest in taken]
    everything += [(place, manifest) for place, manifest in placed if place]
    everything.sort(key=itemgetter(0))
    return [(place <= _PLACE[NAMESPACE], manifest) for place, manifest in everything]


def _place(manifest: Manifest, parameters: set[tuple[str, str]]) -> int:
    """Return the position; 0 for an object that does not affect others."""
    return _PLACE.get(manifest.group_kind) or (_OTHERS if _full_kind(manifest.obj) in parameters else 0)


def _full_kind(obj: Json) -> tuple[str, str]:
    return str(obj.get("apiVersion")), str(obj.get("kind"))


def _parameter_kinds(manifests: Iterable[Manifest]) -> set[tuple[str, str]]:
    """Return (apiVersion, kind) of the parameters of policies."""
    specs: list[Any] = [manifest.obj.get("spec") for manifest in manifests if manifest.kind.endswith("AdmissionPolicy")]
    kinds = (spec.get("paramKind") for spec in specs if isinstance(spec, dict))
    return {_full_kind(kind) for kind in kinds if isinstance(kind, dict)}
