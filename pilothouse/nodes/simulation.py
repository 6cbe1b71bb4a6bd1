"""The whole simulation: nodes, the pods on them, and what they are told to do."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from pilothouse.apiserver.simulated_kubelet import SimulatedKubelet
from pilothouse.client.cache.handlers import Deleted, ResourceEventHandlerFuncs
from pilothouse.client.cache.keys import last_known_state
from pilothouse.client.rest.client import Client
from pilothouse.client.rest.options import ListOptions
from pilothouse.controllers.context import ControllerContext
from pilothouse.controllers.resources import PODS
from pilothouse.machinery.conditions import is_true
from pilothouse.machinery.errors import AlreadyExists
from pilothouse.machinery.objects import Json, name_of
from pilothouse.nodes.behavior.behaviors import SIMULATED_BEHAVIORS, Behaviors
from pilothouse.nodes.behavior.definition import DEFINITION
from pilothouse.nodes.config import SimulationConfig
from pilothouse.nodes.fleet.fleet import Fleet
from pilothouse.nodes.kubelet.endpoint import serve_kubelets
from pilothouse.nodes.kubelet.host import Host
from pilothouse.nodes.running.pods import Pods


async def run(context: ControllerContext, config: SimulationConfig, kubelet: SimulatedKubelet) -> None:
    """Until cancelled."""
    await install_definition(context.client)
    await Simulation(context, config, kubelet).run()


class Simulation:
    """`behaviors` says what each container does; `fleet` has the nodes."""

    def __init__(self, context: ControllerContext, config: SimulationConfig, kubelet: SimulatedKubelet) -> None:
        self._context = context
        self._kubelet = kubelet
        self.config = config
        self.behaviors = Behaviors(lambda node: self.fleet.labels(node))
        self.fleet = Fleet(context, config, self.behaviors)
        self.pods = Pods(context, config, self.behaviors, self.fleet)
        self.host = Host(context.informer(PODS), self.behaviors, self._nodes_alive)

    async def run(self) -> None:
        """Until cancelled."""
        await self._follow_behaviors()
        await self.fleet.start()
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self.fleet.run())
            tasks.create_task(self.pods.run())
            tasks.create_task(serve_kubelets(self.host, self._kubelet))

    def _nodes_alive(self) -> list[Json]:
        return [node for name, node in self.fleet.nodes.items() if self.fleet.is_alive(name)]

    async def _follow_behaviors(self) -> None:
        """Returns when all that is said so far is known: nobody shall be healthy who must not be."""
        handler = ResourceEventHandlerFuncs(
            add=self.behaviors.set, update=lambda old, new: self.behaviors.set(new), delete=self._forget
        )
        registration = self._context.informer(SIMULATED_BEHAVIORS).add_event_handler(handler)
        await registration.wait_synced()

    def _forget(self, deleted: Deleted) -> None:
        if (obj := last_known_state(deleted)) is not None:
            self.behaviors.remove(name_of(obj))


async def install_definition(client: Client) -> None:
    """Returns when SimulatedBehavior is served."""
    definitions = client.resource("apiextensions.k8s.io/v1", "customresourcedefinitions")
    with suppress(AlreadyExists):
        await definitions.create(DEFINITION)
    only = ListOptions(field_selector=f"metadata.name={name_of(DEFINITION)}")
    while True:
        async with await definitions.watch(only) as watch:
            async for event in watch:
                if is_true(event.object, "Established"):
                    return
