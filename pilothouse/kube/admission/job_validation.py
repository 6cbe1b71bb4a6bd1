"""JobValidation: the parallelism of a gang-scheduled job is immutable."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeAlias

from pilothouse.apiserver.admission.interface import Attributes, Handler, Operation, refused
from pilothouse.kinds.owners import is_controlled_by
from pilothouse.machinery.gofmt import quote
from pilothouse.machinery.names import GroupResource
from pilothouse.machinery.objects import Json, name_of, namespace_of, part

Get: TypeAlias = Callable[[str, str], Awaitable[Json | None]]
List: TypeAlias = Callable[[str], Awaitable[list[Json]]]

_JOBS = GroupResource("batch", "jobs")


class JobValidation(Handler):
    name = "JobValidation"
    resources = (_JOBS,)
    operations = (Operation.UPDATE,)

    def __init__(self, group: Get, groups: List) -> None:
        self._group, self._groups = group, groups

    async def validate(self, attributes: Attributes) -> None:
        job, old = attributes.obj, attributes.old
        if attributes.resource.group_resource != _JOBS or attributes.subresource or job is None or old is None:
            return
        if part(job, "spec").get("parallelism") == part(old, "spec").get("parallelism"):
            return
        for group in await self._groups_of(old):
            if part(group, "spec", "schedulingPolicy").get("gang") is not None:
                name = quote(name_of(group))
                reason = f"cannot change parallelism for a Job referencing gang-scheduled PodGroup {name}"
                raise refused(attributes, reason)

    async def _groups_of(self, job: Json) -> list[Json]:
        """Return the pod group named by the template, otherwise the pod groups controlled by the job."""
        name = part(job, "spec", "template", "spec", "schedulingGroup").get("podGroupName")
        if name is not None:
            group = await self._group(name, namespace_of(job))
            return [] if group is None else [group]
        groups = await self._groups(namespace_of(job))
        return [group for group in groups if is_controlled_by(group, job)]
