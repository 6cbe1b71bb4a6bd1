"""Claims of pods: creation from templates, and reservation of allocated claims."""

from __future__ import annotations

from prometheus_client import CollectorRegistry

from pilothouse.apiserver.tallies import CounterTally
from pilothouse.client.cache.indexer import Indexer
from pilothouse.client.rest.client import Client
from pilothouse.client.rest.resource import ResourceClient
from pilothouse.controllers.resources import PODS, RESOURCE_CLAIMS
from pilothouse.kinds.deletion import is_deleting
from pilothouse.kinds.owners import controller_of
from pilothouse.kinds.pods import has_ended, node_name
from pilothouse.kinds.references import resource_claim_names, resource_claim_statuses
from pilothouse.machinery.objects import Json, annotations_of, items, labels_of, name_of, namespace_of, part, uid_of
from pilothouse.machinery.status_error import PilothouseError, StatusError

CLAIMS_BY_POD = "claimPodOwner"
"""Index of claims by uid of the pod they were created for."""
_FIELD_MANAGER = "ResourceClaimController"
_LONGEST_BASE = 57
FINALIZER = "resource.kubernetes.io/delete-protection"
POD_CLAIM_NAME = "resource.kubernetes.io/pod-claim-name"
"""Annotation on a generated claim: its name within the pod."""


class ClaimNotPossible(PilothouseError):
    """A claim required by a pod cannot be created."""

    def __init__(self, claim: str, error: object) -> None:
        super().__init__(f"PodResourceClaim {claim}: {error}")


class ResourceClaimMetrics:
    def __init__(self, registry: CollectorRegistry) -> None:
        self.creates = CounterTally(
            "resourceclaim_controller_creates",
            "Number of ResourceClaims creation requests, categorized by creation status and admin access",
            ("status", "admin_access"),
            registry=registry,
        )


class PodSyncs:
    _made: dict[str, dict[str, Json]]  # pod uid → created claims that the cache may lack

    def __init__(self, client: Client, claims: Indexer, templates: Indexer, metrics: ResourceClaimMetrics) -> None:
        self._client = client
        self._claims, self._templates = claims, templates
        self._metrics = metrics
        self._made = {}

    def forget(self, pod: Json) -> None:
        self._made.pop(uid_of(pod), None)

    def needs_work(self, pod: Json) -> bool:
        statuses = resource_claim_statuses(pod)
        for pod_claim in pod_claims(pod):
            from_template = pod_claim.get("resourceClaimTemplateName") is not None
            if from_template and pod_claim["name"] not in statuses:
                return True
            claim = self._claim(pod, pod_claim.get("resourceClaimName") or statuses.get(pod_claim["name"]))
            if claim is None:
                if from_template and statuses[pod_claim["name"]] is not None:
                    return True
            elif self._must_reserve(pod, claim):
                return True
        return False

    async def sync(self, pod: Json) -> None:
        """Create and reserve the pod's claims. Raises ClaimNotPossible or StatusError."""
        statuses = resource_claim_statuses(pod)
        for pod_claim in pod_claims(pod):
            try:
                if (claim := await self._from_template(pod, pod_claim, statuses)) is not None:
                    statuses[pod_claim["name"]] = name_of(claim)
            except StatusError as error:
                raise ClaimNotPossible(pod_claim["name"], f"create ResourceClaim: {error}") from error
        if statuses != resource_claim_statuses(pod):
            await self._write_statuses(pod, statuses)
        if pod["spec"].get("nodeName"):
            await self._reserve(pod, statuses)

    async def _from_template(self, pod: Json, wanted: Json, statuses: dict[str, str | None]) -> Json | None:
        """Return the claim to record in the pod's status; None if already recorded or not needed."""
        template_name = wanted.get("resourceClaimTemplateName")
        if template_name is None or statuses.get(wanted["name"], "") is None:
            return None
        known = self._claim(pod, statuses.get(wanted["name"]))
        if known is not None and is_for(known, pod):
            return None
        name = wanted["name"]
        claims = [*self._claims.by_index(CLAIMS_BY_POD, uid_of(pod)), *self._made.get(uid_of(pod), {}).values()]
        return next(
            (claim for claim in claims if annotations_of(claim).get(POD_CLAIM_NAME) == name), None
        ) or await self._create(pod, wanted["name"], template_name)

    async def _create(self, pod: Json, name: str, template_name: str) -> Json:
        template = self._templates.get_by_key(f"{namespace_of(pod)}/{template_name}")
        if template is None:
            missing = f'resourceclaimtemplate.resource.k8s.io "{template_name}" not found'
            raise ClaimNotPossible(name, f'resource claim template "{template_name}": {missing}')
        wanted = new_claim(pod, name, template)
        requests = items(wanted, "spec", "devices", "requests")
        admin = str(any(part(request, "exactly").get("adminAccess") for request in requests)).lower()
        try:
            claim = await self._objects(pod).create(wanted)
        except StatusError:
            self._metrics.creates.inc(("failure", admin))
            raise
        self._metrics.creates.inc(("success", admin))
        self._made.setdefault(uid_of(pod), {})[name] = claim
        return claim

    async def _write_statuses(self, pod: Json, claims: dict[str, str | None]) -> None:
        statuses = [{"name": name, **({"resourceClaimName": claim} if claim else {})} for name, claim in claims.items()]
        status = {"resourceClaimStatuses": statuses}
        meta = {"name": name_of(pod), "namespace": namespace_of(pod)}
        applied = {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "status": status}
        pods = self._client.for_resource(PODS, namespace=namespace_of(pod))
        await pods.apply(applied, field_manager=_FIELD_MANAGER, force=True, subresource="status")

    async def _reserve(self, pod: Json, statuses: dict[str, str | None]) -> None:
        """Reserve allocated claims for a pod that was bound without the scheduler."""
        for pod_claim in pod_claims(pod):
            claim = self._claim(pod, pod_claim.get("resourceClaimName") or statuses.get(pod_claim["name"]))
            if claim is None:
                return
            if self._must_reserve(pod, claim):
                status = claim.get("status") or {}
                consumer = {"resource": "pods", "name": name_of(pod), "uid": uid_of(pod)}
                reserved = [*(status.get("reservedFor") or ()), consumer]
                await self._objects(pod).update_status({**claim, "status": {**status, "reservedFor": reserved}})

    def _must_reserve(self, pod: Json, claim: Json) -> bool:
        allocated = part(claim, "status").get("allocation") is not None
        return bool(pod["spec"].get("nodeName")) and allocated and not is_reserved_for(claim, pod)

    def _claim(self, pod: Json, name: str | None) -> Json | None:
        return self._claims.get_by_key(f"{namespace_of(pod)}/{name}") if name else None

    def _objects(self, pod: Json) -> ResourceClient:
        return self._client.for_resource(RESOURCE_CLAIMS, namespace=namespace_of(pod))


def new_claim(pod: Json, name: str, template: Json) -> Json:
    spec = template["spec"]
    owner = {"apiVersion": "v1", "kind": "Pod", "name": name_of(pod), "uid": uid_of(pod), "controller": True}
    meta: Json = {
        "generateName": _generate_name(name_of(pod), name),
        "ownerReferences": [owner],
        "annotations": {**annotations_of(spec), POD_CLAIM_NAME: name},
    }
    if labels := labels_of(spec):
        meta["labels"] = labels
    return {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": meta, "spec": spec["spec"]}


def _generate_name(pod: str, claim: str) -> str:
    """Return the generateName; both names are truncated in proportion to fit."""
    whole = f"{pod}-{claim}-"
    if len(whole) <= _LONGEST_BASE:
        return whole
    return f"{pod[: len(pod) * _LONGEST_BASE // len(whole)]}-{claim[: len(claim) * _LONGEST_BASE // len(whole)]}"


def pod_claims(pod: Json) -> list[Json]:
    return items(pod, "spec", "resourceClaims")


def claim_keys(pod: Json) -> list[str]:
    return [f"{namespace_of(pod)}/{name}" for name in resource_claim_names(pod)]


def template_keys(pod: Json) -> set[str]:
    names = (claim.get("resourceClaimTemplateName") for claim in pod_claims(pod))
    return {f"{namespace_of(pod)}/{name}" for name in names if name}


def is_done(pod: Json) -> bool:
    """Return whether the pod will never run again."""
    return has_ended(pod) or (is_deleting(pod) and not node_name(pod))


def owning_pod(claim: Json) -> Json | None:
    """Return the owner reference to the pod of a generated claim, or None."""
    owner = controller_of(claim)
    return owner if owner is not None and (owner["apiVersion"], owner["kind"]) == ("v1", "Pod") else None


def is_for(claim: Json, pod: Json) -> bool:
    owner = owning_pod(claim)
    return owner is not None and owner["uid"] == uid_of(pod)


def is_reserved_for(claim: Json, pod: Json) -> bool:
    reserved = items(claim, "status", "reservedFor")
    return any(consumer.get("uid") == uid_of(pod) for consumer in reserved)
