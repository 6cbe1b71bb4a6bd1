"""/metrics/resource: container usage of a node in Prometheus format."""

from __future__ import annotations

from pilothouse.machinery import server_time
from pilothouse.machinery.objects import name_of, namespace_of
from pilothouse.nodes.kubelet.host import Host
from pilothouse.nodes.metrics.usage import node_usage, pod_usage, started_at


def resource_metrics(host: Host, node: str) -> bytes:
    """Return the metrics of one node. CPU time is counted from the container start."""
    now = server_time.wall()
    lines = [
        "# HELP container_cpu_usage_seconds_total [STABLE] Cumulative cpu time consumed by the container in "
        "core-seconds",
        "# TYPE container_cpu_usage_seconds_total counter",
    ]
    memory = [
        "# HELP container_memory_working_set_bytes [STABLE] Current working set of the container in bytes",
        "# TYPE container_memory_working_set_bytes gauge",
    ]
    pods = [*host.pods.on_node(node)]
    for pod in pods:
        for container, usage in pod_usage(pod, host.behavior).items():
            labels = f'container="{container}",namespace="{namespace_of(pod)}",pod="{name_of(pod)}"'
            seconds = float(usage.cpu) * max(0.0, now - (started_at(pod, container) or now))
            lines.append(f"container_cpu_usage_seconds_total{{{labels}}} {seconds:.6f} {int(now * 1000)}")
            memory.append(f"container_memory_working_set_bytes{{{labels}}} {int(usage.memory)} {int(now * 1000)}")
    whole = node_usage(pods, host.behavior)
    return "\n".join([*lines, *memory, *_of_node(int(whole.memory), now), ""]).encode()


def _of_node(memory: int, now: float) -> list[str]:
    return [
        "# HELP node_memory_working_set_bytes [STABLE] Current working set of the node in bytes",
        "# TYPE node_memory_working_set_bytes gauge",
        f"node_memory_working_set_bytes {memory} {int(now * 1000)}",
    ]
