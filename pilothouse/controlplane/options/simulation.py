"""Options of simulated nodes."""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import ip_network
from typing import ClassVar

from pilothouse.controlplane.options.pilothouse import TaskGroup
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.flags import DURATION, FLOAT, INT, STRING, flag, invalid_value
from pilothouse.machinery.quantity import parse_quantity
from pilothouse.machinery.quantity_notation import QuantityError


@dataclass(frozen=True)
class SimulationOptions:
    title: ClassVar[str] = "simulation"

    nodes: int = flag(
        "simulated-nodes",
        INT,
        0,
        "Number of simulated nodes; their pods run without a machine.",
        group=TaskGroup.SIMULATION,
    )
    cpu: str = flag("simulated-node-cpu", STRING, "32", "CPU capacity of each node.", group=TaskGroup.SIMULATION)
    memory: str = flag(
        "simulated-node-memory", STRING, "256Gi", "Memory capacity of each node.", group=TaskGroup.SIMULATION
    )
    pods: int = flag("simulated-node-pods", INT, 110, "Pod capacity of each node.", group=TaskGroup.SIMULATION)
    zones: int = flag("simulated-zones", INT, 3, "Number of zones of the nodes.", group=TaskGroup.SIMULATION)
    cluster_cidr: str = flag(
        "simulated-cluster-cidr", STRING, "10.128.0.0/10", "Address range of the pods.", group=TaskGroup.SIMULATION
    )
    delay: float = flag(
        "simulation-delay",
        DURATION,
        0.05,
        "Simulated latency of container start, stop and short-lived work.",
        group=TaskGroup.SIMULATION,
    )
    time_scale: float = flag(
        "simulation-time-scale",
        FLOAT,
        0.05,
        "Length of a second in probes and back-offs; 1 is real time.",
        group=TaskGroup.SIMULATION,
    )
    seed: int = flag("simulation-seed", INT, 0, "Random seed of the simulated latencies.", group=TaskGroup.SIMULATION)

    runs_here: bool = True
    """Whether this process runs the simulation; of several workers, only the first does."""

    def validate(self) -> Iterator[str]:
        for name, number in (("nodes", self.nodes), ("node-pods", self.pods), ("zones", self.zones)):
            if number < 0:
                yield invalid_value(str(number), f"--simulated-{name}", "a whole number, 0 or more")
        for name, quantity in (("cpu", self.cpu), ("memory", self.memory)):
            try:
                parse_quantity(quantity)
            except QuantityError as error:
                yield f"--simulated-node-{name}: {error}"
        if self.delay < 0 or self.time_scale < 0:
            yield "--simulation-delay and --simulation-time-scale must not be negative"
        yield from self._validate_range()

    def _validate_range(self) -> Iterator[str]:
        try:
            network = ip_network(self.cluster_cidr)
        except ValueError as error:
            yield f"--simulated-cluster-cidr: {error}"
            return
        if network.version != 4 or network.prefixlen > 24:
            yield "--simulated-cluster-cidr must be a range of IPv4 addresses with a mask of 24 bits at most"
        elif self.nodes > 1 << (24 - network.prefixlen):
            yield f"--simulated-cluster-cidr has no addresses for {self.nodes} nodes"
