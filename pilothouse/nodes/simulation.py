"""The simulation: nodes, pods, and their behaviour.

With own nodes, the simulation also creates the counterpart of a cloud provider's default classes: claims without a
class get a volume at once; ingresses of class `simulated` get an address.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Final

from pilothouse.client.cache.handlers import Deleted, ResourceEventHandlerFuncs
from pilothouse.client.cache.keys import last_known_state
from pilothouse.client.clock import Clock
from pilothouse.client.rest.client import Client
from pilothouse.client.rest.options import ListOptions
from pilothouse.controllers.context import ControllerContext
from pilothouse.controllers.loadbalancer.ingresses import CLASS
from pilothouse.controllers.resources import PODS, SERVICES
from pilothouse.controllers.volume.persistentvolume.matching import SIMULATED
from pilothouse.kinds.conditions import is_true
from pilothouse.machinery.errors import AlreadyExists
from pilothouse.machinery.names import GroupVersionResource
from pilothouse.machinery.objects import Json, name_of, text
from pilothouse.nodes.behavior import definition as behavior
from pilothouse.nodes.behavior.behaviors import SIMULATED_BEHAVIORS, Behaviors
from pilothouse.nodes.config import SimulationConfig
from pilothouse.nodes.fleet.fleet import Fleet
from pilothouse.nodes.kubelet.host import Host
from pilothouse.nodes.kubelet.routes import serve_kubelets
from pilothouse.nodes.metrics.usage import GROUP_VERSION
from pilothouse.nodes.pods.pod_events import PodEvent
from pilothouse.nodes.running.events import NodeEvents
from pilothouse.nodes.running.pods import Pods
from pilothouse.nodes.simulated_kubelet import SimulatedKubelet
from pilothouse.nodes.stages import stage
from pilothouse.nodes.stages.stage import STAGES
from pilothouse.nodes.stages.stages import Stages

_STORAGE = {
    "metadata": {"name": CLASS, "annotations": {"storageclass.kubernetes.io/is-default-class": "true"}},
    "provisioner": SIMULATED,
    "reclaimPolicy": "Delete",
    "volumeBindingMode": "Immediate",
    "allowVolumeExpansion": True,
}
_INGRESS = {"metadata": {"name": CLASS}, "spec": {"controller": SIMULATED}}
_AGGREGATED: Final = "rbac.authorization.k8s.io/aggregate-to-"
READER_ROLE: Final[Json] = {
    "metadata": {
        "name": "system:aggregated-metrics-reader",
        "labels": {_AGGREGATED + name: "true" for name in ("admin", "edit", "view")},
    },
    "rules": [{"apiGroups": [GROUP_VERSION.group], "resources": ["pods", "nodes"], "verbs": ["get", "list", "watch"]}],
}


async def run(context: ControllerContext, config: SimulationConfig, kubelet: SimulatedKubelet) -> None:
    """Run until cancelled."""
    for definition in (behavior.DEFINITION, stage.DEFINITION):
        await install(definition, context.client)
    if config.nodes:  # metrics are served
        await install_reader_role(context.client)
        await install_classes(context.client)
    await Simulation(context, config, kubelet).run()


class Simulation:
    """`behaviors`: container behaviours. `fleet`: the nodes."""

    def __init__(self, context: ControllerContext, config: SimulationConfig, kubelet: SimulatedKubelet) -> None:
        self._context = context
        self._kubelet = kubelet
        self.config = config
        self.events = NodeEvents(context.client, context.clock)
        self.behaviors = Behaviors(lambda node: self.fleet.labels(node))
        self.stages = Stages(_Surroundings(self, context.clock), config.seed, self._tell)
        self.fleet = Fleet(context, config, self.behaviors, self.stages, self.events)
        self.host = Host(
            context.informer(PODS),
            context.informer(SERVICES),
            self.behaviors,
            self.fleet,
            context.client,
            lambda pod, container, exceeded: self.pods.end_container(pod, container, exceeded),
            lambda pod, container: self.pods.probe_container(pod, container),
        )
        self.pods = Pods(context, config, self.behaviors, self.fleet, self.stages, self.events, self.host)

    async def run(self) -> None:
        """Run until cancelled."""
        await self._follow(SIMULATED_BEHAVIORS, self.behaviors)
        await self._follow(STAGES, self.stages)
        await self.fleet.start()
        async with asyncio.TaskGroup() as tasks:
            kubelets = serve_kubelets(self.host, self._kubelet)
            for running in (self.fleet.run(), self.pods.run(), self.events.run(), kubelets):
                tasks.create_task(running)

    async def _follow(self, resource: GroupVersionResource, follower: Behaviors | Stages) -> None:
        """Follow behaviours or stages, and wait for the existing ones, which must apply from the start."""

        def forget(deleted: Deleted) -> None:
            if (obj := last_known_state(deleted)) is not None:
                follower.remove(name_of(obj))

        handler = ResourceEventHandlerFuncs(add=follower.set, update=lambda old, new: follower.set(new), delete=forget)
        await self._context.informer(resource).add_event_handler(handler).wait_synced()

    def _tell(self, obj: Json, type_: str, reason: str, message: str) -> None:
        self.events.record(obj, text(obj, "spec", "nodeName"), PodEvent(type_, reason, message))


class _Surroundings:
    """Values available to stage templates."""

    def __init__(self, simulation: Simulation, clock: Clock) -> None:
        self._simulation = simulation
        self.now = clock.wall
        self.node = ""

    @property
    def kubelet_port(self) -> int:
        return self._simulation.config.kubelet_port

    def node_addresses(self, node: str) -> list[str]:
        return self._simulation.fleet.addresses_of(node)

    def pod_addresses(self, node: str, host_network: bool, namespace: str, name: str) -> list[str]:
        return self._simulation.pods.addresses_for(f"{namespace}/{name}", node, host_network=host_network)


async def install(definition: Json, client: Client) -> None:
    """Install the definition, and wait until the resource is served."""
    definitions = client.resource("apiextensions.k8s.io/v1", "customresourcedefinitions")
    with suppress(AlreadyExists):
        await definitions.create(definition)
    only = ListOptions(field_selector=f"metadata.name={name_of(definition)}")
    while True:
        async with await definitions.watch(only) as watch:
            async for event in watch:
                if is_true(event.object, "Established"):
                    return


async def install_classes(client: Client) -> None:
    """Create the classes; existing classes stay unchanged."""
    for version, plural, class_object in (
        ("storage.k8s.io/v1", "storageclasses", _STORAGE),
        ("networking.k8s.io/v1", "ingressclasses", _INGRESS),
    ):
        with suppress(AlreadyExists):
            await client.resource(version, plural).create(class_object)


async def install_reader_role(client: Client) -> None:
    """Create the role unless it exists."""
    with suppress(AlreadyExists):
        await client.resource("rbac.authorization.k8s.io/v1", "clusterroles").create(READER_ROLE)
