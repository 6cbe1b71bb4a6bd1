"""PodGroupProtection, PodGroupWorkloadExists, JobValidation: what groups of pods refer to, and what refers to them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeAlias

from pilothouse.apiserver.admission.interface import Attributes, Operation
from pilothouse.apiserver.admission.refusals import refused
from pilothouse.machinery.gofmt import quote
from pilothouse.machinery.names import GroupResource
from pilothouse.machinery.nested_fields import items, part, text
from pilothouse.machinery.objects import Json, metadata, name_of, namespace_of, uid_of

Get: TypeAlias = Callable[[str, str], Awaitable[Json | None]]
List: TypeAlias = Callable[[str], Awaitable[list[Json]]]

POD_GROUPS = GroupResource("scheduling.k8s.io", "podgroups")
PROTECTION_FINALIZER = "scheduling.k8s.io/podgroup-protection"

_JOBS = GroupResource("batch", "jobs")


class PodGroupProtection:
    """A group stays until no pod refers to it any more: a controller takes the finalizer away."""

    name = "PodGroupProtection"
    resources = (POD_GROUPS,)

    def handles(self, operation: Operation) -> bool:
        return operation is Operation.CREATE

    async def admit(self, attributes: Attributes) -> None:
        if attributes.resource.group_resource != POD_GROUPS or attributes.subresource or attributes.obj is None:
            return
        finalizers = metadata(attributes.obj).get("finalizers") or []
        if PROTECTION_FINALIZER not in finalizers:
            metadata(attributes.obj)["finalizers"] = [*finalizers, PROTECTION_FINALIZER]


class PodGroupWorkloadExists:
    """The workload that a new group names has the template that it names."""

    name = "PodGroupWorkloadExists"
    resources = (POD_GROUPS,)

    def __init__(self, workload: Get) -> None:
        self._workload = workload

    def handles(self, operation: Operation) -> bool:
        return operation is Operation.CREATE

    async def validate(self, attributes: Attributes) -> None:
        if attributes.resource.group_resource != POD_GROUPS or attributes.subresource or attributes.obj is None:
            return
        reference = part(attributes.obj, "spec", "podGroupTemplateRef").get("workload")
        if reference is not None and (why := await self._problem(attributes.namespace, reference)):
            raise refused(attributes, f"PodGroup rejected: {why}")

    async def _problem(self, namespace: str, reference: Json) -> str:
        name, template = text(reference, "workloadName"), text(reference, "podGroupTemplateName")
        workload = await self._workload(name, namespace)
        if workload is None:
            return f"Workload {quote(name)} not found"
        if metadata(workload).get("deletionTimestamp"):
            return f"Workload {quote(name)} is being deleted"
        if template in {text(each, "name") for each in items(workload, "spec", "podGroupTemplates")}:
            return ""
        return f"PodGroupTemplate {quote(template)} not found in Workload {quote(name)}"


class JobValidation:
    """A job whose pods are scheduled as a gang keeps its parallelism."""

    name = "JobValidation"
    resources = (_JOBS,)

    def __init__(self, group: Get, groups: List) -> None:
        self._group, self._groups = group, groups

    def handles(self, operation: Operation) -> bool:
        return operation is Operation.UPDATE

    async def validate(self, attributes: Attributes) -> None:
        job, old = attributes.obj, attributes.old
        if attributes.resource.group_resource != _JOBS or attributes.subresource or job is None or old is None:
            return
        if part(job, "spec").get("parallelism") == part(old, "spec").get("parallelism"):
            return
        for group in await self._groups_of(old):
            if part(group, "spec", "schedulingPolicy").get("gang") is not None:
                named = quote(name_of(group))
                why = f"cannot change parallelism for a Job referencing gang-scheduled PodGroup {named}"
                raise refused(attributes, why)

    async def _groups_of(self, job: Json) -> list[Json]:
        """Return the group that the template names, else those that the job controls."""
        name = part(job, "spec", "template", "spec", "schedulingGroup").get("podGroupName")
        if name is not None:
            group = await self._group(name, namespace_of(job))
            return [] if group is None else [group]
        groups = await self._groups(namespace_of(job))
        return [group for group in groups if _is_controlled_by(group, job)]


def _is_controlled_by(obj: Json, owner: Json) -> bool:
    references = metadata(obj).get("ownerReferences") or ()
    return any(each.get("controller") and each.get("uid") == uid_of(owner) for each in references)
