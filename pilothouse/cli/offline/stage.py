"""The stage: what must be there before other objects can be judged, written for real into the temporary store.

Nothing of it is written to a cluster, and no controller runs: what one would add is added here.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Sequence
from urllib.parse import quote

from pilothouse.cli.offline.findings import Finding, Severity
from pilothouse.cli.offline.manifests import Manifest, as_json
from pilothouse.cli.offline.order import DEFINITION, NAMESPACE, QUOTA, in_order
from pilothouse.cli.offline.passes import STRICT, try_object
from pilothouse.cli.offline.problems import problems_of
from pilothouse.cli.offline.resources import KindPath, KindPaths
from pilothouse.cli.offline.server import CallAnswer, OfflineServer
from pilothouse.machinery.event_loop import yield_to_loop
from pilothouse.machinery.objects import Json

_APPLY = b"application/apply-patch+yaml"
POLICIES = tuple(
    f"/apis/admissionregistration.k8s.io/v1/{how}admission{what}"
    for how in ("validating", "mutating")
    for what in ("policies", "policybindings")
)
_FOLLOWED = (
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
"""What admission and the authorizer know from caches."""
_POLL, _PATIENCE = 0.002, 10.0


class Stage:
    """`problems` has what the server said of each object that was set up; one that it refused is not there."""

    def __init__(self, server: OfflineServer, namespace: str, *, default_account: Json | None = None) -> None:
        """`namespace` is that of objects which do not name one; `default_account` what its service account has set."""
        self._call = server.admin
        self._namespace = namespace
        self._account = default_account or {}
        self.paths = KindPaths()
        self.problems: dict[Manifest, list[Finding]] = {}
        self.with_quota: set[str] = set()
        self.refused_namespaces: dict[str, str] = {}
        """Why those that objects name cannot be."""

    async def set_up(
        self, given: Sequence[Manifest], manifests: Sequence[Manifest] = (), named: Sequence[Manifest] = ()
    ) -> None:
        """Write all that is given, of the manifests what others are judged by, and the namespaces that any of them
        needs, also of those that are only `named`.
        """
        await self.paths.discover(self._call)
        staged = in_order(given, manifests)
        for is_early, manifest in staged:
            if is_early:
                self.problems[manifest] = await self._write(manifest)
        own = {one.name for one in (*given, *manifests) if one.group_kind == NAMESPACE}
        await self._make_namespaces(own, [*given, *manifests, *named])
        for is_early, manifest in staged:
            if not is_early:
                self.problems[manifest] = await self._write(manifest)
        await self.settle()

    def place_of(self, manifest: Manifest, *, beside: str = "") -> tuple[KindPath, str] | None:
        """Return where the objects of its kind are, and the namespace that it goes to; None for an unknown kind.

        One that names no namespace goes `beside` others, if that says where they are.
        """
        path = self.paths.get(manifest.obj)
        if path is None:
            return None
        return path, (manifest.namespace or beside or self._namespace) if path.namespaced else ""

    async def _write(self, manifest: Manifest) -> list[Finding]:
        place = self.place_of(manifest)
        if place is None:
            return [unknown_kind(manifest, self.paths)]
        path, namespace = place
        if manifest.group_kind == DEFINITION:
            return await self._define(manifest, path)
        tried = await try_object(manifest, lambda obj, query: self.create(obj, path, namespace, query))
        if tried.answer.is_well and manifest.group_kind == QUOTA:
            await self._begin_counting(tried.answer.body, path, namespace)
        return tried.findings

    async def create(self, obj: Json, path: KindPath, namespace: str, query: str = STRICT) -> CallAnswer:
        """Create the object, or apply it if it exists, as `kubectl apply` does."""
        data = as_json(obj)
        answer = await self._call("POST", path.collection(namespace), query, data)
        if answer.is_there_already:
            item = path.item(namespace, obj["metadata"]["name"])
            answer = await self._call("PATCH", item, f"{query}&force=true", data, media=_APPLY)
        return answer

    async def _define(self, manifest: Manifest, path: KindPath) -> list[Finding]:
        """Define the kind without its conversion webhook, so that objects of every version can be checked."""

        async def dry_run(obj: Json, query: str) -> CallAnswer:
            return await self._call("POST", path.collection(""), f"{query}&dryRun=All", as_json(obj))

        tried = await try_object(manifest, dry_run)
        if not tried.answer.is_well:
            return tried.findings
        spec = {**tried.obj["spec"], "conversion": {"strategy": "None"}}
        answer = await self.create({**tried.obj, "spec": spec}, path, "", tried.query)
        if not answer.is_well:
            return [*tried.findings, *problems_of(manifest, answer)]
        self.paths.add_definition(answer.body)
        return [*tried.findings, *await self._until_served(manifest, answer.body)]

    async def _until_served(self, manifest: Manifest, definition: Json) -> list[Finding]:
        """Return once its objects can be created; with the server's reason, if they never can."""
        version = next((version for version in definition["spec"]["versions"] if version["served"]), None)
        if version is None:
            return []
        obj = {
            "apiVersion": f"{definition['spec']['group']}/{version['name']}",
            "kind": definition["spec"]["names"]["kind"],
        }
        path = self.paths.get(obj)
        assert path is not None
        deadline = asyncio.get_running_loop().time() + _PATIENCE
        while not (await self._call("GET", path.collection(self._namespace), "limit=1")).is_well:
            item = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{definition['metadata']['name']}"
            conditions = (await self._call("GET", item)).body.get("status", {}).get("conditions") or ()
            refused = [c for c in conditions if c["type"] == "NamesAccepted" and c["status"] == "False"]
            if refused or asyncio.get_running_loop().time() > deadline:
                why = refused[0]["message"] if refused else "the definition is not established"
                return [manifest.finding(Severity.ERROR, why, path="spec.names")]
            await asyncio.sleep(_POLL)
        return []

    async def _begin_counting(self, quota: Json, path: KindPath, namespace: str) -> None:
        """No controller counts here: what is written from now on is added up by admission alone."""
        hard = quota.get("spec", {}).get("hard") or {}
        quota["status"] = {"hard": hard, "used": dict.fromkeys(hard, "0")}
        await self._call("PUT", f"{path.item(namespace, quota['metadata']['name'])}/status", "", as_json(quota))
        self.with_quota.add(namespace)

    async def _make_namespaces(self, own: Collection[str], manifests: Iterable[Manifest]) -> None:
        """Make those that are named and not there, each with the service account that a controller would give it.

        Of those that are manifests of their own the server has spoken already.
        """
        named = {place[1] for manifest in manifests if (place := self.place_of(manifest)) and place[1]}
        for name in sorted({self._namespace, *named, *own}):
            answer = await self._make("/api/v1/namespaces", {"metadata": {"name": name}})
            if not answer.is_well and not answer.is_there_already and name not in own:
                self.refused_namespaces[name] = answer.body.get("message", "")
            account = {"metadata": {"name": "default"}, **self._account}
            await self._make(f"/api/v1/namespaces/{quote(name)}/serviceaccounts", account)

    async def _make(self, collection: str, obj: Json) -> CallAnswer:
        return await self._call("POST", collection, "", as_json(obj))

    async def settle(self, resources: Sequence[str] = _FOLLOWED) -> None:
        """A list is answered when the watch cache has all that was written; who follows it runs in the next turns."""
        for path in resources:
            await self._call("GET", path, "limit=1")
        for _ in range(3):
            await yield_to_loop()


def unknown_kind(manifest: Manifest, paths: KindPaths) -> Finding:
    message = f'no matches for kind "{manifest.kind}" in version "{manifest.obj["apiVersion"]}"'
    versions = paths.versions_of(manifest.kind)
    hint = f"it is served as {', '.join(versions)}" if versions else "name its CustomResourceDefinition with --crds"
    return manifest.finding(Severity.ERROR, message, path="kind", hint=hint)
