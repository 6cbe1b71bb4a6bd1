"""Metrics computed on request: metrics.k8s.io objects, and /metrics/resource in Prometheus format."""

from __future__ import annotations

from pilothouse.kinds.pods import node_name
from pilothouse.machinery import server_time, times
from pilothouse.machinery.event_loop import yield_periodically, yield_to_loop
from pilothouse.machinery.objects import Json, name_of, namespace_of
from pilothouse.nodes.kubelet.host import Host
from pilothouse.nodes.metrics.usage import node_metrics, node_usage, pod_metrics, pod_usage, started_at


async def measure_nodes(host: Host) -> list[Json]:
    now, metrics = times.now(), list[Json]()
    for node in host.nodes():
        metrics.append(node_metrics(node, node_usage(host.pods.on_node(name_of(node)), host.behavior), now))
        await yield_to_loop()  # yield: a node may have many pods
    return metrics


async def measure_pods(host: Host, namespace: str = "") -> list[Json]:
    """Return the metrics of pods with running containers on simulated nodes."""
    now = times.now()
    nodes = {name_of(node) for node in host.nodes()}
    pods = (pod for pod in host.pods.all_in(namespace) if node_name(pod) in nodes)
    metrics = [pod_metrics(pod, host.behavior, now) async for pod in yield_periodically(pods)]
    return [entry for entry in metrics if entry is not None]


async def measure_pod(host: Host, namespace: str, name: str) -> list[Json]:
    """Return the metrics of one pod; empty if unavailable."""
    pod = host.pods.get(namespace, name)
    metrics = None if pod is None else pod_metrics(pod, host.behavior, times.now())
    return [] if metrics is None else [metrics]


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
