"""Bindings assign a node to a pod: once per pod, and never to a gated or terminating pod."""

from __future__ import annotations

from pilothouse.apiserver.registry.errors import map_storage_errors
from pilothouse.apiserver.registry.operations import RequestContext, Result, Validate
from pilothouse.apiserver.registry.options import Preconditions, WriteOptions, failed_precondition, invalid_object
from pilothouse.apiserver.registry.store import RegistryStore
from pilothouse.apiserver.server.features import enabled
from pilothouse.apiserver.storage.errors import RevisionConflict
from pilothouse.kinds.deletion import is_deleting
from pilothouse.kinds.pods import set_pod_condition
from pilothouse.kube.validation.fields import follow
from pilothouse.machinery import version_rules
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.errors import BadRequest, Conflict, NotFound
from pilothouse.machinery.field import Errors, not_supported, required, root
from pilothouse.machinery.gofmt import quote
from pilothouse.machinery.names import GroupResource, GroupVersionKind
from pilothouse.machinery.objects import Json, annotations_of, labels_of, metadata, name_of, resource_version_of, uid_of
from pilothouse.machinery.status_error import StatusError, aggregate
from pilothouse.machinery.validation.names import name_is_dns_subdomain

BINDING = GroupVersionKind("", "v1", "Binding")
PODS = GroupResource("", "pods")

_PODS_BINDING = GroupResource("", "pods/binding")


def created() -> Json:
    """Return the response to a create request without a stored object."""
    return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}


@dataclass(frozen=True, slots=True)
class BindingStorage:
    """pods/NAME/binding. The binding's uid and resourceVersion are preconditions on the pod."""

    keeps_system_fields = True

    registry: RegistryStore

    async def create_named(
        self, ctx: RequestContext, name: str, obj: Json, *, options: WriteOptions, validate: Validate
    ) -> Result:
        if name != name_of(obj):
            raise BadRequest("name in URL does not match name in Binding object")
        errors = list(validate_binding(obj))
        if errors:
            raise StatusError(aggregate(map(str, errors)))
        await validate(obj)
        await self._assign(ctx, obj, dry_run=options.dry_run)
        return created()

    async def _assign(self, ctx: RequestContext, binding: Json, *, dry_run: bool) -> None:
        """Assign the node, retrying on conflicts. Terminates: each conflict means progress of another writer."""
        name = name_of(binding)
        while True:
            with map_storage_errors(PODS, name):
                current = await self.registry.newest(ctx.namespace, name)
                if current is None:
                    raise NotFound.of(PODS, name)
                pod = current.parse()
                conditions = Preconditions(uid_of(binding) or None, resource_version_of(binding) or None)
                if reason := failed_precondition(pod, conditions):
                    key = self.registry.keys.in_messages(current.key, dry_run=dry_run)
                    raise Conflict.of(PODS, name_of(pod), invalid_object(key, reason))
                _bind(pod, binding)
                try:
                    await self.registry.replace(current, pod, dry_run=dry_run)
                except RevisionConflict:
                    continue
                return


class LegacyBindingStorage:
    """The collection of bindings; the binding's own name is the name of the pod."""

    def __init__(self, bindings: BindingStorage) -> None:
        self._bindings = bindings

    async def create(self, ctx: RequestContext, obj: Json, *, options: WriteOptions, validate: Validate) -> Result:
        return await self._bindings.create_named(ctx, name_of(obj), obj, options=options, validate=validate)


def validate_binding(binding: Json) -> Errors:
    target = binding.get("target") or {}
    if target.get("kind") and target["kind"] != "Node":
        yield not_supported(root("target", "kind"), target["kind"], ("Node", "<empty>"), plain=True)
    if not target.get("name"):
        yield required(root("target", "name"))
    elif target.get("kind") in (None, "", "Node") and version_rules.holds("BindingNodeNames"):
        yield from follow(name_is_dns_subdomain, target["name"], root("target", "name"))


def _bind(pod: Json, binding: Json) -> None:
    name, spec = name_of(pod), pod["spec"]
    if is_deleting(pod):
        refusal = f"pod {name} is being deleted, cannot be assigned to a host"
    elif spec.get("nodeName"):
        refusal = f"pod {name} is already assigned to node {quote(spec['nodeName'])}"
    elif spec.get("schedulingGates"):
        refusal = f"pod {name} has non-empty .spec.schedulingGates"
    else:
        refusal = ""
    if refusal:
        raise Conflict.of(_PODS_BINDING, name_of(pod), refusal)
    pod["spec"]["nodeName"] = binding["target"]["name"]
    # The nomination is obsolete: preemption for this pod is over.
    if enabled("ClearingNominatedNodeNameAfterBinding"):
        pod.setdefault("status", {}).pop("nominatedNodeName", None)
    labels = labels_of(binding) if enabled("PodTopologyLabelsAdmission") else {}
    for name, added in (("annotations", annotations_of(binding)), ("labels", labels)):
        if added:
            metadata(pod).setdefault(name, {}).update(added)
    set_pod_condition(pod, "PodScheduled", "True")
