"""Simulated nodes."""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import ip_network
from typing import ClassVar

from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.flags.declare import flag
from pilothouse.machinery.flags.values import DURATION, FLOAT, INT, STRING
from pilothouse.machinery.quantity import parse_quantity
from pilothouse.machinery.quantity_notation import QuantityError


@dataclass(frozen=True)
class SimulationOptions:
    title: ClassVar[str] = "simulation"

    nodes: int = flag(
        "simulated-nodes",
        INT,
        0,
        "How many simulated nodes there are: pods on them run without any machine. Nodes with the annotation"
        ' pilothouse.dev/simulated: "true" are simulated, too.',
    )
    cpu: str = flag("simulated-node-cpu", STRING, "32", "How many processors a simulated node has.")
    memory: str = flag("simulated-node-memory", STRING, "256Gi", "How much memory a simulated node has.")
    pods: int = flag("simulated-node-pods", INT, 110, "How many pods a simulated node takes.")
    zones: int = flag("simulated-zones", INT, 3, "Over how many zones the simulated nodes are spread.")
    cluster_cidr: str = flag(
        "simulated-cluster-cidr", STRING, "10.128.0.0/10", "The addresses of pods; each simulated node gets a part."
    )
    delay: float = flag(
        "simulation-delay",
        DURATION,
        0.05,
        "How long each thing takes that takes a moment: to create a container, to end one, the work of one that ends.",
    )
    time_scale: float = flag(
        "simulation-time-scale",
        FLOAT,
        0.05,
        "How long the seconds of probes and of back-offs are in the simulation: 1 is as on real nodes.",
    )
    seed: int = flag("simulation-seed", INT, 0, "By which delays differ from pod to pod.")

    runs_here: bool = True
    """Of several processes on one store, in one."""

    def validate(self) -> Iterator[str]:
        for name, number in (("nodes", self.nodes), ("node-pods", self.pods), ("zones", self.zones)):
            if number < 0:
                yield f"simulated-{name} must not be negative, but got {number}"
        for name, given in (("cpu", self.cpu), ("memory", self.memory)):
            try:
                parse_quantity(given)
            except QuantityError as error:
                yield f"simulated-node-{name}: {error}"
        if self.delay < 0 or self.time_scale < 0:
            yield "simulation-delay and simulation-time-scale must not be negative"
        yield from self._validate_range()

    def _validate_range(self) -> Iterator[str]:
        try:
            network = ip_network(self.cluster_cidr)
        except ValueError as error:
            yield f"simulated-cluster-cidr: {error}"
            return
        if network.version != 4 or network.prefixlen > 24:
            yield "simulated-cluster-cidr must be a range of IPv4 addresses with a mask of 24 bits at most"
        elif self.nodes > 1 << (24 - network.prefixlen):
            yield f"simulated-cluster-cidr has no addresses for {self.nodes} nodes"
