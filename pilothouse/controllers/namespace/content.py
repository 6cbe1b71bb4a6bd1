"""Deletion of one resource's objects in a namespace, and the count of remaining objects."""

from __future__ import annotations

from collections import Counter
from dataclasses import field

from pilothouse.client.discovery import APIResource
from pilothouse.client.rest.client import Client
from pilothouse.client.rest.options import DeleteOptions
from pilothouse.client.rest.resource import ResourceClient
from pilothouse.kinds.pods import has_ended
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.errors import MethodNotAllowed, NotFound
from pilothouse.machinery.names import GroupResource
from pilothouse.machinery.objects import name_of

PODS = GroupResource("", "pods")
FINALIZER_ESTIMATE = 15
"""Assumed seconds for the owner of a finalizer to finish."""

_DELETE = DeleteOptions(propagation_policy="Background")
"""Background, never Orphan: everything in the namespace is deleted."""


@dataclass(frozen=True, slots=True)
class Remaining:
    """Remaining objects after a deletion, and the estimated seconds until they are gone."""

    estimate: int = 0
    number: int = 0
    finalizers: Counter[str] = field(default_factory=Counter)
    problem: str = ""


class Content:
    def __init__(self, client: Client, resource: APIResource, namespace: str) -> None:
        self._namespace = namespace
        self._resource = resource
        self._objects = client.for_resource(resource.resource, namespace=namespace)
        self._metadata: ResourceClient = self._objects.metadata_only()

    async def delete(self, age: float) -> Remaining:
        """Delete the objects; return the remaining ones. `age` is the time in seconds since the namespace was deleted.

        Raises StatusError.
        """
        if self._resource.resource.group_resource != PODS:
            estimate = 0
        else:
            longest = 0
            async for page in self._objects.pages():
                running = (pod for pod in page["items"] if not has_ended(pod))
                graces = (pod["spec"].get("terminationGracePeriodSeconds") or 0 for pod in running)
                longest = max(longest, *graces, 0)
            estimate = longest if age < longest else 0
        if not await self._delete_collection():
            for name in await self._names():
                try:
                    await self._metadata.delete(name, _DELETE)
                except (MethodNotAllowed, NotFound):
                    continue
        return await self._remaining(estimate)

    async def _delete_collection(self) -> bool:
        """Delete the collection; return False if the resource does not support it."""
        if "deletecollection" not in self._resource.verbs:
            return False
        try:
            await self._metadata.delete_collection(_DELETE)
        except (MethodNotAllowed, NotFound):
            return False
        return True

    async def _names(self) -> list[str]:
        if "list" not in self._resource.verbs:
            return []
        try:
            return [name_of(item) async for page in self._metadata.pages() for item in page["items"]]
        except (MethodNotAllowed, NotFound):
            return []

    async def _remaining(self, estimate: int) -> Remaining:
        if "list" not in self._resource.verbs:
            return Remaining(estimate)
        number, finalizers = 0, Counter[str]()
        try:
            async for page in self._metadata.pages():
                number += len(page["items"])
                finalizers.update(name for item in page["items"] for name in item["metadata"].get("finalizers") or ())
        except (MethodNotAllowed, NotFound):
            return Remaining(estimate)
        if not number:
            return Remaining()
        if not estimate and not finalizers:  # without grace period or finalizers the objects should be gone
            gvr = self._resource.resource
            problem = f"unexpected items still remain in namespace: {self._namespace} for gvr: {gvr}"
            return Remaining(0, number, problem=problem)
        return Remaining(estimate or FINALIZER_ESTIMATE, number, finalizers)
