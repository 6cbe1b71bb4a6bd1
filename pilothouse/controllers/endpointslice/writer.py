"""Execution of plans: slices to delete are reused for slices to create, then all are written."""

from __future__ import annotations

from prometheus_client import Gauge

from pilothouse.client.cache.keys import meta_namespace_key
from pilothouse.client.rest.client import Client
from pilothouse.controllers.endpointslice.plan import Plan
from pilothouse.controllers.endpointslice.slice_tracker import EndpointSliceTracker
from pilothouse.controllers.namespace_state import is_refusal_of_terminating_namespace
from pilothouse.controllers.resources import ENDPOINT_SLICES
from pilothouse.kinds.deletion import is_deleting
from pilothouse.kinds.owners import is_owned_by
from pilothouse.machinery.errors import NotFound
from pilothouse.machinery.objects import Json, metadata, name_of, namespace_of
from pilothouse.machinery.status_error import PilothouseError, StatusError


class WriteFailed(PilothouseError):
    """A slice could not be written; the message names it."""


class SliceWriter:
    def __init__(self, client: Client, tracker: EndpointSliceTracker, changes: Gauge, of: str) -> None:
        """`of` is the owner's kind, for messages."""
        self._slices = client.for_resource(ENDPOINT_SLICES)
        self._tracker = tracker
        self._changes = changes
        self._of = of

    async def carry_out(self, plan: Plan, owner: Json) -> None:
        """Execute the plan. Nothing is created for a terminating owner.

        Raises WriteFailed; earlier writes are kept.
        """
        reuse(plan, owner)
        if not is_deleting(owner):
            for endpoint_slice in plan.create:
                if not await self._create(endpoint_slice, owner):
                    return
        for endpoint_slice in plan.update:
            try:
                updated = await self._slices.namespace(namespace_of(owner)).update(endpoint_slice)
            except StatusError as error:
                raise self._failed(f"update {name_of(endpoint_slice)}", meta_namespace_key(owner), error) from None
            self._tracker.update(updated)
            self._changes.labels("update").inc()
        for endpoint_slice in plan.delete:
            await self.delete(endpoint_slice, meta_namespace_key(owner))

    async def delete(self, endpoint_slice: Json, owner: str) -> None:
        """Delete a slice of the owner with this key. Raises WriteFailed."""
        try:
            await self._slices.namespace(namespace_of(endpoint_slice)).delete(name_of(endpoint_slice))
        except NotFound:
            return
        except StatusError as error:
            raise self._failed(f"delete {name_of(endpoint_slice)}", owner, error) from None
        self._tracker.expect_deletion(endpoint_slice)
        self._changes.labels("delete").inc()

    async def _create(self, endpoint_slice: Json, owner: Json) -> bool:
        """Create a slice; return False if the namespace is terminating."""
        try:
            created = await self._slices.namespace(namespace_of(owner)).create(endpoint_slice)
        except StatusError as error:
            if is_refusal_of_terminating_namespace(error):
                return False
            raise self._failed("create", meta_namespace_key(owner), error) from None
        self._tracker.update(created)
        self._changes.labels("create").inc()
        return True

    def _failed(self, action: str, owner: str, error: StatusError) -> WriteFailed:
        return WriteFailed(f"failed to {action} EndpointSlice for {self._of} {owner}: {error}")


def reuse(plan: Plan, owner: Json) -> None:
    """Turn pairs of delete and create into updates. addressType is immutable. Slices of a former owner of the same name
    are left to the garbage collector."""
    kept = []
    for old in plan.delete:
        fitting = next((new for new in plan.create if new["addressType"] == old.get("addressType")), None)
        if fitting is None or not is_owned_by(old, owner):
            kept.append(old)
            continue
        plan.create.remove(fitting)
        plan.update.append({**fitting, "metadata": metadata(fitting) | {"name": name_of(old)}})
    plan.delete[:] = kept
