"""Workers of the garbage collector: dequeue a node, query the API server for facts missing in the graph, and act.

An object is deleted when every owner is absent or waits for its dependents. An object with a remaining owner only loses
its other owner references. Observed nodes are trusted without a request: a deletion based on stale state fails its
preconditions and is retried, and the deletion of an owner will be observed and requeues its dependents.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import field

from pilothouse.client.workqueue.rate_limiting import RateLimitingQueue
from pilothouse.controllers.garbagecollector import graph
from pilothouse.controllers.garbagecollector.graph_builder import GraphBuilder
from pilothouse.controllers.garbagecollector.operations import (
    NamespacedOwnerOfClusterScopedObject,
    NoMapping,
    Operations,
)
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.errors import NotFound
from pilothouse.machinery.failed_attempts import log_failed_attempt

logger = logging.getLogger(__name__)

_ORPHANS_AT_ONCE = 20


@dataclass(slots=True)
class Owners:
    """Owner references of an object, by state of the owner."""

    solid: list[graph.OwnerReference] = field(default_factory=list)
    dangling: list[graph.OwnerReference] = field(default_factory=list)
    waiting: list[graph.OwnerReference] = field(default_factory=list)
    """References to owners that are terminating and wait for their dependents."""


class Collector:
    def __init__(self, builder: GraphBuilder, operations: Operations) -> None:
        self._builder = builder
        self._operations = operations

    async def delete_worker(self) -> None:
        """Process the delete queue until cancelled."""
        await self._work(self._builder.attempt_to_delete, self._attempt_to_delete)

    async def orphan_worker(self) -> None:
        """Process the orphan queue until cancelled."""
        await self._work(self._builder.attempt_to_orphan, self._attempt_to_orphan)

    async def _work(
        self, queue: RateLimitingQueue[graph.GraphNode], attempt: Callable[[graph.GraphNode], Awaitable[bool]]
    ) -> None:
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

    async def _guarded(self, attempt: Callable[[graph.GraphNode], Awaitable[bool]], node: graph.GraphNode) -> bool:
        """Make the attempt; return False if it must be retried."""
        try:
            return await attempt(node)
        except NoMapping as error:  # the next discovery may find the kind
            logger.debug("can not look after %s yet: %s", node.identity, error)
        except Exception as error:
            log_failed_attempt(logger, error, "can not look after %s, will try again", node.identity)
        return False

    async def _attempt_to_delete(self, node: graph.GraphNode) -> bool:
        """Process a node; a node that stays virtual is retried, because its object may come and go unobserved."""
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

    async def _delete_if_due(self, node: graph.GraphNode) -> None:
        """Delete the object, or remove absent owners. Raises NotFound if the object is absent."""
        state = node.state
        if state.being_deleted and not state.is_deleting_dependents:
            return  # already terminating in the background: nothing left to do
        if node.virtual:
            state = graph.ObjectState.of(await self._operations.get(node.identity))
        elif state.is_deleting_dependents:
            blocking = node.blocking_dependents()
            if not blocking:
                await self._operations.remove_finalizer(node, graph.DELETE_DEPENDENTS)
            for dependent in blocking:
                if not dependent.state.is_deleting_dependents:
                    self._builder.attempt_to_delete.add(dependent)
            return
        if state.owners:
            await self._collect(node, state)

    async def _collect(self, node: graph.GraphNode, state: graph.ObjectState) -> None:
        owners = Owners()
        for reference in state.owners:
            owner = await self._owner(node, reference)
            if owner is None:
                owners.dangling.append(reference)
            elif owner.is_deleting_dependents:
                owners.waiting.append(reference)
            else:
                owners.solid.append(reference)
        if owners.solid:
            if removable := [*owners.dangling, *owners.waiting]:
                # References to waiting owners are removed too; otherwise these owners would wait forever.
                await self._operations.remove_owners(node.identity, [reference.uid for reference in removable])
        elif owners.waiting and node.dependents:
            if any(dependent.state.is_deleting_dependents for dependent in node.dependents):
                await self._operations.unblock_owners(node)  # possibly a cycle
            await self._operations.delete(node.identity, state, "Foreground")
        else:
            await self._operations.delete(node.identity, state, _policy(state))

    async def _owner(self, node: graph.GraphNode, reference: graph.OwnerReference) -> graph.ObjectState | None:
        """Return the state of the owner; None if absent."""
        namespace = node.identity.namespace
        places = [graph.ObjectReference.of(reference.owner, at) for at in dict.fromkeys(("", namespace))]
        if any(self._builder.absent_owners.get(place) for place in places):
            return None
        known = self._builder.nodes.get(reference.uid)
        if known is not None and known.is_observed and known.identity in places:
            return known.state
        mapping = self._operations.mapping(reference.owner.api_version, reference.owner.kind)
        place = graph.ObjectReference.of(reference.owner, mapping.namespace(namespace))
        try:
            return graph.ObjectState.of(await self._operations.get(place))
        except NotFound:
            self._builder.absent_owners.put(place, True)
            return None

    async def _attempt_to_orphan(self, owner: graph.GraphNode) -> bool:
        turn = asyncio.Semaphore(_ORPHANS_AT_ONCE)

        async def orphan(dependent: graph.GraphNode) -> None:
            async with turn:
                try:
                    await self._operations.remove_owners(dependent.identity, [owner.identity.uid])
                except NotFound:
                    return

        outcomes = await asyncio.gather(*map(orphan, [*owner.dependents]), return_exceptions=True)
        for outcome in outcomes:
            if isinstance(outcome, BaseException):
                raise outcome
        await self._operations.remove_finalizer(owner, graph.ORPHAN_DEPENDENTS)
        return True


def _policy(state: graph.ObjectState) -> str:
    """Return the propagation policy requested at deletion; default Background."""
    if graph.ORPHAN_DEPENDENTS in state.finalizers:
        return "Orphan"
    return "Foreground" if graph.DELETE_DEPENDENTS in state.finalizers else "Background"
