"""PodGroupProtection and PodGroupWorkloadExists: admission of pod groups."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeAlias

from pilothouse.apiserver.admission.interface import Attributes, Handler, Operation, refused
from pilothouse.kinds.deletion import add_finalizer, is_deleting
from pilothouse.machinery.gofmt import quote
from pilothouse.machinery.names import GroupResource
from pilothouse.machinery.objects import Json, items, part, text

Get: TypeAlias = Callable[[str, str], Awaitable[Json | None]]

POD_GROUPS = GroupResource("scheduling.k8s.io", "podgroups")
PROTECTION_FINALIZER = "scheduling.k8s.io/podgroup-protection"


class PodGroupProtection(Handler):
    """Adds a finalizer to new pod groups. A controller removes the finalizer once no pod refers to the group."""

    name = "PodGroupProtection"
    resources = (POD_GROUPS,)
    operations = (Operation.CREATE,)

    async def admit(self, attributes: Attributes) -> None:
        if attributes.resource.group_resource != POD_GROUPS or attributes.subresource or attributes.obj is None:
            return
        add_finalizer(attributes.obj, PROTECTION_FINALIZER)


class PodGroupWorkloadExists(Handler):
    """Rejects a new pod group unless its workload exists and has the pod group template."""

    name = "PodGroupWorkloadExists"
    resources = (POD_GROUPS,)
    operations = (Operation.CREATE,)

    def __init__(self, workload: Get) -> None:
        self._workload = workload

    async def validate(self, attributes: Attributes) -> None:
        if attributes.resource.group_resource != POD_GROUPS or attributes.subresource or attributes.obj is None:
            return
        reference = part(attributes.obj, "spec", "podGroupTemplateRef").get("workload")
        if reference is not None and (reason := await self._problem(attributes.namespace, reference)):
            raise refused(attributes, f"PodGroup rejected: {reason}")

    async def _problem(self, namespace: str, reference: Json) -> str:
        name, template = text(reference, "workloadName"), text(reference, "podGroupTemplateName")
        workload = await self._workload(name, namespace)
        if workload is None:
            return f"Workload {quote(name)} not found"
        if is_deleting(workload):
            return f"Workload {quote(name)} is being deleted"
        if template in {text(item, "name") for item in items(workload, "spec", "podGroupTemplates")}:
            return ""
        return f"PodGroupTemplate {quote(template)} not found in Workload {quote(name)}"
