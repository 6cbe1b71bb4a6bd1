"""Builder of the dependency graph from monitor events; enqueues nodes that may have to be deleted or orphaned.

Events are processed sequentially, so the graph is at least as new as any enqueued node.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from prometheus_client import CollectorRegistry

from pilothouse.apiserver.offload import offload
from pilothouse.client.clock import Clock
from pilothouse.client.events.event import LRU, WARNING, EventSource
from pilothouse.client.events.recorder import EventRecorder
from pilothouse.client.rest.client import Client
from pilothouse.client.workqueue.queue import WorkQueue
from pilothouse.client.workqueue.rate_limiting import RateLimitingQueue
from pilothouse.controllers.garbagecollector import graph
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.event_loop import yield_to_loop
from pilothouse.machinery.gofmt import quote
from pilothouse.machinery.objects import Json

_ABSENT_OWNERS = 500
_CHANGES_PER_TURN = 200  # then yield to the event loop
MANY_OWNERS = 1000
"""Threshold from which an operation on all owners takes a millisecond or more."""


@dataclass(frozen=True, eq=False, slots=True)
class GraphEvent:
    """An observed object, or its deletion (no state). Virtual events come from the collector, not from a monitor."""

    identity: graph.ObjectReference
    state: graph.ObjectState | None = None
    virtual: bool = False
    unread: Json | None = None
    """The raw object, if it has so many owners that its parsing is offloaded."""

    async def read(self) -> GraphEvent:
        if self.unread is None:
            return self
        return GraphEvent(self.identity, await offload(graph.ObjectState.of, self.unread), self.virtual)


class GraphBuilder:
    nodes: dict[str, graph.GraphNode]  # by uid

    def __init__(self, registry: CollectorRegistry, clock: Clock, invalid_owners: InvalidOwnerReporter) -> None:
        self.nodes = {}
        self.absent_owners: LRU[graph.ObjectReference, bool] = LRU(_ABSENT_OWNERS)
        self.changes: WorkQueue[GraphEvent] = WorkQueue(
            "garbage_collector_graph_changes", registry=registry, clock=clock
        )
        self.attempt_to_delete: RateLimitingQueue[graph.GraphNode] = RateLimitingQueue(
            "garbage_collector_attempt_to_delete", registry=registry, clock=clock
        )
        self.attempt_to_orphan: RateLimitingQueue[graph.GraphNode] = RateLimitingQueue(
            "garbage_collector_attempt_to_orphan", registry=registry, clock=clock
        )
        self._invalid_owners = invalid_owners

    async def run(self) -> None:
        """Process events until cancelled."""
        while True:
            for _ in range(_CHANGES_PER_TURN):
                event = await self.changes.get()
                await self.process(await event.read())
                self.changes.done(event)
            await yield_to_loop()

    def enqueue_virtual_delete(self, identity: graph.ObjectReference) -> None:
        """Record that the object is absent according to the API server."""
        self.changes.add(GraphEvent(identity, virtual=True))

    async def process(self, event: GraphEvent) -> None:
        node = self.nodes.get(event.identity.uid)
        if event.state is not None:
            self.absent_owners.drop(event.identity)  # an object restored from a snapshot keeps its uid
        if node is not None and not event.virtual and node.virtual:
            node = self._observe(node, event.identity)
        if event.state is None:
            if node is not None:
                if event.virtual and not self._is_really_absent(node, event.identity):
                    return
                del self.nodes[node.identity.uid]
                self._remove_from_owners(node, node.owners)
                if node.dependents:
                    self.absent_owners.put(event.identity, True)
                self._enqueue(node.dependents)
                for reference in node.owners:
                    owner = self.nodes.get(reference.uid)
                    if owner is not None and owner.state.is_deleting_dependents:
                        self.attempt_to_delete.add(owner)  # it may have been the last blocking dependent
        elif node is None:
            node = self.nodes[event.identity.uid] = graph.GraphNode(event.identity, event.state)
            await self._add_to_owners(node, node.owners)
            self._transition(node, None)
        else:
            state = event.state
            old, node.state = node.state, state
            if old.owners or state.owners:
                changes = await self._diff(old.owners, state.owners)
                # Enqueue owners that a reference no longer blocks.
                released = [reference.uid for reference in changes.removed if reference.block_owner_deletion]
                released += [
                    change.new.uid
                    for change in changes.changed
                    if change.old.block_owner_deletion and not change.new.block_owner_deletion
                ]
                self._enqueue(self.nodes[uid] for uid in released if uid in self.nodes)
                await self._add_to_owners(node, changes.added)
                self._remove_from_owners(node, changes.removed)
            self._transition(node, old)

    def _observe(self, node: graph.GraphNode, identity: graph.ObjectReference) -> graph.GraphNode:
        """Mark the node as observed, and enqueue dependents that reference it by another identity."""
        if identity != node.identity:
            for dependent in graph.partition(node.dependents, identity).nonmatching:
                if identity.namespace and dependent.identity.namespace != identity.namespace:
                    self._invalid_owners.report(dependent, identity.uid)
                self.attempt_to_delete.add(dependent)
            node = self.nodes[identity.uid] = node.identified_as(identity)
        node.virtual = False
        return node

    async def _diff(self, old: Sequence[graph.OwnerReference], new: Sequence[graph.OwnerReference]) -> graph.Diff:
        if len(old) <= MANY_OWNERS and len(new) <= MANY_OWNERS:
            return graph.diff(old, new)
        return await offload(graph.diff, old, new)

    def _transition(self, node: graph.GraphNode, old: graph.ObjectState | None) -> None:
        """Enqueue an object that has just started to orphan or delete its dependents."""
        state = node.state
        if state.is_orphaning_dependents and not (old and old.is_orphaning_dependents):
            self.attempt_to_orphan.add(node)
        elif state.is_deleting_dependents and not (old and old.is_deleting_dependents):
            self._enqueue(node.dependents)
            self.attempt_to_delete.add(node)

    def _is_really_absent(self, node: graph.GraphNode, absent: graph.ObjectReference) -> bool:
        """Return whether neither a monitor nor a dependent knows the uid under another identity."""
        dependents = graph.partition(node.dependents, absent)
        if node.virtual and not dependents.nonmatching:
            return True
        if node.is_observed and node.identity == absent:
            return True
        if dependents.matching:
            self.absent_owners.put(absent, True)
            self._enqueue(dependents.matching)
        if node.virtual and node.identity == absent:
            identity = graph.alternate_identity(dependents.nonmatching, node.identity)
            if identity is not None:
                replacement = self.nodes[identity.uid] = node.identified_as(identity)
                self.attempt_to_delete.add_rate_limited(replacement)
        return False

    async def _add_to_owners(self, node: graph.GraphNode, owners: Iterable[graph.OwnerReference]) -> None:
        """Add the node to its owners, yielding to the event loop if there are very many."""
        doubtful = False
        for number, reference in enumerate(owners, start=1):
            if number % MANY_OWNERS == 0:
                await yield_to_loop()
            owner = self.nodes.get(reference.uid)
            if owner is not None:
                owner.dependents[node] = None
                doubtful = doubtful or self._is_doubtful(node, reference, owner)
            else:
                identity = graph.ObjectReference.of(reference.owner, node.identity.namespace)
                virtual = self.nodes[reference.uid] = graph.GraphNode(identity, virtual=True, dependents={node: None})
                self.attempt_to_delete.add(virtual)
        if doubtful:
            self.attempt_to_delete.add(node)

    def _is_doubtful(self, node: graph.GraphNode, reference: graph.OwnerReference, owner: graph.GraphNode) -> bool:
        """Return whether the reference may not match the owner with its uid."""
        namespace, known = node.identity.namespace, owner.identity
        if known.namespace and known.namespace != namespace:
            if owner.is_observed:
                self._invalid_owners.report(node, reference.uid)
            return True
        if reference.owner != known.coordinates:
            return True
        # A cluster-scoped object may reference a namespaced kind, which cannot be looked up without a namespace.
        return owner.virtual and known.namespace != namespace

    def _remove_from_owners(self, node: graph.GraphNode, owners: Iterable[graph.OwnerReference]) -> None:
        for reference in owners:
            owner = self.nodes.get(reference.uid)
            if owner is not None:
                owner.dependents.pop(node, None)

    def _enqueue(self, nodes: Iterable[graph.GraphNode]) -> None:
        for node in nodes:
            self.attempt_to_delete.add(node)


class InvalidOwnerReporter:
    """Emits warning events for dependents with an owner in another namespace."""

    def __init__(self, client: Client, clock: Clock) -> None:
        self._recorder = EventRecorder(client, EventSource("garbage-collector-controller"), clock=clock)

    async def run(self) -> None:
        """Run until cancelled."""
        await self._recorder.run()

    def report(self, node: graph.GraphNode, uid: str) -> None:
        """Record a Warning event with the dependent's reference to the owner `uid`."""
        reference = next((owner for owner in node.owners if owner.uid == uid), None)
        if reference is None:
            return
        namespace = node.identity.namespace
        owner = graph.ObjectReference.of(reference.owner, namespace)
        message = f"ownerRef {owner} does not exist in namespace {quote(namespace)}"
        identity = node.identity
        self._recorder.event(
            {
                "kind": identity.kind,
                "apiVersion": identity.api_version,
                "metadata": {"name": identity.name, "namespace": identity.namespace, "uid": identity.uid},
            },
            WARNING,
            "OwnerRefInvalidNamespace",
            message,
        )
