"""The kubelet endpoint of all simulated nodes: logs, exec, port-forward, metrics."""
