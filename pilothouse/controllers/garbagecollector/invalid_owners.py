"""Warning events for dependents with an owner in another namespace."""

from __future__ import annotations

from pilothouse.client.clock import Clock
from pilothouse.client.events.event import WARNING, EventSource
from pilothouse.client.events.recorder import EventRecorder
from pilothouse.client.rest.client import Client
from pilothouse.controllers.garbagecollector.graph import GraphNode, ObjectReference
from pilothouse.machinery.gofmt import quote


class InvalidOwnerReporter:
    def __init__(self, client: Client, clock: Clock) -> None:
        self._recorder = EventRecorder(client, EventSource("garbage-collector-controller"), clock=clock)

    async def run(self) -> None:
        """Run until cancelled."""
        await self._recorder.run()

    def report(self, node: GraphNode, uid: str) -> None:
        """Record a Warning event with the dependent's reference to the owner `uid`."""
        reference = next((each for each in node.owners if each.uid == uid), None)
        if reference is None:
            return
        namespace = node.identity.namespace
        owner = ObjectReference.of(reference.owner, namespace)
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
