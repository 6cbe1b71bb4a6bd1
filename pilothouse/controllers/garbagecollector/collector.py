"""The workers: each takes a node from a queue, asks the API server for what the graph can not know, and acts.

An object is deleted when all its owners are gone, or wait for their dependents to be gone. One that has an owner left
only loses its references to the others. Where the graph has seen an object with its own eyes, its word is taken
instead of a request: a deletion that was decided on too old a state fails on its preconditions and is decided anew,
and an owner that has gone in the meantime will be seen to go, which brings its dependents back to the queue.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import field

from pilothouse.client.rest.errors import ConnectionFailed, InvalidResponse
from pilothouse.client.workqueue.rate_limiting import RateLimitingQueue
from pilothouse.controllers.garbagecollector.graph import (
    DELETE_DEPENDENTS,
    ORPHAN_DEPENDENTS,
    GraphNode,
    ObjectReference,
    ObjectState,
    OwnerReference,
)
from pilothouse.controllers.garbagecollector.graph_builder import GraphBuilder
from pilothouse.controllers.garbagecollector.operations import NamespacedOwnerOfClusterScopedObject, Operations
from pilothouse.controllers.garbagecollector.resources import NoMapping
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.errors import NotFound
from pilothouse.machinery.status_error import StatusError

logger = logging.getLogger(__name__)

_ORPHANS_AT_ONCE = 20


@dataclass(slots=True)
class Owners:
    """An object's references, by what has become of the owner."""

    solid: list[OwnerReference] = field(default_factory=list)
    dangling: list[OwnerReference] = field(default_factory=list)
    waiting: list[OwnerReference] = field(default_factory=list)
    """The owner is being deleted, and waits for its dependents to be gone."""


class Collector:
    def __init__(self, builder: GraphBuilder, operations: Operations) -> None:
        self._builder = builder
        self._operations = operations

    async def delete_worker(self) -> None:
        """Until cancelled."""
        await self._work(self._builder.attempt_to_delete, self._attempt_to_delete)

    async def orphan_worker(self) -> None:
        """Until cancelled."""
        await self._work(self._builder.attempt_to_orphan, self._attempt_to_orphan)

    async def _work(self, queue: RateLimitingQueue[GraphNode], attempt: Callable[[GraphNode], Awaitable[bool]]) -> None:
        while True:
            node = await queue.get()
            try:
                done = await self._guarded(attempt, node)
            finally:
                queue.done(node)
            if done:
                queue.forget(node)
            else:
                queue.add_rate_limited(node)

    async def _guarded(self, attempt: Callable[[GraphNode], Awaitable[bool]], node: GraphNode) -> bool:
        """Make the attempt; return False if it must be made again."""
        try:
            return await attempt(node)
        except NoMapping as error:  # the kind may be known after the next discovery
            logger.debug("can not look after %s yet: %s", node.identity, error)
        except (StatusError, ConnectionFailed, InvalidResponse) as error:
            logger.info("can not look after %s, will try again: %s", node.identity, error)
        except Exception:
            logger.exception("can not look after %s, will try again", node.identity)
        return False

    async def _attempt_to_delete(self, node: GraphNode) -> bool:
        """A node that stays virtual is asked after again: its object may come and go without being seen."""
        if node.virtual:
            known = self._builder.nodes.get(node.identity.uid)
            if known is None or known.is_observed:
                return True
        try:
            await self._delete_if_due(node)
        except NotFound:
            self._builder.enqueue_virtual_delete(node.identity)
            return True
        except NamespacedOwnerOfClusterScopedObject:
            return True
        return node.is_observed

    async def _delete_if_due(self, node: GraphNode) -> None:
        """Raises NotFound if there is no such object."""
        state = node.state
        if state.being_deleted and not state.is_deleting_dependents:
            return  # there is no way back from this, and no need to do anything
        if node.virtual:
            state = ObjectState.of(await self._operations.get(node.identity))
        elif state.is_deleting_dependents:
            blocking = node.blocking_dependents()
            if not blocking:
                await self._operations.remove_finalizer(node, DELETE_DEPENDENTS)
            for dependent in blocking:
                if not dependent.state.is_deleting_dependents:
                    self._builder.attempt_to_delete.add(dependent)
            return
        if state.owners:
            await self._collect(node, state)

    async def _collect(self, node: GraphNode, state: ObjectState) -> None:
        owners = await self._classify(node, state)
        if owners.solid:
            if gone := [*owners.dangling, *owners.waiting]:
                # References to those that wait go too, or they would wait for ever.
                await self._operations.remove_owners(node.identity, [each.uid for each in gone])
        elif owners.waiting and node.dependents:
            if any(dependent.state.is_deleting_dependents for dependent in node.dependents):
                await self._operations.unblock_owners(node)  # a circle, perhaps
            await self._operations.delete(node.identity, state, "Foreground")
        else:
            await self._operations.delete(node.identity, state, _policy(state))

    async def _classify(self, node: GraphNode, state: ObjectState) -> Owners:
        """Raises NoMapping, NamespacedOwnerOfClusterScopedObject."""
        owners = Owners()
        for reference in state.owners:
            owner = await self._owner(node, reference)
            if owner is None:
                owners.dangling.append(reference)
            elif owner.is_deleting_dependents:
                owners.waiting.append(reference)
            else:
                owners.solid.append(reference)
        return owners

    async def _owner(self, node: GraphNode, reference: OwnerReference) -> ObjectState | None:
        """Return the owner; None if there is no such object."""
        namespace = node.identity.namespace
        places = [ObjectReference.of(reference.owner, at) for at in dict.fromkeys(("", namespace))]
        if any(self._builder.absent_owners.get(place) for place in places):
            return None
        known = self._builder.nodes.get(reference.uid)
        if known is not None and known.is_observed and known.identity in places:
            return known.state
        mapping = self._operations.mapping(reference.owner.api_version, reference.owner.kind)
        place = ObjectReference.of(reference.owner, mapping.namespace(namespace))
        try:
            return ObjectState.of(await self._operations.get(place))
        except NotFound:
            self._builder.absent_owners.put(place, True)
            return None

    async def _attempt_to_orphan(self, owner: GraphNode) -> bool:
        turn = asyncio.Semaphore(_ORPHANS_AT_ONCE)

        async def orphan(dependent: GraphNode) -> None:
            async with turn:
                try:
                    await self._operations.remove_owners(dependent.identity, [owner.identity.uid])
                except NotFound:
                    return

        outcomes = await asyncio.gather(*map(orphan, [*owner.dependents]), return_exceptions=True)
        for outcome in outcomes:
            if isinstance(outcome, BaseException):
                raise outcome
        await self._operations.remove_finalizer(owner, ORPHAN_DEPENDENTS)
        return True


def _policy(state: ObjectState) -> str:
    """Return the propagation policy that was asked for when the object was deleted; Background if none was."""
    if ORPHAN_DEPENDENTS in state.finalizers:
        return "Orphan"
    return "Foreground" if DELETE_DEPENDENTS in state.finalizers else "Background"
